//! What one running campaign has to dispatch: a small window of its contacts, its hours, its pace and its caps.
//!
//! Fresh contacts are held by groups that keep the same hours, so that a closed group costs nothing; what waits for a time
//! is read when the time has come. Memory does not grow with the list. Reading is the dispatcher's: it asks [`Queue::wants`] and
//! hands over what it has found.
mod reading;
mod turns;

use super::{
    candidate::{Candidate, Turn},
    funds::Funds,
    group::Group,
    key_limits::KeyLimits,
    pace::Pace,
    route::{Callers, Route},
    slots::Slots,
    trunk::Trunks,
    usage::{Allowance, Usage},
};
use crate::{
    campaign::message_template::MessageTemplate,
    hours::Rules,
    law::LegalTerms,
    limits::Limits,
    session::{
        machine::cost,
        settings::{self, CallOverrides},
    },
};
use entities::{
    Error, Result,
    abandonment::{Abandonment, AbandonmentLimit},
    campaign::{AgentSnapshot, Channel, Model as Campaign, Plan},
    ids::{ApiKeyId, CampaignId, ContactId, TrunkId},
    session,
    values::{Cents, E164, Env, Moment},
};
use std::{
    collections::{BTreeMap, HashMap, VecDeque},
    sync::Arc,
};

/// Contacts read at once.
pub const WINDOW: u64 = 128;
/// Contacts read at once of each of many groups.
const SMALL_WINDOW: u64 = 16;
/// Those whose time has come are read anew after so long, if they are still at hand: a retry may have become due meanwhile,
/// and goes first.
const STALE_AFTER_SECONDS: i64 = 1;

/// A running campaign, as far as its turns need it.
#[derive(Debug)]
pub struct Queue {
    pub id: CampaignId,
    pub version: i32,
    pub env: Env,
    pub plan: Plan,
    /// Who calls; `None`: it writes.
    pub agent: Option<Arc<AgentSnapshot>>,
    /// What it writes; `None`: it calls.
    pub template: Option<Arc<MessageTemplate>>,
    /// Whose limits its calls count for.
    pub api_key_id: Option<ApiKeyId>,
    /// How its calls are handled.
    pub options: session::Options,
    pub rules: Rules,
    pub rules_version: i32,
    pub pace: Pace,
    pub usage: Usage,
    /// What each of its calls, if there is so much, or of its messages sets aside.
    pub(super) hold: Cents,
    /// The least that must be available for one of its calls; the least that one of its messages costs.
    least: Cents,
    /// The most that one of them costs.
    dearest: Cents,
    /// As many of its messages as may be are on their way.
    pub(super) provider_full: bool,
    /// Who waits is judged by other rules just now: of them nobody is dispatched until that is done.
    pub(super) in_review: bool,
    /// Who, of those whose turn it is, finds no slot, and since when.
    pub(super) turn_since: Option<(ContactId, Moment)>,
    /// How far the wall clock was behind our time when the hours were last looked at.
    behind_ms: i64,
    groups: BTreeMap<String, Group>,
    /// Read because their time had come.
    due: VecDeque<Candidate>,
    /// Read because nobody of them is called any more.
    left: VecDeque<Candidate>,
    /// There may be some.
    has_left: bool,
    /// When the next contact's time comes, as far as is known; while some are at hand: when they are to be read anew.
    next_due_at: Option<Moment>,
    /// Contacts may have begun to wait, or to be fresh, since the rows were read.
    look_for_due: bool,
    /// A call has ended, so there may be more that was spent.
    look_for_costs: bool,
    /// The hours that those keep who wait for a time, if everybody else is in their quiet hours.
    waiting_zones: Option<Vec<String>>,
    callers: Callers,
    /// What its attempts are in the words of the law; `None`: nobody asks.
    pub legal: Option<LegalTerms>,
    /// What the law allows of abandoned calls where it calls.
    pub abandonment: Vec<AbandonmentLimit>,
    /// What it had abandoned when the rows were read; a dial's own transaction looks again.
    pub abandoned: Abandonment,
}

