//! The law that is in force: a pack with what the operator adds to it, found by place.
use super::{
    Facts, OperatorLaw, Pack, UNDECIDED, dates,
    dates::Days,
    entry::{Entry, kind, share},
    index::Index,
    pack::pack,
    rule::{LawRule, Says},
};
use crate::hours::{self, Calendar};
use entities::{
    dnc::DncChannel,
    ids::TenantId,
    law::{Audience, Purpose, Vertical},
    values::{Moment, Place, Zone},
};
use std::{
    collections::{BTreeSet, HashSet},
    fmt,
    sync::{Arc, LazyLock},
};

/// A pack under an operator's own rules.
pub struct Law {
    pub pack: &'static Pack,
    pub operator: Option<OperatorLaw>,
    /// Ids of the rules that the operator overrides, for whomever.
    overridden: HashSet<String>,
    /// In the order of asking.
    entries: Vec<Entry>,
    index: Index,
}

/// For what the rules are wanted.
#[derive(Clone, Copy, Debug)]
pub struct Scope<'a> {
    pub at: Moment,
    pub channel: DncChannel,
    pub purpose: Purpose,
    pub audience: Audience,
    pub vertical: Option<Vertical>,
    /// Empty: nowhere that is known, which is the strictest of all.
    pub places: &'a [Place],
    pub zones: &'a [Zone],
    /// Where whoever calls is, as far as it is known. Its rules of recordings hold beside the person's, and no others.
    pub own: Option<&'a Place>,
}

impl<'a> From<&'a Facts> for Scope<'a> {
    fn from(facts: &'a Facts) -> Self {
        Scope {
            at: facts.at,
            channel: facts.channel,
            purpose: facts.purpose,
            audience: facts.audience,
            vertical: facts.vertical,
            places: &facts.places,
            zones: &facts.zones,
            own: None,
        }
    }
}

impl Scope<'_> {
    fn kind(&self) -> u64 {
        kind(self.purpose, self.audience, self.channel)
    }
}

impl Law {
    pub fn new(pack: &'static Pack, operator: Option<OperatorLaw>) -> Self {
        let added = operator.iter().flat_map(|operator| &operator.rules);
        let all = pack
            .rules
            .iter()
            .map(|rule| (rule, false))
            .chain(added.map(|rule| (rule, true)));
        let mut entries: Vec<Entry> = all
            .map(|(rule, is_added)| Entry::new(pack, rule.clone(), is_added))
            .collect();
        entries.sort_by_key(|entry| entry.rule.says.kind());
        share(&mut entries);
        let overrides = operator.iter().flat_map(|operator| &operator.overrides);
        Law {
            index: Index::new(&entries),
            overridden: overrides.map(|made| made.rule.clone()).collect(),
            pack,
            operator,
            entries,
        }
    }

