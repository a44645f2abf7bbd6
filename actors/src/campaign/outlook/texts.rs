//! What a campaign by SMS writes, each text as it will leave: with who writes it, where the law of the place wants that in it.
use super::{Fate, List};
use entities::{
    contact::{Model as Contact, SkipReason},
    sms_message::Encoding,
    values::Cents,
};
use rules::{
    campaign::message_template::Filled,
    law::{Facts, NoRoom},
    sms::text::SmsText,
    template::Unfilled,
};

/// One to each who will be written to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Texts {
    pub messages: i64,
    pub segments: i64,
    pub cost: Cents,
    /// Segments of the longest one.
    pub most_segments: i32,
    /// Those that do not fit into the GSM alphabet.
    pub ucs2: i64,
    /// Those that have a last line by the law.
    pub signed: i64,
    /// Characters that it takes at most.
    pub most_added: i32,
}

impl Texts {
    fn add(&mut self, text: &SmsText) {
        self.messages += 1;
        self.segments += i64::from(text.segments);
        self.most_segments = self.most_segments.max(text.segments);
        self.ucs2 += i64::from(text.encoding == Encoding::Ucs2);
        self.signed += i64::from(text.added > 0);
        self.most_added = self.most_added.max(i32::try_from(text.added).unwrap_or(i32::MAX));
    }
}

impl List<'_> {
    /// What becomes of somebody, now that the text is written: it is counted; one that is too long, also with who writes it, or empty is not
    /// sent.
    pub(super) fn written(&mut self, fate: Fate, contact: &Contact, facts: Option<&Facts>) -> Fate {
        let (Fate::Called(_), Some(template), Some(facts)) = (fate, &self.template, facts) else {
            return fate;
        };
        let body = match template.fill(&self.row.plan, contact) {
            Ok(Filled::Sms(body)) => body,
            // Whoever lacks a variable keeps the campaign from being started: that is told by itself.
            Ok(Filled::Email { .. }) | Err(Unfilled::Missing(_)) => return fate,
            Err(Unfilled::TooLong | Unfilled::Empty) => return Fate::Skipped(SkipReason::Invalid),
        };
        match self.legal.text(facts, body) {
            Ok(text) => {
                self.texts.add(&text);
                fate
            }
            Err(NoRoom { rule, .. }) => {
                self.law.bar(rule);
                Fate::Skipped(SkipReason::Invalid)
            }
        }
    }
}