/// What the rows say of a running campaign.
pub struct Rows {
    /// With the workspace's default number where its plan names none.
    pub campaign: Campaign,
    pub usage: Usage,
    /// The hours that its fresh contacts keep.
    pub zones: Vec<String>,
    /// What its numbers go over, of those that live calls may show.
    pub trunks: HashMap<E164, TrunkId>,
    /// What its attempts are in the words of the law.
    pub legal: Option<LegalTerms>,
    /// Until when some of them rest.
    pub resting: HashMap<E164, Moment>,
    /// What the law allows of abandoned calls where it calls; empty: it says nothing.
    pub abandonment: Vec<AbandonmentLimit>,
    /// What it has abandoned; looked at only if the law says something of it.
    pub abandoned: Abandonment,
}

/// What must be read before a turn can be decided.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Wants {
    /// What it has spent.
    pub costs: bool,
    /// Those whose time has come.
    pub due: bool,
    /// Fresh ones of these groups, so many of each.
    pub fresh: Vec<String>,
    pub window: u64,
}

/// What the tenant's own state says to all its campaigns of one env.
#[derive(Clone, Copy, Debug)]
pub struct Circumstances {
    pub suspended_since: Option<Moment>,
    pub credits_gone: bool,
}

impl Queue {
    /// `old` is the same campaign's queue before: its pace runs on.
    pub fn new(rows: Rows, rules: Rules, old: Option<Queue>, limits: &Limits, behind_ms: i64) -> Result<Self> {
        let Rows {
            campaign,
            usage,
            zones,
            trunks,
            legal,
            resting,
            abandonment,
            abandoned,
        } = rows;
        let plan = campaign.plan;
        let template = MessageTemplate::read(&plan)?;
        if template.is_none() && campaign.agent.is_none() {
            return Err(Error::Corrupt {
                table: "campaigns",
                column: "agent",
                id: campaign.id.to_string(),
            });
        }
        let rate = plan.pacing.calls_per_second.get();
        let (pace, callers, turn_since, dearest_yet) = match old {
            Some(Queue {
                mut pace,
                callers,
                turn_since,
                dearest,
                ..
            }) => {
                pace.set_rate(rate);
                (pace, Some(callers), turn_since, dearest)
            }
            None => (Pace::new(rate), None, None, Cents(0)),
        };
        let asked = CallOverrides {
            voicemail: plan.voicemail.clone(),
            dispositions: &plan.dispositions,
            ..CallOverrides::default()
        };
        let agent = campaign.agent;
        let options = agent.as_ref().map(|agent| settings::options(&agent.definition, asked));
        let (hold, least, dearest) = match &template {
            // Longer texts with their variables show when they are written.
            Some(MessageTemplate::Sms(_)) => {
                let price = limits.sms_price(1);
                (price, price, price.max(dearest_yet))
            }
            Some(MessageTemplate::Email(_)) => {
                let price = Cents(limits.email_price_cents.into());
                (price, price, price)
            }
            None => {
                let seconds = agent
                    .as_ref()
                    .map_or(0, |agent| agent.definition.max_duration_seconds.get());
                let price = limits.call_price_cents_per_minute;
                let hold = limits.credits.hold(price, seconds);
                (hold, limits.credits.least(hold), cost(price, seconds))
            }
        };
        let groups = zones.into_iter().map(|zone| {
            let group = Group::new(rules.of(&zone));
            (zone, group)
        });
        Ok(Queue {
            id: campaign.id,
            version: campaign.version,
            env: campaign.env,
            api_key_id: campaign.api_key_id.filter(|_| template.is_none()),
            groups: groups.collect(),
            callers: Callers::new(numbers(campaign.env, &plan, &trunks), callers).resting(&resting),
            abandonment,
            abandoned,
            plan,
            agent: agent.map(Arc::new),
            template: template.map(Arc::new),
            options: options.unwrap_or_default(),
            rules,
            rules_version: campaign.rules_version,
            pace,
            usage,
            hold,
            least,
            dearest,
            provider_full: false,
            in_review: campaign.review_of.is_some(),
            turn_since,
            behind_ms,
            due: VecDeque::new(),
            left: VecDeque::new(),
            has_left: true,
            next_due_at: None,
            look_for_due: true,
            look_for_costs: false,
            waiting_zones: None,
            legal,
        })
    }

    /// A live campaign whose last number with a trunk is gone: there is nobody to call as.
    pub fn lacks_caller(&self) -> bool {
        self.template.is_none() && self.callers.is_empty()
    }

    pub fn weight(&self) -> i64 {
        i64::from(self.plan.pacing.weight.get())
    }