    /// The newest pack as it is.
    pub fn untouched() -> &'static Law {
        static LAW: LazyLock<Law> = LazyLock::new(|| Law::new(pack(), None));
        &LAW
    }

    /// The rules that are in force for this attempt, in the order of asking.
    pub fn rules_for(&self, facts: &Facts) -> Vec<&LawRule> {
        let entries = self.in_force(&Scope::from(facts));
        entries.into_iter().map(|entry| &entry.rule).collect()
    }

    /// A rule by its id; the operator's own only where the pack has none of that id.
    pub fn rule(&self, id: &str) -> Option<&LawRule> {
        let of_id = || self.entries.iter().filter(|entry| entry.rule.id == id);
        let entry = of_id().find(|entry| !entry.is_added).or_else(|| of_id().next())?;
        Some(&entry.rule)
    }

    /// The rules in force by which somebody has to be registered under a name that is not among these. Whether that was done nobody knows
    /// but whoever did it, so they bar nothing.
    pub fn unregistered<'a>(&'a self, facts: &Facts, is_named: impl Fn(&str) -> bool) -> Vec<&'a LawRule> {
        let is_missing = |rule: &&LawRule| match &rule.says {
            Says::Registration { name } => !is_named(name),
            _ => false,
        };
        self.rules_for(facts).into_iter().filter(is_missing).collect()
    }

    /// What that rule says, and who must do what where it says no. Of one that this law does not have: its id.
    pub fn told<'a>(&'a self, id: &'a str) -> (&'a str, &'a str) {
        match self.rule(id) {
            Some(rule) => (&rule.title, &rule.mend),
            None if id == UNDECIDED => (
                "No rule of the pack says whether this is allowed there",
                "Nobody is reached there for this purpose; ask the operator for a pack that knows the place.",
            ),
            None => (id, ""),
        }
    }

    /// The same places, as far as rules tell them apart: a part of a country that none of them names is its country. Sorted.
    pub fn told_apart(&self, places: &[Place]) -> Vec<Place> {
        let told = places.iter().map(|place| match place.country().parse::<Place>() {
            Ok(country) if !self.index.has(place) => country,
            Ok(_) | Err(_) => place.clone(),
        });
        let told: BTreeSet<Place> = told.collect();
        told.into_iter().collect()
    }

    /// When calls or messages of this kind may be made there, by the clocks of the person: all of these must be open. Each is open
    /// outside of the days of its rules, and stands for all rules that have the same days.
    pub fn windows(
        &self,
        places: &[Place],
        purpose: Purpose,
        audience: Audience,
        channel: DncChannel,
    ) -> Vec<Arc<Calendar>> {
        let entries = self.of_places(places).into_iter();
        let kept = entries
            .filter(|entry| entry.kinds & kind(purpose, audience, channel) != 0 && !self.overrides(&entry.rule))
            .filter_map(|entry| Some(entry.calendars.as_ref()?.dated.clone()));
        hours::common(kept)
    }

    /// When the next rule of these places begins or ends, after `at`.
    pub fn next_switch(&self, places: &[Place], zones: &[Zone], at: Moment) -> Option<Moment> {
        self.switches(places, zones)
            .into_iter()
            .filter(|switch| *switch > at)
            .min()
    }

    /// Between which moments, [from, until), no rule of the facts' places begins or ends.
    pub fn holds(&self, facts: &Facts) -> (Moment, Moment) {
        let switches = self.switches(&facts.places, &facts.zones);
        let (past, ahead): (Vec<Moment>, Vec<Moment>) = switches.into_iter().partition(|switch| *switch <= facts.at);
        (
            past.into_iter().max().unwrap_or(Moment::from_millis(i64::MIN)),
            ahead.into_iter().min().unwrap_or(Moment::from_millis(i64::MAX)),
        )
    }

    /// The registers that its rules look into.
    pub fn registers(&self, facts: &Facts) -> BTreeSet<String> {
        let entries = self.in_force(&Scope::from(facts));
        entries
            .into_iter()
            .flat_map(|entry| registers_of(&entry.rule.says))
            .map(|(name, _)| name.to_owned())
            .collect()
    }

    /// The oldest copy of that register, in days, that all rules take which say how old it may be, wherever and whenever they hold.
    pub fn register_max_age(&self, name: &str) -> Option<u32> {
        let named = self.entries.iter().flat_map(|entry| registers_of(&entry.rule.says));
        let ages = named.filter_map(|(known, age)| age.filter(|_| known == name));
        ages.min()
    }

    /// Those of them that have to be asked over an API about this number before its verdict is known.
    pub fn questions(&self, facts: &Facts) -> BTreeSet<String> {
        super::judge::questions(self, facts)
    }

    /// Does that rule wait for what a register that is asked over an API has to say of the number?
    pub fn awaits_answer(&self, id: &str, facts: &Facts) -> bool {
        let mut of_id = self.entries.iter().filter(|entry| entry.rule.id == id);
        of_id.any(|entry| !super::judge::lacking(&entry.rule.says, facts).is_empty())
    }

    /// Of the attempts at a number or address, in order, the newest, as many as any cap of its places counts, on whatever days that
    /// holds: a judgement asks for no others, nor does one of the same facts at another moment. Their record is kept for years, and one
    /// address may be written to a thousand times a day.
    pub fn counted(&self, scope: &Scope<'_>, recent: &[Moment]) -> Vec<Moment> {
        if recent.is_empty() {
            return Vec::new();
        }
        let concerns = |entry: &Entry| entry.kinds & scope.kind() != 0 && entry.rule.concerns_trade(scope.vertical);
        let entries = self.of_places(scope.places).into_iter();
        let most = entries.filter_map(|entry| match &entry.rule.says {
            Says::Cap { most, .. } if concerns(entry) => Some(*most),
            _ => None,
        });
        let most = usize::try_from(most.max().unwrap_or(0)).unwrap_or(usize::MAX);
        let newest = recent.get(recent.len().saturating_sub(most)..);
        newest.unwrap_or_default().to_vec()
    }

    /// Must it be known whether the number was given to somebody else? In days, how old the answer may be by all rules that ask.
    pub fn reassigned_max_age(&self, facts: &Facts) -> Option<u32> {
        let consent = facts.consent.as_ref()?;
        let entries = self.in_force(&Scope::from(facts)).into_iter();
        let ages = entries.filter_map(|entry| match &entry.rule.says {
            Says::Reassigned {
                max_age_days,
                ask_after_days,
            } if super::judge::is_older(consent.given_at, *ask_after_days, facts.at) => Some(*max_age_days),
            _ => None,
        });
        ages.min()
    }

    /// From which age of a consent on a rule of these places may want to know that, on whatever days it holds.
    pub(super) fn reassigned_asked_after(&self, scope: &Scope<'_>) -> Option<u32> {
        let entries = self.of_places(scope.places).into_iter();
        let ages = entries.filter_map(|entry| match &entry.rule.says {
            Says::Reassigned { ask_after_days, .. } => Some(*ask_after_days),
            _ => None,
        });
        ages.min()
    }

    /// The rules that the operator has overridden for this workspace.
    pub fn overridden(&self, tenant: TenantId) -> Vec<String> {
        let overrides = self.operator.iter().flat_map(|operator| &operator.overrides);
        let made_for = overrides.filter(|made| made.is_for(tenant));
        made_for.map(|made| made.rule.clone()).collect()
    }

    pub(super) fn overrides(&self, rule: &LawRule) -> bool {
        !rule.is_firm && self.overridden.contains(&rule.id)
    }

    pub(super) fn in_force(&self, scope: &Scope<'_>) -> Vec<&Entry> {
        let days = Days::at(scope.zones, scope.at);
        let mut entries = self.of_places(scope.places);
        entries.retain(|entry| is_in_force(entry, scope, days));
        entries
    }

    /// Does a rule of the pack say of each of the places whether this is allowed there?
    pub(super) fn is_decided(&self, scope: &Scope<'_>) -> bool {
        let days = Days::at(scope.zones, scope.at);
        let decides = |entry: &&Entry| entry.rule.says.decides() && !entry.is_added && is_in_force(entry, scope, days);
        match scope.places {
            [] => self.of_places(&[]).iter().any(decides),
            places => places
                .iter()
                .all(|place| self.index.of(place, &self.entries).any(|entry| decides(&entry))),
        }
    }

    /// The rules of all these places, in the order of asking.
    fn of_places(&self, places: &[Place]) -> Vec<&Entry> {
        let mut numbers: Vec<usize> = Vec::with_capacity(64);
        match places {
            [] => numbers.extend(&self.index.nowhere),
            [place] => numbers.extend(self.index.numbers_of(place)),
            _ => {
                numbers.extend(places.iter().flat_map(|place| self.index.numbers_of(place)));
                numbers.sort_unstable();
                numbers.dedup();
            }
        }
        numbers
            .into_iter()
            .filter_map(|number| self.entries.get(number))
            .collect()
    }

    fn switches(&self, places: &[Place], zones: &[Zone]) -> Vec<Moment> {
        let entries = self.of_places(places).into_iter();
        entries
            .flat_map(|entry| {
                let from = entry.rule.from.and_then(|date| dates::begins(zones, date));
                let until = entry.rule.until.and_then(|date| dates::ends(zones, date));
                from.into_iter().chain(until)
            })
            .collect()
    }
}

