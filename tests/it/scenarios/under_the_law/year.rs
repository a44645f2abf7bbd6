//! A year of campaigns into twelve places, through the whole service: over changes of the clocks, holidays, and days on which laws begin.
//! What the record says of each call is put before the oracle of [`crate::law_oracle`], which knows COMPLIANCE.md and not the pack. Of
//! whoever is called it is told what is true, which is noted here beside the service, and not what the service took for true.
//!
//! With more people: `CALLBOARD_TEST_LAW_PEOPLE=30`, which is the most.
use super::{CALLER, SELLER, campaign, cancel, consent, draft, number, person_by, seller, start};
use crate::{
    law_oracle::oracle::{LAWS, may},
    world::{Api, Backend, Tenant, World, minutes, run_from, seconds},
};
use chrono::NaiveDate;
use chrono_tz::{America, Australia, Europe, Tz};
use entities::{
    attempt::{self, Filter, NPage},
    dnc::DncChannel,
    ids::{AttemptId, RegisterId},
    law::{ConsentTier, Purpose},
    values::{E164, Env, Moment},
};
use rules::law::{
    facts::{ConsentFact, Facts, RegisterFact},
    record::{AttemptBody, Person},
};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use uuid::Uuid;

/// On the first Monday of which the oracle knows whether it is a holiday.
const BEGINS: &str = "2026-03-02T13:00:00Z";

/// At each of them some places are open and others are not.
const STOPS: [&str; 20] = [
    // 9:00 in Texas, and its first minute.
    "2026-03-02T15:00:00Z",
    // Sunday. Clocks in North America have just been put forward: 12:30 in New York, 11:30 in Texas.
    "2026-03-08T16:30:00Z",
    // 9:30 in New York, 8:30 in Texas.
    "2026-03-09T13:30:00Z",
    // The day after they were in Europe: 9:30 in Berlin, 8:30 in London, 18:30 in Sydney.
    "2026-03-30T07:30:00Z",
    // Good Friday, and Easter Monday.
    "2026-04-03T08:00:00Z",
    "2026-04-06T08:30:00Z",
    // They have been put back in Australia: 19:30 in Sydney.
    "2026-04-07T09:30:00Z",
    // Labour Day.
    "2026-05-01T08:30:00Z",
    // From the next day on the Netherlands want a consent of customers, too.
    "2026-06-30T14:00:00Z",
    "2026-07-01T14:00:00Z",
    // From the next day on France wants it in writing.
    "2026-08-10T12:30:00Z",
    "2026-08-11T12:30:00Z",
    // Forward again in Australia: 20:30 in Sydney.
    "2026-10-06T09:30:00Z",
    // Back in Europe: 9:30 in Berlin, 8:30 in London.
    "2026-10-26T08:30:00Z",
    // And in North America: 8:30 in New York.
    "2026-11-02T13:30:00Z",
    // Armistice.
    "2026-11-11T14:30:00Z",
    // Christmas.
    "2026-12-25T15:00:00Z",
    // Epiphany.
    "2027-01-06T09:00:00Z",
    // Forward again in North America: 9:30 in New York.
    "2027-03-15T13:30:00Z",
    // Easter Monday, the day after they were in Europe.
    "2027-03-29T12:30:00Z",
];
/// After this one some people agree who had not.
const AGREED_AFTER: usize = 5;
/// After this one some want no more calls.
const LEFT_AFTER: usize = 9;

/// The clocks by which people live in the oracle's places.
const ZONES: [Tz; 12] = [
    America::New_York,
    America::New_York,
    America::Chicago,
    America::New_York,
    America::Toronto,
    Europe::London,
    Europe::Berlin,
    Europe::Paris,
    Europe::Madrid,
    Europe::Rome,
    Europe::Amsterdam,
    Australia::Sydney,
];
/// Places of one campaign.
const TOGETHER: usize = 4;
/// Shown beside the other number: people in Britain want a British one.
const BRITISH: &str = "+442071838750";
/// At every other stop each of them is given out anew.
const REGISTERS: [&str; 5] = ["us_dnc", "ca_dncl", "uk_tps", "it_rpo", "au_dncr"];

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    /// Has agreed in writing.
    Agreed,
    /// Has said yes.
    Said,
    /// Has a contract.
    Customer,
    Stranger,
    /// Is in the registers, and has agreed; in Australia, where registers count most, has not.
    Listed,
    /// Has agreed, and wants no more calls from some day on.
    Leaver,
    /// Has agreed until some day.
    Ending,
    /// Agrees in the course of the year.
    Late,
}

