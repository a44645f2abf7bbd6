//! What is to be expected of a campaign: who can be called, who cannot and why, and when it will be through.
use crate::{
    deps::Deps,
    dispatcher::{queue::RING_MS, room::Room},
    hours::{Hours, Rules, Standing},
};
use entities::{
    Result,
    campaign::{Channel, Model as Row, OnCap},
    campaign_hour,
    contact::{self, UNCALLABLE},
    stretch::{self, Stretch},
    tenant,
    values::{Env, Moment},
};
use std::{
    collections::BTreeMap,
    ops::ControlFlow,
    time::{Duration, Instant},
};

/// A group of contacts that keep the same hours.
#[derive(Clone, Debug)]
pub struct Group {
    /// The zones that count; empty: nobody can be called.
    pub zones: Vec<chrono_tz::Tz>,
    pub contacts: i64,
    pub standing: Standing,
    /// When the first of them may be called; `None`: never.
    pub opens_at: Option<Moment>,
}

/// Who will be called, as far as can be told now.
#[derive(Clone, Debug)]
pub struct Outlook {
    pub groups: Vec<Group>,
    pub open: i64,
    pub eligible: i64,
    pub invalid: i64,
    pub barred: i64,
    /// Numbers that were called as often as the caps allow: put off, or skipped if the campaign says so.
    pub capped: i64,
    pub expired: i64,
    /// Calls per second that can be expected.
    pub calls_per_second: f64,
    pub finishes_at: Option<Moment>,
}

/// Seconds of a call of which nothing is known yet.
const USUAL_CALL_SECONDS: f64 = 45.0;

/// Contacts that one statement looks at: some milliseconds, after which others have their turn, and a look that nobody waits
/// for any more ends.
const AT_ONCE: u64 = 500;

/// The longest rest after a stretch.
const REST: Duration = Duration::from_millis(50);

/// What is counted of a list.
#[derive(Debug, Default)]
struct Counts {
    by_zone: BTreeMap<String, i64>,
    unverified: i64,
    barred: i64,
    /// By cap.
    capped: [i64; 2],
}

/// Reads the contacts by groups; the do-not-call list and the caps number by number.
pub async fn look(deps: &Deps, row: &Row) -> Result<Outlook> {
    let (db, now) = (&deps.db.read, deps.clock.now());
    let tenant = tenant::load(db, row.tenant_id).await?;
    let rules = Rules::new(&row.plan.schedule, row.env, tenant.timezone);
    let counts = counts(deps, row, now).await?;
    let groups = grouped(row, &rules, now, counts.by_zone);
    let count = |wanted: fn(&Group) -> bool| {
        groups
            .iter()
            .filter(|group| wanted(group))
            .map(|group| group.contacts)
            .sum()
    };
    let open: i64 = groups.iter().map(|group| group.contacts).sum();
    let uncallable: i64 = count(|group| group.standing == Standing::Uncallable);
    let expired: i64 = count(|group| group.standing != Standing::Uncallable && group.opens_at.is_none());
    let barred = counts.barred;
    let capped = counts.capped.into_iter().max().unwrap_or(0);
    let invalid = uncallable + counts.unverified;
    let on_cap = row.plan.caps.on_cap;
    let skipped = invalid + barred + expired + if on_cap == OnCap::Skip { capped } else { 0 };
    let eligible = (open - skipped).max(0);
    let calls_per_second = rate(deps, row, Room::of(&tenant, &deps.limits)).await?;
    // Who is skipped is spread over the groups as the others are.
    let share = if open > 0 { eligible as f64 / open as f64 } else { 0.0 };
    let finishes_at = finish(&groups, share, calls_per_second, now, rules.ends_at).await;
    Ok(Outlook {
        groups,
        open,
        eligible,
        invalid,
        barred,
        capped,
        expired,
        calls_per_second,
        finishes_at,
    })
}

/// Stretch by stretch, on the connections that whole lists are read by.
async fn counts(deps: &Deps, row: &Row, now: Moment) -> Result<Counts> {
    let db = &deps.db.reports;
    let mut counts = Counts::default();
    let mut next = Some(stretch::first(db, row.id, AT_ONCE).await?);
    while let Some(part) = next {
        let began = Instant::now();
        counts.add(deps, row, now, part).await?;
        next = part.next(db, AT_ONCE).await?;
        // Whoever asks again and again has a third of a core at most.
        deps.clock.rest((began.elapsed() * 2).min(REST)).await;
    }
    Ok(counts)
}