impl fmt::Debug for Law {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let added = self.entries.iter().filter(|entry| entry.is_added).count();
        write!(f, "Law({}, {added} rules added)", self.pack.version)
    }
}

fn is_in_force(entry: &Entry, scope: &Scope<'_>, days: Days) -> bool {
    let rule = &entry.rule;
    entry.kinds & scope.kind() != 0
        && rule.concerns_trade(scope.vertical)
        && days.are_within(rule.from, rule.until)
        // An e-mail goes to an address that tells no country: what somebody has yet to look up there says nothing of it.
        && !(scope.places.is_empty() && scope.channel == DncChannel::Email && is_closed_there_only(rule))
}

/// Does it say that nobody has looked up the law of the places that it names?
fn is_closed_there_only(rule: &LawRule) -> bool {
    let places = &rule.places;
    rule.says == Says::Closed {} && !places.is_everywhere && !places.is_nowhere
}

/// The registers that a rule looks into.
fn registers_of(says: &Says) -> Vec<(&str, Option<u32>)> {
    match says {
        Says::Register { name, max_age_days, .. } => vec![(name.as_str(), Some(*max_age_days))],
        Says::Consent {
            newer_than_register,
            unless_register,
            ..
        } => {
            let unless = unless_register.as_ref();
            let unless = unless.map(|register| (register.name.as_str(), Some(register.max_age_days)));
            let newer = newer_than_register.as_deref().map(|name| (name, None));
            newer.into_iter().chain(unless).collect()
        }
        _ => Vec::new(),
    }
}
