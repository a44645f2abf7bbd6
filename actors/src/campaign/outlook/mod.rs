//! What is to be expected of a campaign: who can be called, who cannot and why, and when it will be through. By the rules that the
//! dispatcher asks, contact by contact: what is said here is what will happen, if nobody changes anything.
mod forecast;
mod law;
mod texts;

pub use law::{LawCount, LawCounts};
pub use texts::Texts;

use crate::{
    deps::Deps,
    legal::{self, Asked},
    people::{People, people},
    registers::asking::Unanswered,
};
use entities::{
    Result, boxed,
    campaign::{Channel, Model as Row, OnCap},
    campaign_hour,
    contact::{self, Address, Model as Contact, SkipReason, Status, UNCALLABLE, WaitReason},
    number, sip_trunk, tenant,
    values::{Env, Moment},
};
use forecast::{Forecast, Group, Run, foresee};
use rules::{
    campaign::message_template::MessageTemplate,
    dispatch::concurrency::Concurrency,
    eligibility::{self, ContactRecord, RING_MS, Rule, Verdict},
    hours::{self, CallingHours, Rules},
    law::{Facts, LegalTerms},
};
use std::{
    collections::HashMap,
    time::{Duration, Instant},
};

/// Who will be called, as far as can be told now.
#[derive(Clone, Debug)]
pub struct Outlook {
    pub groups: Vec<Group>,
    pub open: i64,
    pub eligible: i64,
    pub skips: Skips,
    /// Numbers that will have been called as often as the caps allow when their turn comes: put off, or skipped.
    pub capped: i64,
    /// Calls per second that can be expected.
    pub calls_per_second: f64,
    pub finishes_at: Option<Moment>,
    /// What the law keeps from being reached, rule by rule.
    pub law: LawCounts,
    /// What is written; none: it is no campaign by SMS.
    pub texts: Option<Texts>,
}

/// Who will be skipped. Somebody who was called before fails instead, and is not among them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Skips {
    pub invalid: i64,
    pub barred: i64,
    pub capped: i64,
    pub expired: i64,
}

/// Seconds of a call of which nothing is known yet.
const USUAL_CALL_SECONDS: f64 = 45.0;

/// Contacts that are judged at once: a millisecond or two, after which others have their turn, and a look that nobody waits for
/// any more ends.
const AT_ONCE: u64 = 150;
/// The longest rest after a page.
const REST: Duration = Duration::from_millis(50);
/// Runs of contacts that are kept apart.
const MOST_RUNS: usize = 200_000;
/// A rule may put somebody off until another one does; so often at most.
const MOST_WAITS: usize = 16;

/// Reads the contacts page by page, on the connections that whole lists are read by.
#[boxed]
pub async fn look(deps: &Deps, row: &Row) -> Result<Outlook> {
    let (db, now) = (&deps.db.read, deps.clock.now());
    let tenant = tenant::load(db, row.tenant_id).await?;
    let legal = legal::of_campaign(deps, db, row).await?;
    let rules = Rules::new(&row.plan.schedule, row.env, tenant.timezone).under(legal::hours(&legal));
    let terms = eligibility::Terms {
        caps: &row.plan.caps,
        ends_at: rules.ends_at,
        ring_ms: RING_MS,
        suspended_since: None,
        credits_gone: false,
        behind_ms: deps.clock.times().behind_ms(),
    };
    let template = MessageTemplate::read(&row.plan).ok().flatten();
    let mut list = List {
        deps,
        row,
        rules: &rules,
        legal: &legal,
        template: template.filter(|_| row.plan.channel == Channel::Sms),
        terms,
        starts: row.plan.schedule.starts_at.map_or(now, |at| at.max(now)),
        now,
        groups: Vec::new(),
        names: HashMap::new(),
        runs: Vec::new(),
        last_runs: HashMap::new(),
        skips: Skips::default(),
        capped: 0,
        open: 0,
        law: LawCounts::default(),
        texts: Texts::default(),
    };
    list.read().await?;
    let calls_per_second = rate(deps, row, Concurrency::of(&tenant, &deps.limits)).await?;
    let List {
        groups,
        runs,
        mut skips,
        capped,
        open,
        law,
        mut texts,
        ..
    } = list;
    let found = forecast(deps, row, &rules, &groups, runs, calls_per_second).await?;
    skips.capped += found.capped;
    skips.expired += found.expired;
    texts.cost = deps.limits.sms_price(texts.segments);
    Ok(Outlook {
        groups,
        open,
        eligible: found.called,
        skips,
        capped,
        calls_per_second,
        finishes_at: found.finishes_at,
        law,
        texts: (row.plan.channel == Channel::Sms).then_some(texts),
    })
}

