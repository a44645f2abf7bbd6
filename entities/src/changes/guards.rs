//! What must hold inside the transaction that commits: the law, and what somebody has decided by.
use crate::{
    abandonment::AbandonmentLimit,
    api_key, boxed, campaign, campaign_hour,
    connection::Transaction,
    consent, dial, dispatch_block, dispatch_pause, dnc,
    error::{Error, Result},
    ids::{ApiKeyId, CampaignId, ConsentId, RegisterId, SessionId, TenantId, TrunkId},
    legal_identity, message_send, number, register, rest, session, sip_trunk, tally, tenant,
    values::{Cents, E164, Env, Moment, Times},
};
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};
use uuid::Uuid;

/// A condition that must hold inside the transaction; if it does not, nothing is written and the answer is `Stale`.
#[derive(Clone, Debug, PartialEq)]
pub enum Guard {
    /// The campaign is as it was known, running and not at its end: a pause or a changed rule takes effect before the next
    /// dial.
    Dispatchable(CampaignId, i32),
    /// What somebody waits for was decided by the campaign's rules as they are.
    Rules(CampaignId, i32),
    /// The campaign runs, whatever else has changed of it: what it had begun may go on.
    Runs(CampaignId),
    /// The tenant is as it was known, and nothing keeps it from dialling: a limit or a suspension too.
    Free(TenantId, Env, i32),
    /// The trunk that a live call goes over is as it was known: not paused, and not deleted.
    Trunk(TrunkId, i32),
    /// This number may be called at this moment.
    Callable(Callable),
    /// What the law's verdict on an attempt rests on is still so.
    Lawful(Lawful),
    /// The limits of the API key that asked for this call have room for it.
    KeyHasRoom(KeyCall),
    /// The campaign has not abandoned so many of its calls that one of these holds it.
    NotBraked {
        campaign_id: CampaignId,
        limits: Vec<AbandonmentLimit>,
    },
    /// This person may be written to at this moment.
    Reachable(Reachable),
    /// A campaign may write to this person at this moment.
    Writable(Writable),
    /// The campaign has `total` contacts and all of them have reached a terminal state.
    Drained { campaign_id: CampaignId, total: i64 },
    /// The campaign has `total` contacts, of which so many wait to be called.
    Counted {
        campaign_id: CampaignId,
        total: i64,
        waiting: i64,
    },
}

/// The law, looked at once more when a dial is committed; in doubt nobody is called.
#[derive(Clone, Debug, PartialEq)]
pub struct Callable {
    pub tenant_id: TenantId,
    pub env: Env,
    pub session_id: SessionId,
    pub phone_number: E164,
    pub dialed_at: Moment,
    /// Between these the call may start, by the hours of everybody concerned.
    pub hours: (Moment, Moment),
    /// The same for the wall clock, where that shows another time than ours.
    pub wall_hours: (Moment, Moment),
    /// Calls to the number in any such span, this one included.
    pub caps: Vec<CapSpan>,
}

/// At most so many in any so many hours.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct CapSpan {
    pub most: i32,
    pub hours: i32,
}

/// A call that counts for the limits of an API key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyCall {
    pub api_key_id: ApiKeyId,
    pub session_id: SessionId,
    /// What it can cost.
    pub most: Cents,
    pub dialed_at: Moment,
}

/// What a verdict of the law rests on, beside what other guards look at: a consent that is taken back, a register that is replaced or is
/// new, or a call that was abandoned meanwhile makes it `Stale`, and it is asked anew.
#[derive(Clone, Debug, PartialEq)]
pub struct Lawful {
    pub tenant_id: TenantId,
    pub env: Env,
    /// The consent, and its version.
    pub consent: Option<(ConsentId, i32)>,
    /// What was there of the registers that were looked into; none: none was.
    pub registers: Option<Arc<register::Seen>>,
    /// What registers that are asked over an API have answered: no newer answer has come.
    pub answers: Vec<RegisterId>,
    /// Whom the law may give a rest, and since when it was known to begin last; no number: it gives none here.
    pub rest: Option<(E164, Option<Moment>)>,
    /// Who the workspace is by law, as it was known: the version of the row, 0 for none.
    pub identity_version: i32,
    /// The number that is shown, whether the workspace has shown that it may, and whether an agent answers it.
    pub caller: Option<(E164, bool, bool)>,
    /// The rules were read for this span; at its end some change.
    pub holds: (Moment, Moment),
}

