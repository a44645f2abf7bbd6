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
    /// What becomes of somebody, now that the text is written: it is counted; one that has no room for who writes it is not sent.
    pub(super) fn written(&mut self, fate: Fate, contact: &Contact, facts: Option<&Facts>) -> Fate {
        let (Fate::Called(_), Some(template), Some(facts)) = (fate, &self.template, facts) else {
            return fate;
        };
        // Whoever lacks a variable keeps the campaign from being started: that is told by itself.
        let Ok(Filled::Sms(body)) = template.fill(&self.row.plan, contact) else {
            return fate;
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
