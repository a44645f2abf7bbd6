//! I2: every fact has its event, and every event its fact.
use super::{
    books::Message,
    check::Evidence,
    facts::{Campaign, Contact, Event, Facts, Session, Totals, by},
};
use std::collections::HashMap;

/// I2: "events <-> facts one to one: each session 1 `session.created`; `started` iff started_at; exactly 1 of `ended`
/// (status completed) / `failed` (other) per terminal session; each contact exactly 1 of completed/failed/skipped;
/// `contact_dispatched` count = sessions of the contact; skipped => 0 sessions; `campaign.completed` exactly 1, its
/// three counts = counted rows; per session at most 1 disposition; no event without its row".
pub fn events_match_facts(_: &Evidence, facts: &Facts<'_>) -> Vec<String> {
    let mut books = Books::of(facts);
    facts.events.iter().for_each(|event| books.event(event));
    facts.sessions.iter().for_each(|session| books.session(session));
    facts.contacts.iter().for_each(|contact| books.contact(contact));
    facts.campaigns.iter().for_each(|campaign| books.campaign(campaign));
    books.found
}

struct Books<'r, 'a> {
    facts: &'r Facts<'a>,
    /// Events by subject and type.
    events: HashMap<(&'a str, &'a str), Vec<&'r Event<'a>>>,
    /// Sessions by contact and by campaign.
    calls_to: HashMap<&'a str, Vec<&'r Session<'a>>>,
    calls_of: HashMap<&'a str, Vec<&'r Session<'a>>>,
    /// Messages by contact and by campaign.
    letters_to: HashMap<&'a str, Vec<&'r Message<'a>>>,
    letters_of: HashMap<&'a str, Vec<&'r Message<'a>>>,
    /// Contacts of a campaign.
    lists: HashMap<&'a str, i64>,
    found: Vec<String>,
}

impl<'r, 'a> Books<'r, 'a> {
    fn of(facts: &'r Facts<'a>) -> Self {
        let mut lists = HashMap::new();
        for contact in &facts.contacts {
            *lists.entry(contact.campaign).or_default() += 1;
        }
        Books {
            facts,
            events: by(&facts.events, |event| Some((event.subject?, event.kind))),
            calls_to: by(&facts.sessions, |session| session.contact),
            calls_of: by(&facts.sessions, |session| session.campaign),
            letters_to: by(&facts.messages, |message| message.contact),
            letters_of: by(&facts.messages, |message| message.campaign),
            lists,
            found: Vec::new(),
        }
    }

    fn events(&self, subject: &'a str, kind: &'static str) -> &[&'r Event<'a>] {
        self.events.get(&(subject, kind)).map_or(&[], Vec::as_slice)
    }

    fn expect(&mut self, subject: &'a str, kind: &'static str, count: usize) {
        let are = self.events(subject, kind).len();
        if are != count {
            self.found
                .push(format!("{are} {kind} of {subject}, where {count} must be"));
        }
    }

    /// "no event without its row", which is a row of the same tenant and env.
    fn event(&mut self, event: &Event<'a>) {
        let Event { id, kind, .. } = event;
        let facts = self.facts;
        let subject = event.subject.unwrap_or_default();
        let owner = if kind.starts_with("session.") || *kind == "function.timeout" {
            facts.session(subject).map(|row| (row.tenant, row.env))
        } else if kind.starts_with("campaign.contact_") {
            facts.contact(subject).map(|row| (row.tenant, row.env))
        } else if kind.starts_with("campaign.") {
            facts.campaign(subject).map(|row| (row.tenant, row.env))
        } else {
            return;
        };
        match owner {
            None => self
                .found
                .push(format!("{kind} {id} is about {subject}, which does not exist")),
            Some(owner) if owner != (event.tenant, event.env) => {
                self.found
                    .push(format!("{kind} {id} is of another tenant or env than {subject}"));
            }
            Some(_) => {}
        }
        if let Some(session) = event.session
            && kind.starts_with("campaign.contact_")
            && facts.session(session).map(|session| session.contact) != Some(event.subject)
            && facts.message(session).map(|message| message.contact) != Some(event.subject)
        {
            self.found.push(format!(
                "{kind} {id} names session {session}, which is not one of contact {subject}"
            ));
        }
    }

