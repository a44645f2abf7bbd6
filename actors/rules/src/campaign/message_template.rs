//! What a campaign writes to its contacts: its template, read once, and filled for each.
use crate::{
    message::MAX_SMS,
    template::{Escape, Template, Unfilled},
};
use entities::{
    Error, Result,
    campaign::{Channel, Plan},
    contact::Model as Contact,
    values::Variables,
};

#[derive(Clone, Debug, PartialEq)]
pub enum MessageTemplate {
    Sms(Template),
    Email(Box<Email>),
}

#[derive(Clone, Debug, PartialEq)]
pub struct Email {
    pub subject: Template,
    pub text: Option<Template>,
    pub html: Option<Template>,
    pub from_name: Option<String>,
    pub reply_to: Option<String>,
}

/// Filled in when the mail is made: the one thing that no contact has.
const LINK: &str = "unsubscribe_url";

impl MessageTemplate {
    /// Reads the template that the channel needs; `None`: contacts are called.
    pub fn read(plan: &Plan) -> Result<Option<Self>> {
        let Some(template) = &plan.template else {
            return match plan.channel {
                Channel::Phone => Ok(None),
                Channel::Sms => Err(missing("template.body", "is missing: an SMS needs its text")),
                Channel::Email => Err(missing(
                    "template.subject",
                    "is missing: an e-mail needs a subject, and `text` or `html`",
                )),
            };
        };
        let of_email = [
            ("template.subject", template.subject.is_some()),
            ("template.text", template.text.is_some()),
            ("template.html", template.html.is_some()),
            ("template.from_name", template.from_name.is_some()),
            ("template.reply_to", template.reply_to.is_some()),
        ];
        match plan.channel {
            Channel::Phone => Err(Error::invalid("template", "is for the channels sms and email")),
            Channel::Sms => {
                if let Some((field, _)) = of_email.into_iter().find(|(_, given)| *given) {
                    return Err(Error::invalid(field, "is for the channel email"));
                }
                let body = template.body.as_deref();
                let body = body.ok_or_else(|| missing("template.body", "is missing: an SMS needs its text"))?;
                Ok(Some(MessageTemplate::Sms(parse("template.body", body)?)))
            }
            Channel::Email => {
                if template.body.is_some() {
                    return Err(Error::invalid("template.body", "is for the channel sms"));
                }
                let subject = template.subject.as_deref();
                let subject = subject.ok_or_else(|| missing("template.subject", "is missing: an e-mail needs one"))?;
                if template.text.is_none() && template.html.is_none() {
                    return Err(missing("template.text", "is missing: an e-mail needs `text` or `html`"));
                }
                let optional = |field, text: Option<&str>| text.map(|text| parse(field, text)).transpose();
                let reply_to = template.reply_to.as_deref();
                let reply_to = reply_to.map(|address| {
                    crate::barred::email(address)
                        .map_err(|_| Error::invalid("template.reply_to", "is not an e-mail address"))
                });
                let email = Email {
                    subject: parse("template.subject", subject)?,
                    text: optional("template.text", template.text.as_deref())?,
                    html: optional("template.html", template.html.as_deref())?,
                    from_name: template.from_name.as_ref().map(|name| name.to_string()),
                    reply_to: reply_to.transpose()?,
                };
                if let Some(name) = &email.from_name
                    && name.chars().any(char::is_control)
                {
                    return Err(Error::invalid("template.from_name", "has control characters"));
                }
                Ok(Some(MessageTemplate::Email(Box::new(email))))
            }
        }
    }

    /// The same, of a plan that somebody sends: one that was taken in before stays good.
    pub fn check(plan: &Plan) -> Result<Option<Self>> {
        let template = MessageTemplate::read(plan)?;
        match &template {
            Some(MessageTemplate::Sms(body)) if body.mentions(LINK) => {
                let why = "has `{{unsubscribe_url}}`, which only e-mails have; recipients of an SMS reply STOP";
                Err(Error::invalid("template.body", why))
            }
            _ => Ok(template),
        }
    }

    fn parts(&self) -> Vec<&Template> {
        match self {
            MessageTemplate::Sms(body) => vec![body],
            MessageTemplate::Email(email) => [Some(&email.subject), email.text.as_ref(), email.html.as_ref()]
                .into_iter()
                .flatten()
                .collect(),
        }
    }

    /// The variables that each contact must have, because the campaign has none of that name.
    pub fn needs(&self, plan: &Plan) -> Vec<String> {
        let given = |name: &&str| plan.variables.0.get(*name).is_some_and(|value| !value.is_null());
        let mut needed: Vec<String> = self
            .parts()
            .into_iter()
            .flat_map(Template::needs)
            .filter(|name| *name != LINK && !given(name))
            .map(str::to_owned)
            .collect();
        needed.sort();
        needed.dedup();
        needed
    }

    /// Written to a contact; why it cannot be.
    pub fn fill(&self, plan: &Plan, contact: &Contact) -> Result<Filled, Unfilled> {
        let variables = self.variables(plan, contact);
        match self {
            MessageTemplate::Sms(body) => sms(body, &variables).map(Filled::Sms),
            MessageTemplate::Email(email) => email.fill(&variables),
        }
    }