const KINDS: [Kind; 8] = [
    Kind::Agreed,
    Kind::Said,
    Kind::Customer,
    Kind::Stranger,
    Kind::Listed,
    Kind::Leaver,
    Kind::Ending,
    Kind::Late,
];

/// Somebody, and what is true of them.
struct Somebody {
    /// Which of the oracle's.
    place: usize,
    kind: Kind,
    number: String,
    consent: Option<ConsentFact>,
    left_at: Option<Moment>,
}

/// All registers as they were given out one day.
struct Edition {
    fetched_at: Moment,
    /// From then on the service has it.
    since: Moment,
}

/// A call as it is on record.
struct Attempt {
    id: AttemptId,
    number: E164,
    facts: Facts,
}

/// Where, whom, and on which day of UTC.
type Called = BTreeSet<(&'static str, Kind, NaiveDate)>;

fn moment(text: &str) -> Moment {
    Moment::parse(text).unwrap()
}

/// People of each kind in each place.
fn of_each_kind() -> usize {
    let given = std::env::var("CALLBOARD_TEST_LAW_PEOPLE").ok();
    given.and_then(|text| text.parse().ok()).unwrap_or(1).min(30)
}

fn everybody() -> Vec<Somebody> {
    let mut people = Vec::new();
    for place in 0..LAWS.len() {
        for (nth, kind) in KINDS.into_iter().enumerate() {
            for n in 0..of_each_kind() {
                people.push(Somebody {
                    place,
                    kind,
                    // Busy, whenever it is called.
                    number: format!("+15003{:02}{nth}{n:02}1", place + 20),
                    consent: None,
                    left_at: None,
                });
            }
        }
    }
    people
}

impl Somebody {
    fn place(&self) -> &'static str {
        LAWS[self.place].place
    }

    fn agrees_before(&self) -> bool {
        match self.kind {
            Kind::Agreed | Kind::Said | Kind::Customer | Kind::Leaver | Kind::Ending => true,
            Kind::Listed => self.place() != "AU",
            Kind::Stranger | Kind::Late => false,
        }
    }

    async fn agree(&mut self, api: &Api, given_at: Moment) {
        let tier = match self.kind {
            Kind::Said => ConsentTier::Express,
            Kind::Customer => ConsentTier::ExistingContract,
            _ => ConsentTier::ExpressWritten,
        };
        let expires_at = (self.kind == Kind::Ending).then(|| moment("2026-07-15T00:00:00Z"));
        let contract_ref = "C-1042";
        let given =
            json!({ "tier": tier, "given_at": given_at, "expires_at": expires_at, "contract_ref": contract_ref });
        let id = consent(api, &self.number, given).await;
        self.consent = Some(ConsentFact {
            id: id.parse().unwrap(),
            tier,
            seller: SELLER.to_owned(),
            purposes: vec![Purpose::Marketing],
            channels: vec![DncChannel::Phone, DncChannel::Sms],
            covers_automated_voice: true,
            given_at,
            expires_at,
            contract_ref: Some(contract_ref.to_owned()),
        });
    }

    /// By one of the ways in which somebody may say so.
    async fn leave(&mut self, api: &Api, now: Moment) {
        match &self.consent {
            Some(consent) if self.place.is_multiple_of(2) => {
                let path = format!("/v1/consents/{}/revoke", consent.id);
                api.post(&path, json!({})).await.ok();
            }
            _ => {
                let entry = json!({ "phone_number": self.number });
                api.post("/v1/dnc", entry).await.ok();
            }
        }
        self.left_at = Some(now);
    }

    /// Of a call to them: its moment, and who calls, as they are on record; of themselves what is true.
    fn facts(&self, recorded: Facts, recent: Vec<Moment>, editions: &[Edition]) -> Facts {
        let at = recorded.at;
        let newest = editions.iter().rev().find(|edition| edition.since <= at);
        let registers = newest.map_or_else(Vec::new, |edition| {
            let fact = |name: &str| RegisterFact {
                id: RegisterId(Uuid::nil()),
                name: name.to_owned(),
                version: 1,
                fetched_at: edition.fetched_at,
                is_listed: self.kind == Kind::Listed,
                listed_on: None,
                asked_at: None,
            };
            Vec::from(REGISTERS.map(fact))
        });
        Facts {
            channel: DncChannel::Phone,
            purpose: Purpose::Marketing,
            vertical: None,
            places: vec![self.place().parse().unwrap()],
            zones: vec![ZONES[self.place].into()],
            seller: Some(SELLER.to_owned()),
            consent: self.consent.clone(),
            is_barred: self.left_at.is_some_and(|left_at| left_at < at),
            recent,
            registers,
            overrides: Vec::new(),
            ..recorded
        }
    }
}

