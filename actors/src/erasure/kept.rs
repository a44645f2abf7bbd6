//! What stays of a person after an erasure, and why: told with the rules of the law that want it so.
use super::Job;
use crate::compliance;
use entities::{
    Result, dnc, email_message,
    erasure::{AllKept, Kept, KeptKind},
    session, sms_message,
};
use rules::{
    barred::Whom,
    law::{LawRule, Says, places_of},
};

/// What is kept for every person alike.
const ELSEWHERE: [(KeptKind, &str); 4] = [
    (
        KeptKind::Receivers,
        "what your own receivers of webhooks have stored, and what was downloaded (exports, files of people), is yours to erase",
    ),
    (
        KeptKind::Answers,
        "answers to requests with an Idempotency-Key are kept, encrypted, for 24 hours",
    ),
    (
        KeptKind::Ledger,
        "its entries name calls and messages by their ids, not people",
    ),
    (
        KeptKind::Backups,
        "copies of the database hold it as long as the operator keeps them",
    ),
];

impl Job<'_> {
    pub(super) async fn kept(&self) -> Result<AllKept> {
        let days = self.deps.limits.retention.events.as_secs() / (24 * 3600);
        let (calls, messages) = (self.kept_calls().await?, self.kept_messages().await?);
        let mut all = Vec::new();
        let mut keep = |what, count: Option<i64>, why: String, rules: Vec<String>| {
            if count != Some(0) {
                all.push(Kept {
                    what,
                    count,
                    why,
                    rules,
                });
            }
        };
        keep(
            KeptKind::Attempts,
            Some(self.kept_attempts),
            "when and with which verdicts it was tried, and what came of it: the law wants it for years, and nobody can be told apart by it \
             but with this server's key"
                .into(),
            self.laws(|says| matches!(says, Says::KeepRecord { .. })),
        );
        keep(
            KeptKind::Consents,
            Some(self.kept_consents),
            "a consent is kept for five years after it was given and after each use, as proof, and with it the recording that it names"
                .into(),
            self.laws(|says| matches!(says, Says::Consent { .. })),
        );
        keep(
            KeptKind::DoNotCall,
            Some(i64::from(self.is_listed().await?)),
            "without it the person could be called again".into(),
            self.laws(|says| matches!(says, Says::HonourOptOut { .. } | Says::OwnList {})),
        );
        keep(
            KeptKind::Calls,
            Some(calls),
            "numbers, times, cost and disposition, and since when the person is to be left in peace: caps and rests are counted from them, and the \
             ledger refers to them"
                .into(),
            Vec::new(),
        );
        keep(
            KeptKind::Messages,
            Some(messages),
            "to whom and when: caps are counted from it, and the ledger refers to it".into(),
            Vec::new(),
        );
        keep(
            KeptKind::Contacts,
            Some(self.row.erased.contacts),
            "that somebody was in a campaign and what became of that, not who; those that were never called are gone"
                .into(),
            Vec::new(),
        );
        let told = format!("what happened was told by events, which are kept for {days} days");
        keep(KeptKind::Events, None, told, Vec::new());
        for (what, why) in ELSEWHERE {
            keep(what, None, why.to_owned(), Vec::new());
        }
        Ok(AllKept(all))
    }

    /// Those whose number and times are there, whenever what was said went. An address does not stay with a call: of one, those that went now.
    async fn kept_calls(&self) -> Result<i64> {
        match &self.whom {
            Whom::Number(number) => session::count_of_number(&self.deps.db.reports, self.owner(), number).await,
            Whom::Email(_) => Ok(self.row.erased.sessions),
        }
    }

    async fn kept_messages(&self) -> Result<i64> {
        let (db, owner) = (&self.deps.db.reports, self.owner());
        match &self.whom {
            Whom::Number(number) => sms_message::count_of_number(db, owner, number).await,
            Whom::Email(email) => email_message::count_of_address(db, owner, email).await,
        }
    }

    async fn is_listed(&self) -> Result<bool> {
        let (db, owner) = (&self.deps.db.read, self.owner());
        let entry = match &self.whom {
            Whom::Number(number) => dnc::of_number(db, owner, number).await?,
            Whom::Email(email) => dnc::of_email(db, owner, email).await?,
        };
        Ok(entry.is_some())
    }

    /// The rules of the places where the person may be that say such a thing.
    fn laws(&self, is_such: impl Fn(&Says) -> bool) -> Vec<String> {
        let law = compliance::law(self.deps);
        let places = match &self.whom {
            Whom::Number(number) => places_of(number, None).0,
            Whom::Email(_) => Vec::new(),
        };
        let is_there = |rule: &&LawRule| match places.as_slice() {
            [] => rule.places.is_everywhere || rule.places.is_nowhere,
            places => places.iter().any(|place| compliance::holds_in(law, rule, place)),
        };
        let rules = law
            .pack
            .rules
            .iter()
            .filter(|rule| is_such(&rule.says))
            .filter(is_there);
        rules.map(|rule| rule.id.clone()).collect()
    }
}
