//! A message as it travels: the same bytes at each attempt, but for the boundaries between its parts.
use super::footer::Footer;
use crate::mail::post::date;
use base64::{Engine, engine::general_purpose::STANDARD};
use entities::email_message::{
    Kind, Model,
    content::{self, Attachment},
};
use lettre::{
    Message,
    message::{
        Attachment as Part, Body, Mailbox, MultiPart, SinglePart,
        header::{ContentTransferEncoding, ContentType, Header, HeaderName, HeaderValue},
    },
};
use std::error::Error as StdError;

/// Where a marketing mail's own text may put its link.
pub const PLACE_OF_LINK: &str = "{{unsubscribe_url}}";

/// Fails, in words, on what no mail can carry. `footer`: what stands under its words.
pub fn build(
    row: &Model,
    content: &content::Model,
    sender: &Mailbox,
    link: &str,
    footer: &Footer,
) -> Result<Message, String> {
    let said = |error: &dyn StdError| error.to_string();
    let from = Mailbox::new(
        row.from_name.clone().or_else(|| sender.name.clone()),
        sender.email.clone(),
    );
    let to: Mailbox = row.to_address.parse().map_err(|error| said(&error))?;
    let mut builder = Message::builder()
        .from(from)
        .to(to)
        .subject(&row.subject)
        .date(date(row.created_at))
        .message_id(Some(format!("<{}@{}>", row.id, sender.email.domain())));
    if let Some(reply_to) = &row.reply_to {
        builder = builder.reply_to(reply_to.parse().map_err(|error| said(&error))?);
    }
    let is_marketing = row.kind == Kind::Marketing;
    if is_marketing {
        builder = builder
            .header(ListUnsubscribe(format!("<{link}>")))
            .header(ListUnsubscribePost);
    }
    let placed = |text: &String| {
        let text = lines(text);
        if is_marketing {
            text.replace(PLACE_OF_LINK, link)
        } else {
            text.clone()
        }
    };
    let text = content.text.as_ref().map(|text| footer.under_text(placed(text)));
    let html = content.html.as_ref().map(|html| footer.under_html(placed(html)));
    let (text, html) = (text.map(SinglePart::plain), html.map(SinglePart::html));
    let built = match (text, html, content.attachments.0.as_slice()) {
        (Some(one), None, []) | (None, Some(one), []) => builder.singlepart(one),
        (Some(text), Some(html), []) => builder.multipart(MultiPart::alternative().singlepart(text).singlepart(html)),
        (text, html, attachments) => {
            let mut mixed = match (text, html) {
                (Some(text), Some(html)) => {
                    MultiPart::mixed().multipart(MultiPart::alternative().singlepart(text).singlepart(html))
                }
                (Some(one), None) | (None, Some(one)) => MultiPart::mixed().singlepart(one),
                (None, None) => return Err("there is no text".into()),
            };
            for attachment in attachments {
                mixed = mixed.singlepart(part(attachment)?);
            }
            builder.multipart(mixed)
        }
    };
    built.map_err(|error| said(&error))
}

/// A carriage return by itself is no line's end to a mail server.
fn lines(text: &str) -> String {
    text.replace("\r\n", "\n").replace('\r', "\n")
}

fn part(attachment: &Attachment) -> Result<SinglePart, String> {
    let bytes = STANDARD
        .decode(&attachment.content)
        .map_err(|_| format!("`{}` is not in base64", attachment.filename))?;
    let kind = ContentType::parse(&attachment.content_type)
        .map_err(|_| format!("`{}` is not a content type", attachment.content_type))?;
    // Whatever is in it: a bare line feed would end the talk with a strict server.
    let body = Body::new_with_encoding(bytes, ContentTransferEncoding::Base64);
    let body = body.map_err(|_| format!("`{}` cannot be encoded", attachment.filename))?;
    Ok(Part::new(attachment.filename.clone()).body(body, kind))
}

/// May it be a content type?
pub fn is_content_type(text: &str) -> bool {
    ContentType::parse(text).is_ok()
}

/// May it be an address, with or without a name?
pub fn is_mailbox(text: &str) -> bool {
    text.parse::<Mailbox>().is_ok()
}

/// RFC 2369 and RFC 8058: mail programs show a button of their own.
#[derive(Clone)]
struct ListUnsubscribe(String);