/// A list that is read.
struct List<'a> {
    deps: &'a Deps,
    row: &'a Row,
    rules: &'a Rules,
    legal: &'a LegalTerms,
    /// What is written by SMS; none: nothing.
    template: Option<MessageTemplate>,
    terms: eligibility::Terms<'a>,
    starts: Moment,
    now: Moment,
    groups: Vec<Group>,
    names: HashMap<String, usize>,
    runs: Vec<Run>,
    /// The last one of each group and priority, of those who wait for their turn only.
    last_runs: HashMap<(usize, i32), usize>,
    skips: Skips,
    capped: i64,
    open: i64,
    law: LawCounts,
    texts: Texts,
}

/// What becomes of one contact, were it alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    /// From then on it is its turn; with the time that it waits for by itself.
    Called(Option<Moment>),
    Skipped(SkipReason),
}

impl List<'_> {
    async fn read(&mut self) -> Result<()> {
        let mut after = None;
        loop {
            let began = Instant::now();
            let page = contact::after(&self.deps.db.reports, self.row.id, after, AT_ONCE).await?;
            let Some(last) = page.last() else { return Ok(()) };
            after = Some(last.id);
            let is_last = (page.len() as u64) < AT_ONCE;
            self.judge(page).await?;
            if is_last {
                return Ok(());
            }
            // Whoever asks again and again has a quarter of a core at most.
            self.deps.clock.rest((began.elapsed() * 3).min(REST)).await;
        }
    }

    async fn judge(&mut self, mut page: Vec<Contact>) -> Result<()> {
        page.retain(|contact| matches!(contact.status, Status::Pending | Status::Waiting));
        let channel = self.row.plan.channel;
        let at = |contact: &Contact| contact.reachable_at().filter(|_| contact.channel == channel);
        let addresses: Vec<Option<Address>> = page.iter().map(at).collect();
        let whom = People {
            owner: (self.row.tenant_id, self.row.env),
            channel,
            itself: None,
        };
        let known = addresses.iter().flatten().cloned().collect();
        let mut known = people(self.deps, &self.deps.db.reports, whom, known, self.now).await?;
        let each = page.iter().zip(&addresses);
        let asked: Vec<Asked> = each
            .filter_map(|(contact, address)| Some(Asked::of(contact, address.clone()?)))
            .collect();
        let all = (&*asked, Unanswered::Leave);
        legal::learn(self.deps, whom.owner, self.legal, all, (&mut known, self.now)).await?;
        let mut asked = asked.iter();
        for (contact, address) in page.into_iter().zip(addresses) {
            let record = address.as_ref().and_then(|address| known.get(address)).cloned();
            let (mut record, mut facts) = (record.unwrap_or_default(), None);
            if let Some(asked) = address.and_then(|_| asked.next()) {
                let judged = self.legal.judged(asked.whom(), &record, None, (self.starts, 0));
                self.law.add(&judged.judgement);
                record.judgement = self.legal.is_enforced.then_some(judged.judgement);
                facts = Some(judged.facts);
            }
            self.add(&contact, record, facts.as_ref());
        }
        Ok(())
    }

    fn add(&mut self, contact: &Contact, mut record: ContactRecord, facts: Option<&Facts>) {
        record.not_before = contact.not_before;
        let anew = hours::regrouped(&self.legal.law, contact);
        let group = self.group(anew.as_deref().unwrap_or(&contact.zone));
        self.groups[group].contacts += 1;
        self.open += 1;
        let (fate, is_capped) = self.fate(contact, &record, group);
        self.capped += i64::from(is_capped);
        match self.written(fate, contact, facts) {
            Fate::Called(due) => self.turn(contact, group, due),
            Fate::Skipped(_) if contact.status == Status::Waiting => {}
            Fate::Skipped(reason) => {
                *match reason {
                    SkipReason::DncBlocked => &mut self.skips.barred,
                    SkipReason::DailyCapReached => &mut self.skips.capped,
                    SkipReason::QuietHoursExpired => &mut self.skips.expired,
                    SkipReason::Invalid | SkipReason::ConcurrencyFull | SkipReason::TenantSuspended => {
                        &mut self.skips.invalid
                    }
                } += 1;
            }
        }
    }

    fn turn(&mut self, contact: &Contact, group: usize, due: Option<Moment>) {
        let is_retry = contact.status == Status::Waiting;
        let priority = contact.priority;
        if due.is_none() {
            // Those who follow one another are one; in a list of many the order within a group is all that is kept.
            let key = (group, priority);
            let last = if self.runs.len() < MOST_RUNS {
                self.runs.len().checked_sub(1)
            } else {
                self.last_runs.get(&key).copied()
            };
            let last = last.filter(|last| {
                let run = &self.runs[*last];
                (run.group, run.priority, run.due) == (group, priority, None)
            });
            if let Some(last) = last {
                self.runs[last].contacts += 1;
                return;
            }
            self.last_runs.insert(key, self.runs.len());
        }
        // Retries: who has waited longest.
        let waited = due
            .filter(|_| is_retry)
            .and_then(|due| usize::try_from(due.millis()).ok());
        self.runs.push(Run {
            group,
            priority: if is_retry { 0 } else { priority },
            place: waited.unwrap_or(self.runs.len()),
            contacts: 1,
            due,
            is_retry,
        });
    }

    /// As the dispatcher asks: at the opening of its hours, or when its time has come. And whether a cap has a say in it.
    fn fate(&self, contact: &Contact, record: &ContactRecord, group: usize) -> (Fate, bool) {
        let group = &self.groups[group];
        let mut due = contact.next_attempt_at;
        let (ends_at, mut is_capped) = (self.terms.ends_at, false);
        if due.is_some_and(|due| ends_at.is_some_and(|end| due >= end)) {
            // Nobody asks before the end comes.
            return match contact.wait_reason {
                Some(WaitReason::Cap) => (Fate::Skipped(SkipReason::DailyCapReached), true),
                Some(WaitReason::Retry | WaitReason::NotBefore) | None => {
                    (Fate::Skipped(SkipReason::QuietHoursExpired), false)
                }
            };
        }
        let mut at = due.map_or(group.opens_at.unwrap_or(self.starts), |due| due.max(self.starts));
        for _ in 0..MOST_WAITS {
            // Whether its group is open then is known.
            let rules = match (due, group.opens_at) {
                (None, Some(_)) => Rule::BUT_HOURS,
                _ => &Rule::ALL[..],
            };
            let Some((rule, verdict)) = eligibility::first_no(rules, record, &group.calling_hours, &self.terms, at)
            else {
                break;
            };
            is_capped |= rule == Rule::Caps;
            match verdict {
                Verdict::Never(reason) => return (Fate::Skipped(reason), is_capped),
                // It is put away at the end.
                Verdict::Wait(Some(until)) if ends_at.is_some_and(|end| until >= end) => {
                    let reason = match rule {
                        Rule::Caps => SkipReason::DailyCapReached,
                        _ => SkipReason::QuietHoursExpired,
                    };
                    return (Fate::Skipped(reason), is_capped);
                }
                Verdict::Wait(Some(until)) => {
                    at = until;
                    due = Some(until);
                }
                Verdict::Wait(None) | Verdict::Yes => break,
            }
        }
        (Fate::Called(due), is_capped)
    }

    fn group(&mut self, name: &str) -> usize {
        if let Some(known) = self.names.get(name) {
            return *known;
        }
        self.groups.push(grouped(self.rules, self.starts, name, 0));
        self.names.insert(name.to_owned(), self.groups.len() - 1);
        self.groups.len() - 1
    }
}

