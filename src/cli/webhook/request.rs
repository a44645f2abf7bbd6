//! A raw HTTP request, as a log or a proxy keeps it.

/// The most that is read.
pub const MAX_BYTES: usize = 10 * 1024 * 1024;

#[derive(Debug, Default)]
pub struct Request {
    headers: Vec<(String, String)>,
    /// Every byte behind the blank line.
    pub body: Vec<u8>,
}

impl Request {
    /// A request line, which may be absent, headers with LF or CRLF, a blank line, the body.
    pub fn parse(raw: &[u8]) -> Result<Self, String> {
        let mut request = Request::default();
        let mut rest = raw;
        for number in 1.. {
            let Some(end) = rest.iter().position(|byte| *byte == b'\n') else {
                return Err(unfinished(rest, number));
            };
            let (line, behind) = rest.split_at(end);
            rest = &behind[1..];
            let line = String::from_utf8_lossy(line.strip_suffix(b"\r").unwrap_or(line));
            if line.is_empty() {
                break;
            }
            if number == 1 && is_request_line(&line) {
                continue;
            }
            request.headers.push(header(&line, number)?);
        }
        request.body = rest.to_vec();
        Ok(request)
    }

    /// The first header of that name, in whatever case.
    pub fn header(&self, name: &str) -> Option<&str> {
        let mut found = self
            .headers
            .iter()
            .filter(|(known, _)| known.eq_ignore_ascii_case(name));
        found.next().map(|(_, value)| value.as_str())
    }
}

/// `POST /hook HTTP/1.1`
fn is_request_line(line: &str) -> bool {
    let version = line.rsplit(' ').next().unwrap_or_default();
    line.contains(' ') && version.starts_with("HTTP/")
}

fn header(line: &str, number: usize) -> Result<(String, String), String> {
    let is_token = |name: &str| {
        let of_token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
        !name.is_empty() && name.bytes().all(of_token)
    };
    match line.split_once(':') {
        Some((name, value)) if is_token(name.trim_end()) => Ok((name.trim_end().to_owned(), value.trim().to_owned())),
        _ => Err(format!(
            "line {number} is not `Name: value`: {}. The headers come first, then a blank line, then the body",
            super::excerpt(line)
        )),
    }
}

fn unfinished(rest: &[u8], number: usize) -> String {
    if rest.is_empty() && number == 1 {
        return "is empty; it takes a whole request: headers, a blank line, the body".into();
    }
    // A body alone is what is pasted most often.
    match header(&String::from_utf8_lossy(rest), number) {
        Err(why) if !rest.is_empty() => why,
        _ => "has no blank line after the headers, so there is no body".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn line_ends_and_the_request_line_make_no_difference_and_the_body_is_kept_to_the_byte() {
        let headers = ["x-webhook-ID:  7 ", "Empty:", "A: b:c"];
        for (end, first) in [
            ("\n", ""),
            ("\r\n", ""),
            ("\n", "POST /a:b HTTP/1.1"),
            ("\r\n", "POST / HTTP/2"),
        ] {
            let lines = std::iter::once(first).chain(headers).filter(|line| !line.is_empty());
            let mut raw = lines.collect::<Vec<_>>().join(end).into_bytes();
            raw.extend_from_slice(end.repeat(2).as_bytes());
            raw.extend_from_slice(b"\n{}\xff\r\n\r\n");
            let request = Request::parse(&raw).unwrap();
            assert_eq!(request.header("X-Webhook-Id"), Some("7"));
            assert_eq!((request.header("empty"), request.header("a")), (Some(""), Some("b:c")));
            assert_eq!(request.header("other"), None);
            assert_eq!(request.body, b"\n{}\xff\r\n\r\n");
        }
        assert_eq!(Request::parse(b"A: b\n\n").unwrap().body, b"");
    }

    #[test]
    fn what_is_no_request_is_refused_with_the_reason() {
        for (raw, words) in [
            (&b""[..], "is empty"),
            (b"A: b", "no blank line"),
            (b"A: b\r\n", "no blank line"),
            (br#"{"id":"7"}"#, "line 1 is not `Name: value`"),
            (b"{\n\"id\":\"7\"\n}\n", "line 1"),
            (b"A: b\nC\n\n", "line 2"),
        ] {
            let why = Request::parse(raw).unwrap_err();
            assert!(why.contains(words), "{raw:?}: {why}");
        }
    }
}
