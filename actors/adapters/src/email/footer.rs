//! Who writes, under the words of a marketing mail: the law wants a name there, and an address that letters reach.
use entities::legal_identity;
use rules::message::{are_said, lines_of};

/// What a workspace has said of itself; by default nothing, and nothing is put under a mail.
#[derive(Debug, Default)]
pub struct Footer {
    name: Option<String>,
    /// By lines.
    address: Vec<String>,
}

impl From<&legal_identity::Model> for Footer {
    fn from(known: &legal_identity::Model) -> Self {
        Footer {
            name: known.registered_name.clone(),
            address: lines_of(known.postal_address.as_deref().unwrap_or_default()),
        }
    }
}

impl Footer {
    /// Parted by `--`, not by `-- `: mail programs hide what they take for a signature.
    pub fn under_text(&self, text: String) -> String {
        if self.is_in(&text, str::to_owned) {
            return text;
        }
        let lines: Vec<&str> = self.lines().collect();
        format!("{text}\n\n--\n{}", lines.join("\n"))
    }

    /// Inside its body, where that has an end.
    pub fn under_html(&self, html: String) -> String {
        if self.is_in(&html, str::to_owned) || self.is_in(&html, escaped) {
            return html;
        }
        let lines: Vec<String> = self.lines().map(escaped).collect();
        let end = html.to_ascii_lowercase().rfind("</body").unwrap_or(html.len());
        let (words, rest) = html.split_at(end);
        format!("{words}\n<p>{}</p>\n{rest}", lines.join("<br>"))
    }

    fn lines(&self) -> impl Iterator<Item = &str> {
        self.name.iter().chain(&self.address).map(String::as_str)
    }

    /// Is the address in it, whatever stands between its lines? Without an address: the name.
    fn is_in(&self, words: &str, spelled: fn(&str) -> String) -> bool {
        let sought: &[String] = if self.address.is_empty() {
            self.name.as_slice()
        } else {
            &self.address
        };
        are_said(words, sought.iter().map(|line| spelled(line)))
    }
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;
    use entities::{ids::TenantId, values::Moment};
    use uuid::Uuid;

    fn footer(name: Option<&str>, address: Option<&str>) -> Footer {
        let known = legal_identity::Model {
            registered_name: name.map(str::to_owned),
            postal_address: address.map(str::to_owned),
            ..legal_identity::Model::empty(TenantId(Uuid::nil()), Moment::from_millis(0))
        };
        Footer::from(&known)
    }

    const NAME: Option<&str> = Some("Ann & Co.");
    const ADDRESS: Option<&str> = Some("1 Main <Street>\n\n Springfield ");

    #[test]
    fn it_stands_under_the_plain_text_unless_the_address_does() {
        for (name, address, text, expected) in [
            (
                NAME,
                ADDRESS,
                "Hello.",
                "Hello.\n\n--\nAnn & Co.\n1 Main <Street>\nSpringfield",
            ),
            (None, ADDRESS, "Hello.", "Hello.\n\n--\n1 Main <Street>\nSpringfield"),
            (NAME, None, "Hello.", "Hello.\n\n--\nAnn & Co."),
            (NAME, None, "Ann & Co. greets.", "Ann & Co. greets."),
            (None, None, "Hello.", "Hello."),
            (
                NAME,
                ADDRESS,
                "1 Main <Street>, Springfield",
                "1 Main <Street>, Springfield",
            ),
            // Parts of it in another order are not the address.
            (
                NAME,
                ADDRESS,
                "From Springfield, 1 Main <Street>",
                "From Springfield, 1 Main <Street>\n\n--\nAnn & Co.\n1 Main <Street>\nSpringfield",
            ),
        ] {
            assert_eq!(footer(name, address).under_text(text.into()), expected);
        }
    }

    #[test]
    fn it_stands_in_the_body_of_the_html() {
        const WHOLE: &str = "\n<p>Ann &amp; Co.<br>1 Main &lt;Street&gt;<br>Springfield</p>\n";
        for (html, expected) in [
            ("<p>Hello.</p>", format!("<p>Hello.</p>{WHOLE}")),
            (
                "<html><BODY>Grüße</BODY ></html>",
                format!("<html><BODY>Grüße{WHOLE}</BODY ></html>"),
            ),
            (
                "<p>1 Main &lt;Street&gt;<br>Springfield</p>",
                "<p>1 Main &lt;Street&gt;<br>Springfield</p>".into(),
            ),
            (
                "<p>1 Main <Street>, Springfield</p>",
                "<p>1 Main <Street>, Springfield</p>".into(),
            ),
        ] {
            assert_eq!(footer(NAME, ADDRESS).under_html(html.into()), expected);
        }
        assert_eq!(Footer::default().under_html("<p>Hello.</p>".into()), "<p>Hello.</p>");
    }
}