/// Somebody who is to be written to: on no do-not-call list for that channel, and nothing keeps the workspace from writing.
#[derive(Clone, Debug, PartialEq)]
pub struct Reachable {
    pub tenant_id: TenantId,
    pub env: Env,
    pub channel: dnc::DncChannel,
    /// A number in E.164, or an e-mail address in lower case.
    pub address: String,
}

/// Somebody who is to be written to by a campaign: within the hours, and not too often.
#[derive(Clone, Debug, PartialEq)]
pub struct Writable {
    pub tenant_id: TenantId,
    pub env: Env,
    pub channel: message_send::Channel,
    pub address: String,
    pub message_id: Uuid,
    pub at: Moment,
    /// Between these it may be written.
    pub hours: (Moment, Moment),
    /// The same for the wall clock, where that shows another time than ours.
    pub wall_hours: (Moment, Moment),
    /// Messages of that channel in any such span, this one included.
    pub caps: Vec<CapSpan>,
}

/// What a campaign has abandoned.
pub(super) const ABANDONED: &str = "abandoned";

impl Guard {
    /// The row, or the list of a tenant, that this depends on.
    pub(super) fn key(&self) -> (&'static str, Uuid) {
        match self {
            Guard::Dispatchable(campaign, _) | Guard::Rules(campaign, _) | Guard::Runs(campaign) => {
                ("campaign", campaign.0)
            }
            Guard::NotBraked { campaign_id, .. } => (ABANDONED, campaign_id.0),
            Guard::Free(tenant, ..) => ("tenant", tenant.0),
            Guard::Trunk(trunk, _) => ("trunk", trunk.0),
            Guard::Callable(call) => ("dnc", call.tenant_id.0),
            Guard::Lawful(attempt) => ("dnc", attempt.tenant_id.0),
            Guard::KeyHasRoom(call) => ("api_key", call.api_key_id.0),
            Guard::Reachable(person) => ("dnc", person.tenant_id.0),
            Guard::Writable(message) => ("dnc", message.tenant_id.0),
            Guard::Drained { campaign_id, .. } | Guard::Counted { campaign_id, .. } => ("tally", campaign_id.0),
        }
    }
}

/// Do all of them hold?
#[boxed]
pub(super) async fn check(db: &Transaction, guards: &[&Guard], now: Times) -> Result<()> {
    let (mut campaigns, mut tenants, mut calls) = (BTreeSet::new(), BTreeSet::new(), Vec::new());
    let (mut running, mut rules, mut trunks) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
    let mut written = Vec::new();
    let mut people = Vec::new();
    let mut of_keys = Vec::new();
    let mut lawful = Vec::new();
    let mut limited: BTreeMap<CampaignId, BTreeSet<AbandonmentLimit>> = BTreeMap::new();
    for &guard in guards {
        match guard {
            Guard::Dispatchable(campaign, version) => drop(campaigns.insert((*campaign, *version))),
            Guard::Rules(campaign, version) => drop(rules.insert((*campaign, *version))),
            Guard::Runs(campaign) => drop(running.insert(*campaign)),
            Guard::Free(tenant, env, version) => drop(tenants.insert((*tenant, *env, *version))),
            Guard::Trunk(trunk, version) => drop(trunks.insert((*trunk, *version))),
            Guard::Callable(call) => calls.push(call),
            Guard::Lawful(attempt) => lawful.push(attempt),
            Guard::KeyHasRoom(call) => of_keys.push(*call),
            Guard::NotBraked { campaign_id, limits } => limited.entry(*campaign_id).or_default().extend(limits),
            Guard::Reachable(person) => people.push(person),
            Guard::Writable(message) => written.push(message),
            Guard::Counted {
                campaign_id,
                total,
                waiting,
            } => counted(db, *campaign_id, *total, Some(*waiting)).await?,
            Guard::Drained { campaign_id, total } => counted(db, *campaign_id, *total, None).await?,
        }
    }
    let campaigns: Vec<_> = campaigns.into_iter().collect();
    if !campaigns.is_empty() && !campaign::still_dispatchable(db, &campaigns).await? {
        return Err(Error::Stale);
    }
    let rules: Vec<_> = rules.into_iter().collect();
    if !rules.is_empty() && !campaign::have_rules(db, &rules).await? {
        return Err(Error::Stale);
    }
    let running: Vec<_> = running.into_iter().collect();
    if !running.is_empty() && !campaign::all_run(db, &running).await? {
        return Err(Error::Stale);
    }
    for (tenant, env, version) in tenants {
        if !tenant::is_free(db, tenant, env, version).await? {
            return Err(Error::Stale);
        }
    }
    let trunks: Vec<_> = trunks.into_iter().collect();
    if !trunks.is_empty() && !sip_trunk::are_as_known(db, &trunks).await? {
        return Err(Error::Stale);
    }
    let leaves = !(people.is_empty() && written.is_empty() && calls.is_empty());
    if leaves && (now.in_doubt || dispatch_pause::lasts(db).await?) {
        return Err(Error::Stale);
    }
    check_people(db, &people).await?;
    check_lawful(db, &lawful, now).await?;
    check_written(db, &written, now).await?;
    check_brakes(db, &limited, now).await?;
    check_keys(db, &of_keys).await?;
    check_calls(db, &calls, now).await
}