    /// It has abandoned so many calls that it dials no more for now.
    pub fn is_braked(&self) -> bool {
        self.abandoned.is_braked_by_any(&self.abandonment)
    }

    /// A call has ended: its contact may have begun to wait, and it may have cost something.
    pub fn one_ended(&mut self) {
        // Without retries nobody begins to wait.
        self.look_for_due |= self.plan.retry.max_attempts.get() > 1;
        self.look_for_costs = self.plan.caps.budget_cents.is_some();
    }

    /// A contact was put off.
    pub(super) fn one_deferred(&mut self) {
        self.look_for_due = true;
    }

    /// Nothing leaves for a while: who finds no slot waits for one from the end of it on.
    pub fn held(&mut self) {
        self.turn_since = None;
    }

    /// Do the credits cover its next call, or message?
    pub(super) fn is_covered(&self, funds: &Funds) -> bool {
        funds.cover(self.env, self.least_needed())
    }

    /// The least that must be available for that.
    pub(super) fn least_needed(&self) -> Cents {
        match self.template {
            Some(_) => self.hold,
            None => self.least,
        }
    }

    /// A message takes no slot, but a place at the provider.
    pub(super) fn has_slot(&self, slots: &Slots) -> bool {
        match self.template {
            Some(_) => !self.provider_full,
            None => slots.tenant_has_one(self.env) && self.has_slot_of_its_own(slots),
        }
    }

    pub(super) fn has_slot_of_its_own(&self, slots: &Slots) -> bool {
        let max = self.plan.pacing.max_concurrency.map(|max| max.get());
        slots.campaign_has_one(self.env, self.id, max)
    }

    /// When what its calls go over takes the next one; `None`: not before something changes. A message goes over no trunk.
    pub(super) fn opens_at(&self, trunks: &Trunks, slots: &Slots, now: Moment) -> Option<Moment> {
        match self.template {
            Some(_) => Some(now),
            None => {
                let openings = self
                    .callers
                    .routes()
                    .filter_map(|route| trunks.opens_at(route, slots, now));
                openings.min()
            }
        }
    }

    /// What its next call goes over, among what is open; `None`: it writes.
    pub(super) fn route(&self, at: Moment, is_open: impl Fn(Route) -> bool) -> Option<Route> {
        match self.template {
            Some(_) => None,
            None => self.callers.next(at, is_open).map(|caller| caller.route),
        }
    }

    /// Until when the limits of its API key leave no room for one more call, if they do not at that moment.
    pub(super) fn key_full_until(&self, keys: &KeyLimits, at: Moment) -> Option<Moment> {
        keys.full_until(self.api_key_id, self.dearest, at)
    }

    /// A call leaves at that moment.
    pub(super) fn one_called(&mut self, keys: &mut KeyLimits, at: Moment) {
        keys.take(self.api_key_id, self.dearest, at);
        self.usage.one_more(self.dearest, self.rules.zone, at);
    }

    /// A message of that price leaves at that moment.
    pub(super) fn one_written(&mut self, price: Cents, at: Moment) {
        self.hold = self.least;
        self.dearest = self.dearest.max(price);
        self.usage.one_more(self.dearest, self.rules.zone, at);
    }

    /// What one message of so many parts costs.
    pub(super) fn price_of(&self, parts: i32) -> Cents {
        Cents(self.least.0 * i64::from(parts))
    }

    /// Longer than others, and not covered: the campaign waits until it is.
    pub(super) fn wait_for_credits(&mut self, turn: Turn, price: Cents) {
        self.hold = price;
        self.put_back(turn);
    }

    /// May it dispatch one more today, and within its budget?
    pub(super) fn allowance(&self, at: Moment) -> Allowance {
        self.usage.allowance(&self.plan.caps, self.dearest, at)
    }
}

/// What its calls, or texts, show. Of live calls those numbers alone that have a trunk.
fn numbers(env: Env, plan: &Plan, trunks: &HashMap<E164, TrunkId>) -> impl Iterator<Item = (E164, Route)> {
    let calls = plan.channel == Channel::Phone;
    plan.from_numbers.iter().filter_map(move |number| {
        let route = Route::of(env, trunks.get(number).copied());
        (!calls || route != Route::Nowhere).then(|| (number.clone(), route))
    })
}