    fn session(&mut self, session: &Session<'a>) {
        let id = session.id;
        self.expect(id, "session.created", 1);
        self.expect(id, "session.started", session.started_at.is_some().into());
        let completed = session.status == "completed";
        self.expect(id, "session.ended", (session.is_over() && completed).into());
        self.expect(id, "session.failed", (session.is_over() && !completed).into());
        if self.events(id, "session.disposition_set").len() > 1 {
            self.found
                .push(format!("more than one session.disposition_set of {id}"));
        }
        let contact = session.contact.map(|contact| self.facts.contact(contact));
        let fits = |contact: &Contact<'_>| {
            (Some(contact.campaign), contact.tenant, contact.env) == (session.campaign, session.tenant, session.env)
        };
        if contact.is_some_and(|contact| !contact.is_some_and(fits)) {
            self.found.push(format!(
                "session {id} does not belong to its contact's campaign, tenant and env"
            ));
        }
    }

    fn contact(&mut self, contact: &Contact<'a>) {
        let id = contact.id;
        let ends = [
            ("completed", "campaign.contact_completed"),
            ("failed", "campaign.contact_failed"),
            ("skipped", "campaign.contact_skipped"),
        ];
        for (state, kind) in ends {
            self.expect(id, kind, (contact.state == state).into());
        }
        let sessions = self.calls_to.get(id).map_or(0, Vec::len) + self.letters_to.get(id).map_or(0, Vec::len);
        self.expect(id, "campaign.contact_dispatched", sessions);
        // As many as sessions, each about another one: then every session has its own.
        let mut named: Vec<_> = self
            .events(id, "campaign.contact_dispatched")
            .iter()
            .map(|event| event.session)
            .collect();
        named.sort_unstable();
        if named.contains(&None) || named.windows(2).any(|pair| pair[0] == pair[1]) {
            self.found.push(format!(
                "the campaign.contact_dispatched of {id} do not name each session once"
            ));
        }
        if contact.state == "skipped" && sessions > 0 {
            self.found
                .push(format!("contact {id} is skipped, and has {sessions} sessions"));
        }
        let campaign = self.facts.campaign(contact.campaign);
        if campaign.is_none_or(|campaign| (campaign.tenant, campaign.env) != (contact.tenant, contact.env)) {
            self.found
                .push(format!("contact {id} does not belong to its campaign's tenant and env"));
        }
    }

    fn campaign(&mut self, campaign: &Campaign<'a>) {
        let id = campaign.id;
        self.expect(id, "campaign.created", 1);
        let ran = campaign.moves.iter().any(|step| step.to == "running");
        self.expect(id, "campaign.started", ran.into());
        self.expect(id, "campaign.completed", (campaign.status == "completed").into());
        if self.facts.may_be_incomplete(campaign.tenant, id) {
            return;
        }
        let sessions = self.calls_of.get(id).map_or(&[][..], Vec::as_slice);
        let count = |completed| {
            let of_kind = |session: &&&Session<'_>| session.is_over() && (session.status == "completed") == completed;
            let letters = self.letters_of.get(id).map_or(&[][..], Vec::as_slice).iter();
            let letters = letters.filter(|message| message.is_over() && message.has_arrived() == completed);
            i64::try_from(sessions.iter().filter(of_kind).count() + letters.count()).unwrap_or(i64::MAX)
        };
        let counted = Totals {
            contacts: self.lists.get(id).copied().unwrap_or_default(),
            completed_sessions: count(true),
            failed_sessions: count(false),
        };
        if campaign.totals != counted {
            let stored = campaign.totals;
            self.found.push(format!(
                "campaign {id} has the totals {stored:?}, the rows say {counted:?}"
            ));
        }
        let told = self
            .events(id, "campaign.completed")
            .iter()
            .filter_map(|event| event.totals);
        let wrong: Vec<_> = told.filter(|told| *told != counted).collect();
        for told in wrong {
            self.found.push(format!(
                "campaign.completed of {id} says {told:?}, the rows say {counted:?}"
            ));
        }
    }
}