fn grouped(rules: &Rules, starts: Moment, name: &str, contacts: i64) -> Group {
    let calling_hours = rules.of(name);
    let opens_at = match &calling_hours {
        CallingHours::Hours(hours) => hours.next_opening(starts, RING_MS),
        CallingHours::Uncallable => None,
    };
    let zones = if name == UNCALLABLE { None } else { rules.zones(name) };
    Group {
        zones: zones.unwrap_or_default(),
        contacts,
        calling_hours,
        opens_at: opens_at.filter(|at| rules.ends_at.is_none_or(|end| *at < end)),
    }
}

async fn forecast(
    deps: &Deps,
    row: &Row,
    rules: &Rules,
    groups: &[Group],
    runs: Vec<Run>,
    rate: f64,
) -> Result<Forecast> {
    let now = deps.clock.now();
    let starts = row.plan.schedule.starts_at.map_or(now, |at| at.max(now));
    let per_day = row.plan.caps.campaign_per_day.map(|most| i64::from(most.get()));
    let (begins, _) = hours::day_of(rules.zone, now);
    let is_today = starts < hours::day_of(rules.zone, now).1;
    let dialed = match per_day {
        Some(_) if is_today => campaign_hour::dialed_since(&deps.db.read, row.id, begins).await?,
        Some(_) | None => 0,
    };
    let terms = forecast::Terms {
        starts,
        ends_at: rules.ends_at,
        rate,
        per_day,
        dialed,
        zone: rules.zone,
        skips: row.plan.caps.on_cap == OnCap::Skip,
        behind_ms: deps.clock.times().behind_ms(),
    };
    Ok(foresee(groups, runs, &terms).await)
}

