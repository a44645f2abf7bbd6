//! The protocol's versions. Source: <https://modelcontextprotocol.io/specification/versioning>.

/// In their order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Version {
    V20241105,
    V20250326,
    V20250618,
    V20251125,
}

impl Version {
    pub const ALL: [Version; 4] = [
        Version::V20241105,
        Version::V20250326,
        Version::V20250618,
        Version::V20251125,
    ];
    /// Offered to a client that asks for one that is not known here.
    pub const LATEST: Version = Version::V20251125;
    /// Of a request over HTTP that names none. Source: specification 2025-06-18, "Protocol Version Header".
    pub const ASSUMED: Version = Version::V20250326;

    pub const fn as_str(self) -> &'static str {
        match self {
            Version::V20241105 => "2024-11-05",
            Version::V20250326 => "2025-03-26",
            Version::V20250618 => "2025-06-18",
            Version::V20251125 => "2025-11-25",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        Version::ALL.into_iter().find(|version| version.as_str() == text)
    }

    /// JSON-RPC batches left the protocol with 2025-06-18.
    pub fn has_batches(self) -> bool {
        self < Version::V20250618
    }

    /// Results of tools as JSON, beside their text.
    pub fn has_structured_content(self) -> bool {
        self >= Version::V20250618
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_version_is_known_by_its_date() {
        for version in Version::ALL {
            assert_eq!(Version::parse(version.as_str()), Some(version));
        }
        for text in ["", "2025-11-24", "2025-06-18 ", "2026-07-28", "latest"] {
            assert_eq!(Version::parse(text), None, "{text}");
        }
        assert!(Version::ALL.is_sorted() && Version::ALL.contains(&Version::ASSUMED));
        assert_eq!(Version::ALL.last(), Some(&Version::LATEST));
    }
}