impl Counts {
    async fn add(&mut self, deps: &Deps, row: &Row, now: Moment, part: Stretch) -> Result<()> {
        let (db, owner) = (&deps.db.reports, (row.tenant_id, row.env));
        for (zone, contacts) in stretch::count_by_zone(db, part).await? {
            *self.by_zone.entry(zone).or_default() += contacts;
        }
        self.unverified += match (row.plan.channel, row.env) {
            (Channel::Email, _) => 0,
            (Channel::Phone | Channel::Sms, Env::Live) => stretch::count_sandbox(db, part).await?,
            (Channel::Phone | Channel::Sms, Env::Test) => stretch::count_unverified(db, row.tenant_id, part).await?,
        };
        self.barred += stretch::count_barred(db, owner, part, row.plan.channel.dnc()).await?;
        let caps = &row.plan.caps;
        let caps = [(caps.per_number_24h, 1), (caps.per_number_7d, 7)];
        for ((cap, days), capped) in caps.into_iter().zip(&mut self.capped) {
            let Some(cap) = cap else { continue };
            let cap = (cap.get(), now.plus_seconds(-days * 24 * 3600));
            *capped += match row.plan.channel.of_messages() {
                None => stretch::count_capped(db, owner, part, cap).await?,
                Some(channel) => stretch::count_written(db, owner, part, channel, cap).await?,
            };
        }
        Ok(())
    }
}

/// When a running campaign will be through, at its pace.
pub async fn finishes_at(deps: &Deps, row: &Row, open: i64) -> Result<Option<Moment>> {
    let (db, now) = (&deps.db.read, deps.clock.now());
    let tenant = tenant::load(db, row.tenant_id).await?;
    let rules = Rules::new(&row.plan.schedule, row.env, tenant.timezone);
    // A long list is not counted at every look: its zones are taken to hold the same share each.
    let groups = if open > COUNTED {
        let names = contact::fresh_zones(db, row.id).await?;
        let share = open / i64::try_from(names.len()).unwrap_or(1).max(1);
        grouped(row, &rules, now, names.into_iter().map(|name| (name, share)))
    } else {
        let by_zone = contact::waiting_by_zone(db, row.id).await?;
        grouped(row, &rules, now, by_zone)
    };
    let rate = rate(deps, row, Room::of(&tenant, &deps.limits)).await?;
    Ok(finish(&groups, 1.0, rate, now, rules.ends_at).await)
}

fn grouped(row: &Row, rules: &Rules, now: Moment, counted: impl IntoIterator<Item = (String, i64)>) -> Vec<Group> {
    let starts = row.plan.schedule.starts_at.map_or(now, |at| at.max(now));
    let groups = counted.into_iter().map(|(name, contacts)| {
        let standing = rules.of(&name);
        let opens_at = match &standing {
            Standing::Hours(hours) => hours.next_opening(starts, RING_MS),
            Standing::Uncallable => None,
        };
        let zones = if name == UNCALLABLE { None } else { rules.zones(&name) };
        Group {
            zones: zones.unwrap_or_default(),
            contacts,
            standing,
            opens_at: opens_at.filter(|at| rules.ends_at.is_none_or(|end| *at < end)),
        }
    });
    groups.collect()
}

/// Its own pace, the workspace's, and what the slots allow.
async fn rate(deps: &Deps, row: &Row, room: Room) -> Result<f64> {
    let pacing = &row.plan.pacing;
    let slots = room.outbound();
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
    Ok(most.min(f64::from(slots) / per_call))
}

/// Contacts that are counted by zones for every look at the statistics.
const COUNTED: i64 = 10_000;

const STEP_SECONDS: i64 = 900;
/// Further ahead nothing is said.
const HORIZON_SECONDS: i64 = 60 * 24 * 3600;

/// Steps after which others have their turn: there may be thousands, of many groups each.
const STEPS: usize = 64;

async fn finish(groups: &[Group], share: f64, rate: f64, now: Moment, ends_at: Option<Moment>) -> Option<Moment> {
    let mut forecast = Forecast::new(groups, share, rate, now, ends_at);
    loop {
        for _ in 0..STEPS {
            if let ControlFlow::Break(found) = forecast.step() {
                return found;
            }
        }
        tokio::task::yield_now().await;
    }
}