/// Has the campaign so many contacts, of which so many wait, or none is left?
async fn counted(db: &Transaction, campaign: CampaignId, total: i64, waiting: Option<i64>) -> Result<()> {
    let tally = tally::load(db, campaign).await?;
    let is_so = match waiting {
        Some(waiting) => tally.pending + tally.waiting == waiting,
        None => tally.unfinished() == 0,
    };
    if is_so && tally.total == total {
        Ok(())
    } else {
        Err(Error::Stale)
    }
}

/// The numbers that are shown are as they were known.
async fn check_callers(db: &Transaction, attempts: &[&Lawful]) -> Result<()> {
    let mut by_tenant: BTreeMap<TenantId, BTreeSet<&(E164, bool, bool)>> = BTreeMap::new();
    for attempt in attempts {
        by_tenant.entry(attempt.tenant_id).or_default().extend(&attempt.caller);
    }
    for (tenant, known) in by_tenant {
        let numbers: Vec<E164> = known.iter().map(|(number, ..)| number.clone()).collect();
        let rows = number::callers(db, tenant, &numbers).await?;
        let now: BTreeSet<_> = rows
            .into_iter()
            .map(|row| (row.phone_number.clone(), row.claimed_by.is_some(), row.is_answered()))
            .collect();
        if !known.into_iter().all(|caller| now.contains(caller)) {
            return Err(Error::Stale);
        }
    }
    Ok(())
}

/// The days of the rules, the workspace's identity, the numbers that are shown, consents, registers with their answers, and rests.
async fn check_lawful(db: &Transaction, attempts: &[&Lawful], now: Times) -> Result<()> {
    let within = |at: Moment, (from, until): (Moment, Moment)| from <= at && at < until;
    let in_force = |attempt: &&Lawful| within(now.ours, attempt.holds) && within(now.wall, attempt.holds);
    if !attempts.iter().all(in_force) {
        return Err(Error::Stale);
    }
    for (tenant, version) in attempts
        .iter()
        .map(|attempt| (attempt.tenant_id, attempt.identity_version))
        .collect::<BTreeSet<_>>()
    {
        if !legal_identity::is_current(db, tenant, version).await? {
            return Err(Error::Stale);
        }
    }
    check_callers(db, attempts).await?;
    let consents: BTreeSet<_> = attempts.iter().filter_map(|attempt| attempt.consent).collect();
    let consents: Vec<_> = consents.into_iter().collect();
    if !consents.is_empty() && !consent::still_stand(db, &consents, now).await? {
        return Err(Error::Stale);
    }
    let looks: Vec<&register::Seen> = attempts
        .iter()
        .filter_map(|attempt| attempt.registers.as_deref())
        .collect();
    if !looks.is_empty() && !register::are_as_seen(db, &looks).await? {
        return Err(Error::Stale);
    }
    let answers: Vec<RegisterId> = attempts.iter().flat_map(|attempt| &attempt.answers).copied().collect();
    if !answers.is_empty() && !register::answer::are_newest(db, &answers).await? {
        return Err(Error::Stale);
    }
    let mut by_owner: BTreeMap<(TenantId, Env), BTreeMap<E164, Option<Moment>>> = BTreeMap::new();
    for attempt in attempts {
        if let Some((number, since)) = &attempt.rest {
            let known = by_owner.entry((attempt.tenant_id, attempt.env)).or_default();
            known.insert(number.clone(), *since);
        }
    }
    for (owner, known) in by_owner {
        let numbers: Vec<E164> = known.keys().cloned().collect();
        let found = rest::of_numbers(db, owner, &numbers).await?;
        let newest = |number| {
            found
                .get(number)
                .and_then(|rests| rests.iter().map(|rest| rest.since).max())
        };
        if known.iter().any(|(number, since)| newest(number) != *since) {
            return Err(Error::Stale);
        }
    }
    Ok(())
}

