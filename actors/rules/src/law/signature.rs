//! Who writes, in the text of an SMS itself: where a rule that is in force asks for it. (Under marketing mails it stands everywhere.)
use super::{
    facts::{Facts, IdentityFact},
    force::Law,
    judge::is_set_aside,
    rule::{IdentityField, Says},
    terms::LegalTerms,
};
use crate::{
    message::{MAX_SMS, are_said, lines_of},
    sms::text::SmsText,
};
use entities::dnc::DncChannel;
use std::{collections::BTreeSet, fmt};

/// A text that has no room for who writes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoRoom {
    /// That wants it there.
    pub rule: String,
    /// So many it would have.
    pub characters: usize,
}

impl fmt::Display for NoRoom {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let NoRoom { rule, characters } = self;
        write!(
            f,
            "is {characters} characters long with the name and address that {rule} wants in it; at most {MAX_SMS} are allowed"
        )
    }
}

impl LegalTerms {
    /// The text of an SMS as it leaves: with who writes it, where the law binds and wants that. Whoever foresees one, plans it or orders it
    /// asks this, so that what was foreseen is what is sent and charged.
    pub fn text(&self, facts: &Facts, body: String) -> Result<SmsText, NoRoom> {
        match self.is_enforced {
            true => self.law.signed(facts, body),
            false => Ok(SmsText::of(body)),
        }
    }
}

impl Law {
    /// The text of that SMS; in a last line what rules want to be known of whoever writes, as far as the text does not say it itself.
    fn signed(&self, facts: &Facts, body: String) -> Result<SmsText, NoRoom> {
        let Some((rule, line)) = self.line(facts, &body) else {
            return Ok(SmsText::of(body));
        };
        let written = body.chars().count();
        let body = format!("{body}\n{line}");
        match body.chars().count() {
            characters @ 0..=MAX_SMS => Ok(SmsText {
                added: characters - written,
                ..SmsText::of(body)
            }),
            characters => Err(NoRoom { rule, characters }),
        }
    }

    /// The last line of an SMS that says nothing of it itself; `None`: it has none, or is none.
    pub fn sms_line(&self, facts: &Facts) -> Option<String> {
        match facts.channel {
            DncChannel::Sms => self.line(facts, "").map(|(_, line)| line),
            DncChannel::Phone | DncChannel::Email => None,
        }
    }

    /// That line, and the first rule that wants it. What is not known is left out: those rules bar the message.
    fn line(&self, facts: &Facts, body: &str) -> Option<(String, String)> {
        let (mut first, mut fields) = (None, BTreeSet::new());
        for rule in self.rules_for(facts) {
            if let Says::Identity { fields: wanted } = &rule.says
                && !is_set_aside(rule, facts)
            {
                first = first.or(Some(&rule.id));
                fields.extend(wanted.iter().copied());
            }
        }
        let rule = first?;
        let mut parts: Vec<String> = Vec::new();
        for field in fields {
            let lines = lines_in(field, &facts.identity);
            let part = lines.join(", ");
            if !are_said(body, &lines) && !parts.contains(&part) {
                parts.push(part);
            }
        }
        (!parts.is_empty()).then(|| (rule.clone(), parts.join(", ")))
    }
}

