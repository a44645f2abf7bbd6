//! A message as it travels: the same bytes at each attempt, but for the boundaries between its parts.
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
        header::{ContentType, Header, HeaderName, HeaderValue},
    },
};
use std::error::Error as StdError;

/// Where a marketing mail's own text may put its link.
pub const PLACE_OF_LINK: &str = "{{unsubscribe_url}}";

/// Fails, in words, on what no mail can carry.
pub fn build(row: &Model, content: &content::Model, sender: &Mailbox, link: &str) -> Result<Message, String> {
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
        if is_marketing {
            text.replace(PLACE_OF_LINK, link)
        } else {
            text.clone()
        }
    };
    let text = content.text.as_ref().map(|text| SinglePart::plain(placed(text)));
    let html = content.html.as_ref().map(|html| SinglePart::html(placed(html)));
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

fn part(attachment: &Attachment) -> Result<SinglePart, String> {
    let bytes = STANDARD
        .decode(&attachment.content)
        .map_err(|_| format!("`{}` is not in base64", attachment.filename))?;
    let kind = ContentType::parse(&attachment.content_type)
        .map_err(|_| format!("`{}` is no content type", attachment.content_type))?;
    Ok(Part::new(attachment.filename.clone()).body(Body::new(bytes), kind))
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