/// When a running campaign will be through, at its pace: of its contacts only how many there are is looked at.
#[boxed]
pub async fn finishes_at(deps: &Deps, row: &Row, open: i64) -> Result<Option<Moment>> {
    let (db, now) = (&deps.db.read, deps.clock.now());
    let tenant = tenant::load(db, row.tenant_id).await?;
    let legal = legal::of_campaign(deps, db, row).await?;
    let rules = Rules::new(&row.plan.schedule, row.env, tenant.timezone).under(legal::hours(&legal));
    // A long list is not counted at every look: its zones are taken to hold the same share each.
    let counted = if open > COUNTED {
        let names = contact::fresh_zones(db, row.id).await?;
        let share = open / i64::try_from(names.len()).unwrap_or(1).max(1);
        names.into_iter().map(|name| (name, share)).collect()
    } else {
        contact::waiting_by_zone(db, row.id).await?
    };
    let starts = row.plan.schedule.starts_at.map_or(now, |at| at.max(now));
    let groups: Vec<Group> = counted
        .iter()
        .map(|(name, contacts)| grouped(&rules, starts, name, *contacts))
        .collect();
    let rate = rate(deps, row, Concurrency::of(&tenant, &deps.limits)).await?;
    let found = forecast(deps, row, &rules, &groups, mixed(&groups), rate).await?;
    Ok(found.finishes_at)
}

/// Each group in so many parts, that take turns as if they were mixed in the list; fewer of many groups.
const PARTS: usize = 64;
const ALL_PARTS: usize = 2_048;

fn mixed(groups: &[Group]) -> Vec<Run> {
    let parts = i64::try_from((ALL_PARTS / groups.len().max(1)).clamp(1, PARTS)).unwrap_or(1);
    let mut runs = Vec::new();
    for part in 0..parts {
        for (group, of) in groups.iter().enumerate() {
            let contacts = of.contacts * (part + 1) / parts - of.contacts * part / parts;
            if contacts > 0 && of.opens_at.is_some() {
                runs.push(Run {
                    group,
                    priority: 0,
                    place: runs.len(),
                    contacts,
                    due: None,
                    is_retry: false,
                });
            }
        }
    }
    runs
}

/// Its own pace, the workspace's, and what the slots allow.
async fn rate(deps: &Deps, row: &Row, concurrency: Concurrency) -> Result<f64> {
    let pacing = &row.plan.pacing;
    let slots = concurrency.outbound();
    let slots = pacing.max_concurrency.map_or(slots, |max| max.get().min(slots));
    let hours = campaign_hour::last(&deps.db.read, row.id, 24).await?;
    let (ended, seconds) = hours.iter().fold((0, 0), |(ended, seconds), hour| {
        (ended + hour.ended, seconds + hour.duration_seconds)
    });
    let per_call = if ended > 0 {
        (seconds as f64 / ended as f64).max(1.0)
    } else {
        USUAL_CALL_SECONDS
    };
    let most = pacing.calls_per_second.get().min(deps.limits.max_calls_per_second);
    if row.plan.channel != Channel::Phone {
        // A message takes no slot.
        return Ok(most);
    }
    let (trunks, channels) = trunks(deps, row).await?;
    let slots = channels.map_or(slots, |channels| channels.min(slots));
    Ok(most.min(trunks).min(f64::from(slots) / per_call))
}

/// What the trunks of a live campaign's numbers take: calls a second, and at once where all of them have a limit.
async fn trunks(deps: &Deps, row: &Row) -> Result<(f64, Option<i32>)> {
    if row.env == Env::Test {
        return Ok((f64::INFINITY, None));
    }
    let db = &deps.db.read;
    let numbers = match &row.plan.from_numbers[..] {
        [] => number::default_on_trunk(db, row.tenant_id).await?.into_iter().collect(),
        named => named.to_vec(),
    };
    let used = number::trunks_of(db, row.tenant_id, &numbers).await?;
    let (mut rate, mut channels) = (0.0, Some(0));
    for trunk in sip_trunk::all_of(db, row.tenant_id).await? {
        let definition = &trunk.definition;
        if used.iter().any(|(_, id)| *id == trunk.id) {
            rate += definition.max_calls_per_second.get();
            let most = definition.max_concurrency.map(|most| most.get());
            channels = channels.zip(most).map(|(all, its): (i32, i32)| all.saturating_add(its));
        }
    }
    // One that has none is held up by that, not slowed.
    Ok(if rate > 0.0 {
        (rate, channels)
    } else {
        (f64::INFINITY, None)
    })
}

/// Contacts that are counted by zones for every look at the statistics.
const COUNTED: i64 = 10_000;