    /// What a template finds of a contact: its own variables, its fields, then the campaign's.
    fn variables(&self, plan: &Plan, contact: &Contact) -> Variables {
        let mut all = plan.variables.clone();
        let own = contact.variables.0.keys().map(String::as_str);
        for name in own.chain(["first_name", "last_name", "email", "phone_number"]) {
            if let Some(value) = contact.value_of(name) {
                all.0.insert(name.into(), value);
            }
        }
        all.0.insert(LINK.into(), format!("{{{{{LINK}}}}}").into());
        all
    }
}

/// A letter with one contact's variables.
#[derive(Clone, Debug, PartialEq)]
pub enum Filled {
    Sms(String),
    Email {
        from_name: Option<String>,
        reply_to: Option<String>,
        subject: String,
        text: Option<String>,
        html: Option<String>,
    },
}

/// The text of an SMS; why it cannot be written.
fn sms(body: &Template, variables: &Variables) -> Result<String, Unfilled> {
    // No character has more bytes.
    let text = body.fill_within(4 * MAX_SMS, variables, Escape::No)?;
    if text.trim().is_empty() {
        return Err(Unfilled::Empty);
    }
    match text.chars().count() {
        0..=MAX_SMS => Ok(text),
        _ => Err(Unfilled::TooLong),
    }
}

impl Email {
    /// Why it cannot be written.
    fn fill(&self, variables: &Variables) -> Result<Filled, Unfilled> {
        let subject = self.subject.fill(variables, Escape::Line)?;
        let text = self.text.as_ref().map(|text| text.fill(variables, Escape::No));
        let html = self.html.as_ref().map(|html| html.fill(variables, Escape::Html));
        Ok(Filled::Email {
            from_name: self.from_name.clone(),
            reply_to: self.reply_to.clone(),
            subject,
            text: text.transpose()?,
            html: html.transpose()?,
        })
    }
}

fn missing(field: &'static str, reason: &str) -> Error {
    Error::invalid(field, reason)
}

fn parse(field: &'static str, text: &str) -> Result<Template> {
    Template::parse(text).map_err(|why| Error::invalid(field, why))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn plan(fields: serde_json::Value) -> Plan {
        let mut plan = json!({ "name": "x" });
        plan.as_object_mut()
            .unwrap()
            .extend(fields.as_object().unwrap().clone());
        serde_json::from_value(plan).unwrap()
    }

    #[test]
    fn each_channel_has_its_own_fields() {
        let refused = [
            (json!({ "template": { "body": "x" } }), "template"),
            (json!({ "channel": "sms" }), "template.body"),
            (json!({ "channel": "sms", "template": {} }), "template.body"),
            (
                json!({ "channel": "sms", "template": { "body": "x", "subject": "y" } }),
                "template.subject",
            ),
            (
                json!({ "channel": "sms", "template": { "body": "Hi {{first name}}" } }),
                "template.body",
            ),
            (
                json!({ "channel": "sms", "template": { "body": "No more? {{unsubscribe_url|Reply STOP}}" } }),
                "template.body",
            ),
            (json!({ "channel": "email" }), "template.subject"),
            (
                json!({ "channel": "email", "template": { "text": "x" } }),
                "template.subject",
            ),
            (
                json!({ "channel": "email", "template": { "subject": "x" } }),
                "template.text",
            ),
            (
                json!({ "channel": "email", "template": { "subject": "x", "text": "y", "body": "z" } }),
                "template.body",
            ),
            (
                json!({ "channel": "email", "template": { "subject": "x", "html": "{{" } }),
                "template.html",
            ),
            (
                json!({ "channel": "email", "template": { "subject": "x", "text": "y", "reply_to": "z" } }),
                "template.reply_to",
            ),
        ];
        for (fields, field) in refused {
            let Err(Error::Invalid { field: found, .. }) = MessageTemplate::check(&plan(fields.clone())) else {
                panic!("{fields} was taken");
            };
            assert_eq!(found, field, "{fields}");
        }
        assert_eq!(MessageTemplate::read(&plan(json!({}))).unwrap(), None);
    }

    #[test]
    fn it_needs_what_neither_the_campaign_nor_the_text_supplies() {
        let plan = plan(json!({ "channel": "email", "variables": { "shop": "Bo" }, "template": {
            "subject": "{{shop}} for {{first_name}}", "text": "{{code}} {{nick|you}} {{unsubscribe_url}}" } }));
        let template = MessageTemplate::read(&plan).unwrap().unwrap();
        assert_eq!(template.needs(&plan), ["code", "first_name"]);
    }

    #[test]
    fn an_sms_is_written_or_says_why_it_cannot_be() {
        let (long, often) = ("ê".repeat(MAX_SMS), "{{long}}".repeat(200));
        let values = [("a", json!("Ann")), ("long", json!(long))];
        let variables = Variables(values.map(|(name, value)| (name.to_owned(), value)).into());
        for (text, expected) in [
            ("Hi {{a}}", Ok("Hi Ann")),
            ("{{long}}", Ok(long.as_str())),
            ("{{long}}.", Err(Unfilled::TooLong)),
            (often.as_str(), Err(Unfilled::TooLong)),
            ("{{b}}", Err(Unfilled::Missing("b".to_owned()))),
            (" {{b|}}", Err(Unfilled::Empty)),
        ] {
            let found = sms(&Template::parse(text).unwrap(), &variables);
            assert_eq!(found, expected.map(str::to_owned), "{text:.40}");
        }
    }
}