/// Empty: it is not known.
fn lines_in(field: IdentityField, known: &IdentityFact) -> Vec<String> {
    let address = lines_of(known.postal_address.as_deref().unwrap_or_default());
    let toll_free = known.toll_free_number.iter().map(ToString::to_string);
    match field {
        IdentityField::RegisteredName => lines_of(known.registered_name.as_deref().unwrap_or_default()),
        IdentityField::Callback => known.callback_number.iter().map(ToString::to_string).collect(),
        IdentityField::PostalAddressOrTollFree if address.is_empty() => toll_free.collect(),
        IdentityField::PostalAddress | IdentityField::PostalAddressOrTollFree => address,
        IdentityField::TollFree => toll_free.collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::law::{pack, tests::facts};

    const BODY: &str = "Spring sale today.";

    fn signed(row: &str, body: &str) -> Result<String, NoRoom> {
        let row = format!("{row} channel=sms");
        let text = Law::untouched().signed(&facts(&row), body.to_owned())?;
        assert_eq!(text.added, text.body.chars().count() - body.chars().count(), "{row}");
        Ok(text.body)
    }

    /// Source: CASL s. 6(2), Spam Act 2003 s. 17.
    #[test]
    fn a_text_that_sells_says_who_writes_where_the_law_wants_that() {
        const WHOLE: &str = "Spring sale today.\nAcme Inc., 1 Main Street, Springfield";
        for (row, body, expected) in [
            ("CA 2026-12-01T12:00", BODY, WHOLE),
            ("AU 2026-12-01T12:00", BODY, "Spring sale today.\nAcme Inc."),
            ("US-NY,CA 2026-12-01T12:00", BODY, WHOLE),
            // Nobody asks for it.
            ("US-NY 2026-12-01T12:00", BODY, BODY),
            ("GB 2026-12-01T12:00", BODY, BODY),
            ("FR 2026-12-01T12:00", BODY, BODY),
            ("CA 2026-12-01T12:00 purpose=service", BODY, BODY),
            // What it says itself is not said twice.
            (
                "CA 2026-12-01T12:00",
                "Acme Inc.: sale!",
                "Acme Inc.: sale!\n1 Main Street, Springfield",
            ),
            ("CA 2026-12-01T12:00", WHOLE, WHOLE),
            ("AU 2026-12-01T12:00", "Acme Inc.: sale!", "Acme Inc.: sale!"),
            // A longer name is another one.
            (
                "AU 2026-12-01T12:00",
                "PetAcme Inc.: sale!",
                "PetAcme Inc.: sale!\nAcme Inc.",
            ),
            (
                "AU 2026-12-01T12:00",
                "PetAcme Inc. is Acme Inc.",
                "PetAcme Inc. is Acme Inc.",
            ),
            // What is not known bars it, by the rule's own verdict.
            (
                "CA 2026-12-01T12:00 without=postal_address",
                BODY,
                "Spring sale today.\nAcme Inc.",
            ),
            ("AU 2026-12-01T12:00 without=registered_name", BODY, BODY),
        ] {
            assert_eq!(signed(row, body).as_deref(), Ok(expected), "{row}");
        }
    }

    #[test]
    fn an_address_of_several_lines_takes_one() {
        let mut facts = facts("CA 2026-12-01T12:00 channel=sms");
        facts.identity.postal_address = Some("1 Main Street\n\n Springfield ".to_owned());
        let text = |body: &str| Law::untouched().signed(&facts, body.to_owned()).unwrap().body;
        assert_eq!(text("Sale!"), "Sale!\nAcme Inc., 1 Main Street, Springfield");
        let own = "Sale at Acme Inc., 1 Main Street in Springfield!";
        assert_eq!(text(own), own);
    }

    #[test]
    fn what_has_no_room_for_it_is_refused_with_the_rule() {
        let row = "CA 2026-12-01T12:00";
        // A line feed, and 37 characters of name and address.
        let longest = "x".repeat(MAX_SMS - 38);
        assert_eq!(signed(row, &longest).unwrap().chars().count(), MAX_SMS);
        let refused = signed(row, &format!("{longest}x")).unwrap_err();
        let characters = MAX_SMS + 1;
        assert_eq!(refused.rule, "ca.identity.messages");
        assert_eq!(refused.characters, characters);
        assert!(refused.to_string().contains("ca.identity.messages"), "{refused}");
        // Of whoever has said it all nothing more is wanted.
        let whole = format!("{} Acme Inc., 1 Main Street, Springfield", "x".repeat(MAX_SMS - 38));
        assert_eq!(signed(row, &whole).as_deref(), Ok(whole.as_str()));
    }

    #[test]
    fn the_line_of_a_place_is_told_before_anything_is_written() {
        let line = |row: &str| Law::untouched().sms_line(&facts(&format!("{row} 2026-12-01T12:00 channel=sms")));
        assert_eq!(line("CA").as_deref(), Some("Acme Inc., 1 Main Street, Springfield"));
        assert_eq!(line("AU").as_deref(), Some("Acme Inc."));
        assert_eq!(line("US-NY"), None);
        assert_eq!(Law::untouched().sms_line(&facts("CA 2026-12-01T12:00")), None, "a call");
    }

    /// The operator's file adds what it wants, and may set a rule aside.
    #[test]
    fn the_operators_file_counts() {
        let text = |file: &str| {
            let law = Law::read(pack(), Some(("law.toml", file))).unwrap();
            let mut facts = facts("AU 2026-12-01T12:00 channel=sms");
            facts.overrides = law.overridden(entities::ids::TenantId(uuid::Uuid::nil()));
            law.signed(&facts, "Sale!".to_owned()).unwrap().body
        };
        let stricter = r#"[[rule]]
            id = "au.identity.messages"
            says = { fields = ["registered_name", "postal_address_or_toll_free"] }"#;
        assert_eq!(text(stricter), "Sale!\nAcme Inc., 1 Main Street, Springfield");
        let overridden = r#"[[override]]
            rule = "au.identity.messages"
            reason = "Counsel has agreed"
            approved_by = "J. Doe""#;
        assert_eq!(text(overridden), "Sale!");
    }
}