/// Steps through the days: whoever is open shares the pace.
struct Forecast<'a> {
    /// Contacts that are left, and their hours.
    left: Vec<(f64, &'a Hours)>,
    at: Moment,
    until: Moment,
    rate: f64,
    ends_at: Option<Moment>,
}

impl<'a> Forecast<'a> {
    fn new(groups: &'a [Group], share: f64, rate: f64, now: Moment, ends_at: Option<Moment>) -> Self {
        let left = groups.iter().filter_map(|group| match &group.standing {
            Standing::Hours(hours) if group.opens_at.is_some() => Some((group.contacts as f64 * share, hours)),
            Standing::Hours(_) | Standing::Uncallable => None,
        });
        Forecast {
            left: left.collect(),
            at: now,
            until: now.plus_seconds(HORIZON_SECONDS),
            rate,
            ends_at,
        }
    }

    /// Breaks with the end, or with none where it is too far away.
    fn step(&mut self) -> ControlFlow<Option<Moment>> {
        let (at, rate) = (self.at, self.rate);
        if at >= self.until {
            return ControlFlow::Break(None);
        }
        self.left.retain(|(contacts, _)| *contacts > 0.000_1);
        if self.left.is_empty() {
            return ControlFlow::Break(Some(at));
        }
        if self.ends_at.is_some_and(|end| at >= end) {
            return ControlFlow::Break(self.ends_at);
        }
        let open: f64 = self
            .left
            .iter()
            .filter(|(_, hours)| hours.is_open(at, RING_MS))
            .map(|(contacts, _)| contacts)
            .sum();
        if open <= 0.0 {
            // Nobody: on to the first who will be.
            let next = self
                .left
                .iter()
                .filter_map(|(_, hours)| hours.next_opening(at, RING_MS));
            let Some(next) = next.min() else {
                return ControlFlow::Break(None);
            };
            self.at = next.max(at.plus_seconds(1));
            return ControlFlow::Continue(());
        }
        let seconds = (open / rate).min(STEP_SECONDS as f64);
        let served = rate * seconds / open;
        for (contacts, hours) in &mut self.left {
            if hours.is_open(at, RING_MS) {
                *contacts -= *contacts * served.min(1.0);
            }
        }
        #[expect(clippy::cast_possible_truncation, reason = "at most a quarter of an hour")]
        let millis = (seconds * 1000.0).ceil() as i64;
        self.at = at.plus_millis(millis.max(1));
        ControlFlow::Continue(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use entities::values::Zone;

    fn group(contacts: i64, windows: serde_json::Value) -> Group {
        let schedule = serde_json::from_value(serde_json::json!({ "windows": windows })).unwrap();
        let standing = Rules::new(&schedule, Env::Test, Zone::NEW_YORK).of("America/New_York");
        Group {
            zones: Vec::new(),
            contacts,
            standing,
            opens_at: Some(now()),
        }
    }
    fn finish(groups: &[Group], share: f64, rate: f64, now: Moment, ends_at: Option<Moment>) -> Option<Moment> {
        let mut forecast = Forecast::new(groups, share, rate, now, ends_at);
        loop {
            if let ControlFlow::Break(found) = forecast.step() {
                return found;
            }
        }
    }
    fn now() -> Moment {
        // 10:00 in New York.
        Moment::parse("2027-03-02T15:00:00Z").unwrap()
    }

    #[test]
    fn the_finish_counts_open_hours_only() {
        let all_day = group(7200, serde_json::json!([{ "start": "00:00", "end": "24:00" }]));
        assert_eq!(
            finish(std::slice::from_ref(&all_day), 1.0, 1.0, now(), None),
            Some(now().plus_seconds(7200))
        );
        assert_eq!(
            finish(std::slice::from_ref(&all_day), 0.5, 1.0, now(), None),
            Some(now().plus_seconds(3600))
        );
        let until_eleven = group(7200, serde_json::json!([{ "start": "10:00", "end": "11:00" }]));
        let found = finish(&[until_eleven], 1.0, 1.0, now(), None).unwrap();
        let expected = now().plus_seconds(25 * 3600);
        assert!(
            found.since(expected).as_secs() < 600 || expected.since(found).as_secs() < 600,
            "{found}"
        );
        assert_eq!(
            finish(&[all_day], 1.0, 0.0001, now(), Some(now().plus_seconds(60))),
            Some(now().plus_seconds(60))
        );
        assert_eq!(finish(&[], 1.0, 1.0, now(), None), Some(now()));
    }
}
