//! `X-Twilio-Signature`: HMAC-SHA1 over the address that was called and the form's fields, sorted, each name with its value.
use base64::{Engine, engine::general_purpose::STANDARD};
use hmac::{Hmac, KeyInit, Mac};
use sha1::Sha1;

/// `fields`: as they were posted, decoded.
pub fn sign(auth_token: &str, url: &str, fields: &[(String, String)]) -> String {
    STANDARD.encode(mac(auth_token, url, fields).finalize().into_bytes())
}

/// In constant time.
pub fn is_authentic(auth_token: &str, url: &str, fields: &[(String, String)], signature: &str) -> bool {
    STANDARD
        .decode(signature)
        .is_ok_and(|signature| mac(auth_token, url, fields).verify_slice(&signature).is_ok())
}

fn mac(auth_token: &str, url: &str, fields: &[(String, String)]) -> Hmac<Sha1> {
    let mut sorted: Vec<_> = fields.iter().collect();
    sorted.sort();
    let mut mac = Hmac::<Sha1>::new_from_slice(auth_token.as_bytes())
        .unwrap_or_else(|_| unreachable!("HMAC takes keys of any length"));
    mac.update(url.as_bytes());
    for (name, value) in sorted {
        mac.update(name.as_bytes());
        mac.update(value.as_bytes());
    }
    mac
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields() -> Vec<(String, String)> {
        let fields = [
            ("To", "+18005551212"),
            ("From", "+14158675309"),
            ("Digits", "1234"),
            ("CallSid", "CA1234567890ABCDE"),
            ("Caller", "+14158675309"),
        ];
        fields.map(|(name, value)| (name.to_owned(), value.to_owned())).into()
    }
    const URL: &str = "https://mycompany.com/myapp.php?foo=1&bar=2";

    /// The example of Twilio's documentation ("Validating Signatures from Twilio").
    #[test]
    fn the_documented_example() {
        assert_eq!(sign("12345", URL, &fields()), "RSOYDt4T1cUTdK1PDd93/VVr8B8=");
    }

    #[test]
    fn nothing_else_is_authentic() {
        let good = sign("12345", URL, &fields());
        assert!(is_authentic("12345", URL, &fields(), &good));
        let mut more = fields();
        more.push(("Body".into(), "STOP".into()));
        let mut reordered = fields();
        reordered.reverse();
        assert!(
            is_authentic("12345", URL, &reordered, &good),
            "the order does not count"
        );
        for (token, url, fields, signature) in [
            ("12346", URL, fields(), good.as_str()),
            ("12345", "https://mycompany.com/myapp.php", fields(), &good),
            ("12345", URL, more, &good),
            ("12345", URL, fields(), ""),
            ("12345", URL, fields(), "no base64!"),
            ("12345", URL, fields(), &good[..20]),
        ] {
            assert!(
                !is_authentic(token, url, &fields, signature),
                "{token} {url} {signature}"
            );
        }
    }
}