/// What campaigns have abandoned, once for all of their calls in this transaction.
async fn check_brakes(
    db: &Transaction,
    campaigns: &BTreeMap<CampaignId, BTreeSet<AbandonmentLimit>>,
    now: Times,
) -> Result<()> {
    for (campaign, limits) in campaigns {
        let limits: Vec<AbandonmentLimit> = limits.iter().copied().collect();
        let abandonment = campaign_hour::abandonment(db, *campaign, now).await?;
        if abandonment.is_braked_by_any(&limits) {
            return Err(Error::Stale);
        }
    }
    Ok(())
}

/// What the API keys of calls may spend in a day, and how many calls they may place in a minute.
async fn check_keys(db: &Transaction, calls: &[KeyCall]) -> Result<()> {
    let ids: BTreeSet<ApiKeyId> = calls.iter().map(|call| call.api_key_id).collect();
    let ids: Vec<ApiKeyId> = ids.into_iter().collect();
    for key in api_key::of_ids(db, &ids).await? {
        let its: Vec<&KeyCall> = calls.iter().filter(|call| call.api_key_id == key.id).collect();
        let themselves: Vec<SessionId> = its.iter().map(|call| call.session_id).collect();
        let Some(first) = its.iter().map(|call| call.dialed_at).min() else {
            continue;
        };
        let mut used = session::key_use(db, &key, first, &themselves).await?;
        for call in its {
            // Several calls of one key may meet in one transaction: each counts for the next.
            if used.is_full(&key, call.most, call.dialed_at).is_some() {
                return Err(Error::Stale);
            }
            used.add(call.most, call.dialed_at);
        }
    }
    Ok(())
}

const HOUR_MS: i64 = 3_600_000;

impl CapSpan {
    /// The longest of them, in milliseconds.
    fn longest_ms<'a>(all: impl IntoIterator<Item = &'a CapSpan>) -> i64 {
        let hours = all.into_iter().map(|cap| i64::from(cap.hours)).max();
        hours.unwrap_or_default() * HOUR_MS
    }

    /// Is it reached at `at` by those that came before? `behind_ms`: the wall clock counts from so much earlier on, and by it too the
    /// cap must hold.
    fn is_reached(self, before: impl Iterator<Item = Moment>, at: Moment, behind_ms: i64) -> bool {
        let since = at.plus_millis(-i64::from(self.hours) * HOUR_MS - behind_ms);
        let count = before.filter(|sent| *sent > since).count();
        count >= usize::try_from(self.most).unwrap_or(0)
    }
}

/// Do the hours hold now and at that moment, by our time and by the wall clock?
fn in_hours(now: Times, at: Moment, hours: (Moment, Moment), wall_hours: (Moment, Moment)) -> bool {
    let within = |at: Moment, (opens, closes): (Moment, Moment)| opens <= at && at <= closes;
    let wall_at = at.plus_millis(-now.behind_ms());
    within(now.ours, hours) && within(at, hours) && within(now.wall, wall_hours) && within(wall_at, wall_hours)
}