impl Header for ListUnsubscribe {
    fn name() -> HeaderName {
        HeaderName::new_from_ascii_str("List-Unsubscribe")
    }
    fn parse(text: &str) -> Result<Self, Box<dyn StdError + Send + Sync>> {
        Ok(ListUnsubscribe(text.into()))
    }
    fn display(&self) -> HeaderValue {
        HeaderValue::new(Self::name(), self.0.clone())
    }
}

/// RFC 8058: the button needs no page.
#[derive(Clone)]
struct ListUnsubscribePost;

impl Header for ListUnsubscribePost {
    fn name() -> HeaderName {
        HeaderName::new_from_ascii_str("List-Unsubscribe-Post")
    }
    fn parse(_: &str) -> Result<Self, Box<dyn StdError + Send + Sync>> {
        Ok(ListUnsubscribePost)
    }
    fn display(&self) -> HeaderValue {
        HeaderValue::new(Self::name(), "List-Unsubscribe=One-Click".into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use entities::{
        email_message::content::Attachments,
        ids::{EmailId, TenantId, TenantScoped},
        values::{Env, Moment},
    };
    use proptest::prelude::*;
    use rules::email::machine::unsent;
    use runtime::link_keys::LinkKeys;
    use uuid::Uuid;

    fn row(kind: Kind, subject: &str, from_name: Option<String>) -> Model {
        let key = TenantScoped::new(TenantId(Uuid::nil()), Env::Live, EmailId(Uuid::from_u128(1)));
        Model {
            from_name,
            ..unsent(
                key,
                "ann@example.com".into(),
                subject.into(),
                kind,
                Moment::from_millis(0),
            )
        }
    }

    fn built(row: &Model, text: &str, attached: &[u8]) -> String {
        let content = content::Model {
            message_id: row.id,
            tenant_id: row.tenant_id,
            text: Some(text.into()),
            html: Some("<p>".to_owned() + text),
            attachments: Attachments(vec![Attachment {
                filename: "a b.txt".into(),
                content_type: "text/plain".into(),
                content: STANDARD.encode(attached),
            }]),
        };
        let sender = "Callboard <c@sender.example>".parse().unwrap();
        let keys = LinkKeys::generate();
        let link = crate::email::link::url(&keys, "https://callboard.example.com", row.id);
        let message = build(row, &content, &sender, &link, &Footer::default()).unwrap();
        String::from_utf8(message.formatted()).unwrap()
    }

    /// The head, unfolded, a line per header.
    fn head(mail: &str) -> Vec<String> {
        let (head, _) = mail.split_once("\r\n\r\n").unwrap();
        let unfolded = head.replace("\r\n ", " ").replace("\r\n\t", " ");
        unfolded.lines().map(str::to_owned).collect()
    }

    #[test]
    fn marketing_carries_the_button_of_mail_programs() {
        let head = head(&built(&row(Kind::Marketing, "Hello", None), "x", b""));
        let link = head
            .iter()
            .find_map(|line| line.strip_prefix("List-Unsubscribe: "))
            .unwrap();
        assert!(
            link.starts_with("<https://callboard.example.com/u/") && link.ends_with('>'),
            "{link}"
        );
        assert!(
            head.contains(&"List-Unsubscribe-Post: List-Unsubscribe=One-Click".to_owned()),
            "{head:?}"
        );
        let transactional = built(&row(Kind::Transactional, "Hello", None), "x", b"");
        assert!(!transactional.contains("List-Unsubscribe"));
    }

    proptest! {
        /// Whatever texts say: the headers are ours alone, and every line ends as a server wants it.
        #[test]
        fn texts_stay_in_their_places(
            subject in "[^\\p{Cc}]{1,120}", name in "[^\\p{Cc}]{1,60}", text in "(?s).{0,300}", attached in prop::collection::vec(any::<u8>(), 0..300),
        ) {
            let mail = built(&row(Kind::Transactional, &subject, Some(name)), &text, &attached);
            let names: Vec<String> = head(&mail).iter().map(|line| line.split(':').next().unwrap_or_default().to_owned()).collect();
            prop_assert_eq!(names, ["From", "To", "Subject", "Date", "Message-ID", "MIME-Version", "Content-Type"]);
            let bare = mail.replace("\r\n", "");
            prop_assert!(!bare.contains(['\r', '\n']), "{:?}", mail);
        }
    }
}