/// Before a key has made more requests than it may.
async fn breathe(world: &World, requests: usize) {
    if requests % 40 == 39 {
        world.advance(seconds(1)).await;
    }
}

/// The registers as they are given out on that day.
async fn give_out(world: &World, api: &Api, people: &[Somebody], day: &str) -> Edition {
    let listed = people.iter().filter(|somebody| somebody.kind == Kind::Listed);
    let file: String = listed.map(|somebody| format!("{}\n", somebody.number)).collect();
    for name in REGISTERS {
        let path = format!("/v1/registers/{name}/files?fetched_at={day}");
        api.upload(&path, file.clone()).await.ok();
    }
    Edition {
        fetched_at: moment(&format!("{day}T00:00:00Z")),
        since: world.clock.now(),
    }
}

/// Starts campaigns to everybody.
async fn begin(tenant: &Tenant, agent: &str, people: &[Somebody]) -> Vec<String> {
    let mut begun = Vec::new();
    for first in (0..LAWS.len()).step_by(TOGETHER) {
        let there = people
            .iter()
            .filter(|somebody| (first..first + TOGETHER).contains(&somebody.place));
        let contacts: Vec<Value> = there
            .map(|somebody| person_by(&somebody.number, somebody.place(), ZONES[somebody.place].name()))
            .collect();
        let more = json!({ "agent_id": agent, "from_numbers": [CALLER, BRITISH] });
        let path = draft(tenant, &contacts, more).await;
        start(tenant, &path).await;
        begun.push(path);
    }
    begun
}

/// How many of their contacts have been called, and how many have not.
async fn called_and_left(tenant: &Tenant, campaigns: &[String]) -> (i64, i64) {
    let (mut called, mut left) = (0, 0);
    for path in campaigns {
        let row = campaign(tenant, path).await;
        let count = |name: &str| row["counts"][name].as_i64().unwrap();
        let untouched = count("pending") + count("skipped");
        called += count("total") - untouched;
        left += untouched;
    }
    (called, left)
}

async fn end(world: &World, tenant: &Tenant, campaigns: &[String]) {
    for path in campaigns {
        if campaign(tenant, path).await["status"] != "completed" {
            cancel(world, tenant, path).await;
        }
    }
}

/// Some agree, and some want no more calls, while nobody is being called.
async fn change_minds(world: &World, api: &Api, people: &mut [Somebody], stop: usize) {
    let whose = match stop {
        AGREED_AFTER => Kind::Late,
        LEFT_AFTER => Kind::Leaver,
        _ => return,
    };
    let these = people.iter_mut().filter(|somebody| somebody.kind == whose);
    for (n, somebody) in these.enumerate() {
        let now = world.clock.now();
        match whose {
            Kind::Leaver => somebody.leave(api, now).await,
            _ => somebody.agree(api, now).await,
        }
        breathe(world, n).await;
    }
    world.advance(seconds(1)).await;
}

async fn recorded(world: &World, tenant: &Tenant) -> Vec<Attempt> {
    let all = NPage {
        limit: 1_000_000,
        after: None,
        newest_first: false,
    };
    let owner = (tenant.id, Env::Test);
    let listed = attempt::list(&world.deps().db.read, owner, Filter::default(), all).await;
    let (rows, _) = listed.unwrap();
    let attempts = rows.into_iter().map(|row| {
        let body: AttemptBody = serde_json::from_str(&row.body).unwrap();
        let person: Person = serde_json::from_str(row.content.as_deref().unwrap()).unwrap();
        assert!(!body.observed && body.overrides.is_empty(), "{}", row.body);
        Attempt {
            id: row.attempt_id,
            number: person.phone_number.unwrap(),
            facts: body.facts,
        }
    });
    attempts.collect()
}