/// Hours, the do-not-call list and the caps of everybody who is to be called.
async fn check_calls(db: &Transaction, calls: &[&Callable], now: Times) -> Result<()> {
    let behind_ms = now.behind_ms().max(0);
    let open = |call: &&Callable| in_hours(now, call.dialed_at, call.hours, call.wall_hours);
    if !calls.iter().all(open) {
        return Err(Error::Stale);
    }
    let mut by_owner: BTreeMap<(TenantId, Env), Vec<&Callable>> = BTreeMap::new();
    for call in calls {
        by_owner.entry((call.tenant_id, call.env)).or_default().push(call);
    }
    for (owner, calls) in by_owner {
        let numbers: Vec<E164> = calls.iter().map(|call| call.phone_number.clone()).collect();
        if !dnc::barred(db, owner, dnc::DncChannel::Phone, &numbers)
            .await?
            .is_empty()
        {
            return Err(Error::Stale);
        }
        let capped: Vec<_> = calls.into_iter().filter(|call| !call.caps.is_empty()).collect();
        let Some(first) = capped.iter().map(|call| call.dialed_at).min() else {
            continue;
        };
        let numbers: Vec<E164> = capped.iter().map(|call| call.phone_number.clone()).collect();
        let span_ms = CapSpan::longest_ms(capped.iter().flat_map(|call| &call.caps));
        let mut recent = dial::recent(db, owner, &numbers, first.plus_millis(-span_ms - behind_ms)).await?;
        for call in capped {
            // Two calls to one number may meet in one transaction: each counts for the next.
            let before = recent.entry(call.phone_number.clone()).or_default();
            if call.is_capped(before, behind_ms) {
                return Err(Error::Stale);
            }
            before.push(dial::Dialed {
                at: call.dialed_at,
                session_id: call.session_id,
            });
        }
    }
    Ok(())
}

/// The do-not-call list, and what blocks the workspaces, of everybody who is to be written to.
async fn check_people(db: &Transaction, people: &[&Reachable]) -> Result<()> {
    let mut by_channel: BTreeMap<_, Vec<String>> = BTreeMap::new();
    for person in people {
        let key = (person.tenant_id, person.env, person.channel);
        by_channel.entry(key).or_default().push(person.address.clone());
    }
    for ((tenant, env, channel), addresses) in by_channel {
        let blocks = dispatch_block::of(db, tenant).await?;
        if blocks.iter().any(|block| block.env == env)
            || !dnc::barred(db, (tenant, env), channel, &addresses).await?.is_empty()
        {
            return Err(Error::Stale);
        }
    }
    Ok(())
}

/// Hours and caps of everybody whom a campaign is to write to.
async fn check_written(db: &Transaction, messages: &[&Writable], now: Times) -> Result<()> {
    let behind_ms = now.behind_ms().max(0);
    let mut by_channel: BTreeMap<_, Vec<&Writable>> = BTreeMap::new();
    for message in messages {
        if !in_hours(now, message.at, message.hours, message.wall_hours) {
            return Err(Error::Stale);
        }
        if !message.caps.is_empty() {
            let key = (message.tenant_id, message.env, message.channel);
            by_channel.entry(key).or_default().push(message);
        }
    }
    for ((tenant, env, channel), messages) in by_channel {
        let addresses: Vec<String> = messages.iter().map(|message| message.address.clone()).collect();
        let Some(first) = messages.iter().map(|message| message.at).min() else {
            continue;
        };
        let span_ms = CapSpan::longest_ms(messages.iter().flat_map(|message| &message.caps));
        let since = first.plus_millis(-span_ms - behind_ms);
        let mut recent = message_send::recent(db, (tenant, env), channel, &addresses, since).await?;
        for message in messages {
            // Two messages to one address may meet in one transaction: each counts for the next.
            let before = recent.entry(message.address.clone()).or_default();
            if message.is_capped(before, behind_ms) {
                return Err(Error::Stale);
            }
            before.push(message_send::Sent {
                at: message.at,
                message_id: message.message_id,
            });
        }
    }
    Ok(())
}

impl Writable {
    /// `behind_ms`: the wall clock counts from so much earlier on, and by it too the cap must hold.
    fn is_capped(&self, before: &[message_send::Sent], behind_ms: i64) -> bool {
        let others = || before.iter().filter(|sent| sent.message_id != self.message_id);
        let reached = |cap: &CapSpan| cap.is_reached(others().map(|sent| sent.at), self.at, behind_ms);
        self.caps.iter().any(reached)
    }
}

impl Callable {
    /// Was the number called too often already? A call that a trunk sent back does not count against itself. `behind_ms`: the
    /// wall clock counts from so much earlier on, and by it too the cap must hold.
    pub fn is_capped(&self, before: &[dial::Dialed], behind_ms: i64) -> bool {
        let others = || before.iter().filter(|call| call.session_id != self.session_id);
        let reached = |cap: &CapSpan| cap.is_reached(others().map(|call| call.at), self.dialed_at, behind_ms);
        self.caps.iter().any(reached)
    }
}
