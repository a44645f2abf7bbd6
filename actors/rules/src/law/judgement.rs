//! What the rules say of one attempt, as its record keeps it: one short string for each rule that was asked.
use super::rule::GateKind;
use entities::values::Moment;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize, Serializer};
use std::{borrow::Cow, fmt, str::FromStr, sync::Arc};

/// All rules that concern an attempt, in the order of asking.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct Judgement {
    pub asked: Vec<Asked>,
}

impl Judgement {
    /// The first kind of rule that does not say yes, and of those the one that keeps the attempt longest.
    pub fn first_no(&self) -> Option<(&Asked, GateKind)> {
        let kind = self.asked.iter().find(|asked| asked.verdict.is_no())?.kind;
        self.worst_of(kind).map(|asked| (asked, kind))
    }

    /// The strictest that rules of this kind say; none was asked: none.
    pub fn verdict_of(&self, kind: GateKind) -> Option<Verdict> {
        self.worst_of(kind).map(|asked| asked.verdict)
    }

    /// The rule of this kind that says it; the first of those that say the same.
    pub fn worst_of(&self, kind: GateKind) -> Option<&Asked> {
        let of_kind = self.asked.iter().filter(|asked| asked.kind == kind);
        of_kind.reduce(|worst, asked| if asked.verdict > worst.verdict { asked } else { worst })
    }

    /// All rules that do not say yes.
    pub fn noes(&self) -> impl Iterator<Item = &Asked> {
        self.asked.iter().filter(|asked| asked.verdict.is_no())
    }

    pub fn is_yes(&self) -> bool {
        self.noes().next().is_none()
    }

    pub fn of(&self, rule: &str) -> Option<Verdict> {
        self.asked
            .iter()
            .find(|asked| *asked.rule == *rule)
            .map(|asked| asked.verdict)
    }

    /// The rules that said no, and were overridden.
    pub fn overridden(&self) -> impl Iterator<Item = &str> {
        let overridden = self.asked.iter().filter(|asked| asked.verdict == Verdict::Overridden);
        overridden.map(|asked| &*asked.rule)
    }
}

/// A rule, and what it says. Written `caps:us.cap.day:wait:2027-03-02T13:00:00.000Z`; `caps:us.cap.day` is a yes.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct Asked {
    pub kind: GateKind,
    /// Its id.
    pub rule: Arc<str>,
    pub verdict: Verdict,
}

/// The further down, the longer it keeps the attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    Yes,
    /// It said no, and the operator has overridden it.
    Overridden,
    /// Not before then; `None`: until somebody changes something.
    Wait(Option<Moment>),
    Never,
}

impl Verdict {
    pub fn is_no(self) -> bool {
        match self {
            Verdict::Yes | Verdict::Overridden => false,
            Verdict::Wait(_) | Verdict::Never => true,
        }
    }

    fn rank(self) -> (u8, Option<Moment>) {
        match self {
            Verdict::Yes => (0, None),
            Verdict::Overridden => (1, None),
            Verdict::Wait(Some(until)) => (2, Some(until)),
            Verdict::Wait(None) => (3, None),
            Verdict::Never => (4, None),
        }
    }
}
impl PartialOrd for Verdict {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for Verdict {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.rank().cmp(&other.rank())
    }
}

impl fmt::Display for Asked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.kind.as_str(), self.rule)?;
        match self.verdict {
            Verdict::Yes => Ok(()),
            Verdict::Overridden => f.write_str(":overridden"),
            Verdict::Wait(None) => f.write_str(":wait"),
            Verdict::Wait(Some(until)) => write!(f, ":wait:{until}"),
            Verdict::Never => f.write_str(":never"),
        }
    }
}

impl FromStr for Asked {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let bad = || format!("`{text}` is not a rule with its verdict");
        let (kind, rest) = text.split_once(':').ok_or_else(bad)?;
        let kind = GateKind::ALL
            .into_iter()
            .find(|known| known.as_str() == kind)
            .ok_or_else(bad)?;
        let (rule, verdict) = match rest.split_once(':') {
            None => (rest, Verdict::Yes),
            Some((rule, "overridden")) => (rule, Verdict::Overridden),
            Some((rule, "wait")) => (rule, Verdict::Wait(None)),
            Some((rule, "never")) => (rule, Verdict::Never),
            Some((rule, other)) => {
                let until = other.strip_prefix("wait:").ok_or_else(bad)?;
                (rule, Verdict::Wait(Some(Moment::parse(until)?)))
            }
        };
        Ok(Asked {
            kind,
            rule: rule.into(),
            verdict,
        })
    }
}
impl TryFrom<String> for Asked {
    type Error = String;
    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}
impl Serialize for Asked {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}
impl JsonSchema for Asked {
    fn schema_name() -> Cow<'static, str> {
        "AskedRule".into()
    }
    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({
            "type": "string",
            "description": "A rule of the law pack with what it says: its kind, its id, and nothing (yes), `overridden`, `wait`, `wait:<time>` or `never`.",
            "examples": ["consent:us.consent.voice", "hours:us.hours:wait:2027-03-02T13:00:00.000Z"]
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(kind: GateKind, rule: &str, verdict: Verdict) -> Asked {
        Asked {
            kind,
            rule: rule.into(),
            verdict,
        }
    }
    fn at(hour: u8) -> Moment {
        Moment::parse(&format!("2027-03-02T{hour:02}:00:00Z")).unwrap()
    }

    #[test]
    fn is_written_short_and_read_again() {
        let written = [
            (Verdict::Yes, "caps:us.cap"),
            (Verdict::Overridden, "caps:us.cap:overridden"),
            (Verdict::Wait(None), "caps:us.cap:wait"),
            (Verdict::Wait(Some(at(13))), "caps:us.cap:wait:2027-03-02T13:00:00.000Z"),
            (Verdict::Never, "caps:us.cap:never"),
        ];
        for (verdict, expected) in written {
            let judgement = Judgement {
                asked: vec![asked(GateKind::Caps, "us.cap", verdict)],
            };
            let json = serde_json::to_string(&judgement).unwrap();
            assert_eq!(json, format!("[\"{expected}\"]"));
            assert_eq!(serde_json::from_str::<Judgement>(&json).unwrap(), judgement);
        }
        for text in ["", "us.cap", "cap:us.cap", "caps:us.cap:maybe", "caps:us.cap:wait:soon"] {
            assert!(text.parse::<Asked>().is_err(), "{text}");
        }
    }

    #[test]
    fn of_the_first_kind_the_strictest_speaks() {
        let judgement = Judgement {
            asked: vec![
                asked(GateKind::Consent, "a", Verdict::Yes),
                asked(GateKind::Caps, "b", Verdict::Wait(Some(at(13)))),
                asked(GateKind::Caps, "c", Verdict::Wait(Some(at(14)))),
                asked(GateKind::Caps, "d", Verdict::Wait(Some(at(14)))),
                asked(GateKind::Hours, "e", Verdict::Never),
            ],
        };
        let (first, kind) = judgement.first_no().unwrap();
        assert_eq!((&*first.rule, kind), ("c", GateKind::Caps));
        assert_eq!(judgement.verdict_of(GateKind::Consent), Some(Verdict::Yes));
        assert_eq!(judgement.verdict_of(GateKind::Ring), None);
        assert_eq!(judgement.noes().count(), 4);
        assert!(Verdict::Wait(None) > Verdict::Wait(Some(at(14))) && Verdict::Never > Verdict::Wait(None));
    }
}