/// What breaks a rule, and who was called.
fn judged(people: &[Somebody], editions: &[Edition], attempts: &[Attempt]) -> (Vec<String>, Called) {
    let by_number: BTreeMap<&str, &Somebody> = people
        .iter()
        .map(|somebody| (somebody.number.as_str(), somebody))
        .collect();
    let mut tried: BTreeMap<&str, Vec<(AttemptId, Moment)>> = BTreeMap::new();
    let (mut breaches, mut called) = (Vec::new(), Called::new());
    for attempt in attempts {
        let somebody = by_number[attempt.number.as_str()];
        let before = tried.entry(attempt.number.as_str()).or_default();
        // One that its carrier had no room for at first is one call all the same.
        let others = before.iter().filter(|(id, _)| *id != attempt.id);
        let recent: Vec<Moment> = others.map(|(_, at)| *at).collect();
        let at = attempt.facts.at;
        before.push((attempt.id, at));
        let facts = somebody.facts(attempt.facts.clone(), recent, editions);
        if let Err(rule) = may(&LAWS[somebody.place], &facts) {
            breaches.push(format!("{}, {:?}: {rule}: {facts:#?}", somebody.place(), somebody.kind));
        }
        called.insert((somebody.place(), somebody.kind, at.datetime().date_naive()));
    }
    (breaches, called)
}

/// Else nothing was asked. `held`: people who were not called at a stop.
fn assert_something_happened(attempts: usize, held: i64, called: &Called) {
    println!("{attempts} were called, {held} were held back");
    assert!(attempts > 200 && held > 200, "{attempts} and {held}");
    for law in &LAWS {
        let there = called.iter().filter(|(place, _, _)| *place == law.place);
        let days: BTreeSet<NaiveDate> = there.map(|(_, _, day)| *day).collect();
        assert!(days.len() > 2, "{}: {days:?}", law.place);
    }
    // Whoever is not called from some day on was called until then.
    for (place, kind, expected) in [
        ("NL", Kind::Customer, "2026-06-30"),
        ("FR", Kind::Said, "2026-08-10"),
        ("DE", Kind::Leaver, "2026-07-01"),
        ("DE", Kind::Ending, "2026-07-01"),
        ("DE", Kind::Late, "2027-03-15"),
    ] {
        let of_theirs = called.iter().filter(|(there, who, _)| *there == place && *who == kind);
        let last: Option<NaiveDate> = of_theirs.map(|(_, _, day)| *day).max();
        let last = last.map(|day| day.to_string());
        assert_eq!(last.as_deref(), Some(expected), "{place}, {kind:?}");
    }
}

async fn a_year(world: &mut World) {
    let tenant = seller(world).await;
    number(world, &tenant, BRITISH).await;
    let agent = tenant.agent().await;
    let mut people = everybody();
    let before = moment("2026-03-01T12:00:00Z");
    let these = people.iter_mut().filter(|somebody| somebody.agrees_before());
    for (n, somebody) in these.enumerate() {
        somebody.agree(&tenant.api, before).await;
        breathe(world, n).await;
    }
    let (mut editions, mut running, mut held) = (Vec::new(), VecDeque::new(), 0);
    for (n, stop) in STOPS.into_iter().enumerate() {
        // Campaigns of the last stops that sleep, or wait for a register, go on by themselves.
        world.leap_to(moment(stop)).await;
        if n.is_multiple_of(2) {
            editions.push(give_out(world, &tenant.api, &people, &stop[..10]).await);
        }
        world.advance(seconds(1)).await;
        let begun = begin(&tenant, &agent, &people).await;
        world.advance(minutes(1)).await;
        let (called, left) = called_and_left(&tenant, &begun).await;
        assert_eq!(called + left, people.len() as i64, "{stop}: everybody was taken in");
        assert!(called > 0 && left > 0, "{stop}: {called} and {left}");
        held += left;
        change_minds(world, &tenant.api, &mut people, n).await;
        running.push_back(begun);
        if running.len() > 2 {
            end(world, &tenant, &running.pop_front().unwrap()).await;
        }
    }
    for begun in running {
        end(world, &tenant, &begun).await;
    }
    let attempts = recorded(world, &tenant).await;
    let (breaches, called) = judged(&people, &editions, &attempts);
    let shown = breaches.iter().take(5).cloned().collect::<Vec<_>>().join("\n");
    assert!(breaches.is_empty(), "{} breaches, such as\n{shown}", breaches.len());
    assert_something_happened(attempts.len(), held, &called);
}

mod the_oracle_allows_a_year_of_campaigns {
    use super::*;

    #[test]
    fn on_sqlite() {
        run_from(BEGINS, Backend::Sqlite, a_year);
    }

    #[test]
    fn on_postgres() {
        run_from(BEGINS, Backend::Postgres, a_year);
    }
}
