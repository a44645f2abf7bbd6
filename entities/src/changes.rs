//! Everything that one commit writes. The writer merges the changes of many actors and applies them in one transaction.
use crate::{
    agent, agent_version, answer, api_key, bulk,
    bulk::OnConflict,
    campaign, campaign_hour, campaign_move, contact,
    delivery::{self, PutAway},
    delivery_attempt, dial, dispatch_block, dispatch_pause, dnc, email_message, endpoint_health, endpoint_hour,
    error::{Error, Result},
    evaluation, event, function,
    ids::{CampaignId, ContactId, EndpointId, Owned, SessionId, TenantId, VoiceId},
    inbound_call, ledger, mail, membership, message_send, number, recording, room, session, sms_message, tally, tenant,
    topup, transcript, user,
    values::{E164, Env, Moment, Times},
    voice, webhook_endpoint,
};
use sea_orm::ConnectionTrait;
use std::collections::{BTreeMap, BTreeSet};
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
    /// This number may be called at this moment.
    Callable(Callable),
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
    /// Calls to the number in any 24 hours and in any 7 days, this one included.
    pub caps: (Option<i32>, Option<i32>),
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
    /// Messages of that channel in any 24 hours and in any 7 days, this one included.
    pub caps: (Option<i32>, Option<i32>),
}

/// Rows with a `version` are inserted at 1 and else replace exactly their predecessor.
#[derive(Clone, Debug, Default)]
pub struct Changes {
    pub guards: Vec<Guard>,
    pub tenants: Vec<tenant::Model>,
    pub users: Vec<user::Model>,
    pub memberships: Vec<membership::Model>,
    pub api_keys: Vec<api_key::Model>,
    pub topups: Vec<topup::Model>,
    pub agents: Vec<agent::Model>,
    pub agent_versions: Vec<agent_version::Model>,
    pub functions: Vec<function::Model>,
    pub numbers: Vec<number::Model>,
    pub number_alarms: Vec<number::alarm::Model>,
    pub inbound_calls: Vec<inbound_call::Model>,
    pub endpoints: Vec<webhook_endpoint::Model>,
    pub campaigns: Vec<campaign::Model>,
    pub contacts: Vec<contact::Model>,
    pub sessions: Vec<session::Model>,
    pub rooms: Vec<room::Model>,
    pub transcripts: Vec<transcript::Model>,
    pub recordings: Vec<recording::Model>,
    pub recording_reads: Vec<recording::read::Model>,
    pub evaluations: Vec<evaluation::Model>,
    pub answers: Vec<answer::Model>,
    /// Sessions of which nobody shall read what was answered.
    pub forgotten: Vec<SessionId>,
    /// How a contact's last call was classified, after its end.
    pub contact_dispositions: Vec<(ContactId, SessionId, String)>,
    /// Intents to call.
    pub dials: Vec<dial::Model>,
    pub dnc: Vec<dnc::Model>,
    pub sms_messages: Vec<sms_message::Model>,
    pub email_messages: Vec<email_message::Model>,
    pub email_contents: Vec<email_message::content::Model>,
    /// Intents to send a message.
    pub message_sends: Vec<message_send::Model>,
    pub campaign_moves: Vec<campaign_move::Model>,
    /// Differences, added to the hour's counts.
    pub campaign_hours: Vec<campaign_hour::Model>,
    /// Differences, added up per campaign.
    pub tallies: BTreeMap<Owned<CampaignId>, tally::Model>,
    /// New events with the deliveries that carry them.
    pub events: Vec<event::Model>,
    pub deliveries: Vec<delivery::Model>,
    /// Outcomes of attempts.
    pub delivery_updates: Vec<delivery::Model>,
    /// What becomes of everything that an endpoint has not received. One slice of it here; its lane sees to the rest.
    pub queues: Vec<(EndpointId, Queue)>,
    pub attempts: Vec<delivery_attempt::Model>,
    pub healths: Vec<endpoint_health::Model>,
    /// Differences, added to the hour's counts.
    pub hours: Vec<endpoint_hour::Model>,
    pub mails: Vec<mail::Model>,
    /// What happens to credits; the writer books it in order, together with what it follows from.
    pub movements: Vec<ledger::Movement>,
    /// The booked entries and the accounts after them, by the writer alone.
    pub ledger_entries: Vec<ledger::Model>,
    pub accounts: Vec<ledger::account::Model>,
    /// What keeps tenants from dispatching, and what no longer does.
    pub blocks: Vec<dispatch_block::Model>,
    pub unblocked: Vec<(TenantId, Env, dispatch_block::Reason)>,
    pub voices: Vec<voice::Model>,
    pub voice_samples: Vec<voice::sample::Model>,
    /// Voices of which no sample is kept.
    pub voices_forgotten: Vec<VoiceId>,
}

/// What becomes of all that an endpoint has not received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Queue {
    /// Open deliveries are cancelled: the endpoint is disabled.
    CancelOpen,
    /// Held ones too: it is deleted.
    CancelAll,
    /// Open deliveries are held: it is suspended.
    Hold,
}

/// What the rest of the service may want to know about a commit.
#[derive(Debug, Default)]
pub struct Applied {
    /// Campaigns of which no contact is left unfinished.
    pub drained: Vec<Owned<CampaignId>>,
}

impl Changes {
    /// Counts a contact's move, or a session's end, for the campaign.
    pub fn tally(&mut self, campaign: Owned<CampaignId>) -> &mut tally::Model {
        self.tallies
            .entry(campaign)
            .or_insert_with(|| tally::Model::new(campaign.id))
    }

    pub fn merge(&mut self, other: Changes) {
        let Changes {
            guards,
            tenants,
            users,
            memberships,
            api_keys,
            topups,
            agents,
            agent_versions,
            functions,
            numbers,
            number_alarms,
            inbound_calls,
            endpoints,
            campaigns,
            contacts,
            sessions,
            rooms,
            transcripts,
            recordings,
            recording_reads,
            evaluations,
            answers,
            forgotten,
            contact_dispositions,
            dials,
            dnc,
            sms_messages,
            email_messages,
            email_contents,
            message_sends,
            campaign_moves,
            campaign_hours,
            tallies,
            events,
            deliveries,
            delivery_updates,
            queues,
            attempts,
            healths,
            hours,
            mails,
            movements,
            ledger_entries,
            accounts,
            blocks,
            unblocked,
            voices,
            voice_samples,
            voices_forgotten,
        } = other;
        self.guards.extend(guards);
        self.tenants.extend(tenants);
        self.users.extend(users);
        self.memberships.extend(memberships);
        self.api_keys.extend(api_keys);
        self.topups.extend(topups);
        self.agents.extend(agents);
        self.agent_versions.extend(agent_versions);
        self.functions.extend(functions);
        self.numbers.extend(numbers);
        self.number_alarms.extend(number_alarms);
        self.inbound_calls.extend(inbound_calls);
        self.endpoints.extend(endpoints);
        self.campaigns.extend(campaigns);
        self.contacts.extend(contacts);
        self.sessions.extend(sessions);
        self.rooms.extend(rooms);
        self.transcripts.extend(transcripts);
        self.recordings.extend(recordings);
        self.recording_reads.extend(recording_reads);
        self.evaluations.extend(evaluations);
        self.answers.extend(answers);
        self.forgotten.extend(forgotten);
        self.contact_dispositions.extend(contact_dispositions);
        self.dials.extend(dials);
        self.dnc.extend(dnc);
        self.sms_messages.extend(sms_messages);
        self.email_messages.extend(email_messages);
        self.email_contents.extend(email_contents);
        self.message_sends.extend(message_sends);
        self.campaign_moves.extend(campaign_moves);
        self.campaign_hours.extend(campaign_hours);
        for (campaign, by) in tallies {
            let sum = self.tally(campaign);
            sum.total += by.total;
            sum.pending += by.pending;
            sum.waiting += by.waiting;
            sum.dispatched += by.dispatched;
            sum.completed += by.completed;
            sum.failed += by.failed;
            sum.skipped += by.skipped;
            sum.canceled += by.canceled;
            sum.completed_sessions += by.completed_sessions;
            sum.failed_sessions += by.failed_sessions;
            sum.cost_cents += by.cost_cents;
        }
        self.events.extend(events);
        self.deliveries.extend(deliveries);
        self.delivery_updates.extend(delivery_updates);
        self.queues.extend(queues);
        self.attempts.extend(attempts);
        self.healths.extend(healths);
        self.hours.extend(hours);
        self.mails.extend(mails);
        self.movements.extend(movements);
        self.ledger_entries.extend(ledger_entries);
        self.accounts.extend(accounts);
        self.blocks.extend(blocks);
        self.unblocked.extend(unblocked);
        self.voices.extend(voices);
        self.voice_samples.extend(voice_samples);
        self.voices_forgotten.extend(voices_forgotten);
    }

    pub fn is_empty(&self) -> bool {
        let Changes {
            guards,
            tallies,
            queues,
            healths,
            hours,
            mails,
            events,
            deliveries,
            delivery_updates,
            attempts,
            transcripts,
            dials,
            campaign_hours,
            agent_versions,
            number_alarms,
            inbound_calls,
            recording_reads,
            evaluations,
            answers,
            contact_dispositions,
            movements,
            ledger_entries,
            accounts,
            blocks,
            unblocked,
            email_contents,
            message_sends,
            voices_forgotten,
            ..
        } = self;
        self.written().is_empty()
            && self.users.is_empty()
            && self.memberships.is_empty()
            && self.api_keys.is_empty()
            && guards.is_empty()
            && tallies.is_empty()
            && queues.is_empty()
            && healths.is_empty()
            && hours.is_empty()
            && mails.is_empty()
            && events.is_empty()
            && deliveries.is_empty()
            && delivery_updates.is_empty()
            && attempts.is_empty()
            && transcripts.is_empty()
            && dials.is_empty()
            && campaign_hours.is_empty()
            && agent_versions.is_empty()
            && number_alarms.is_empty()
            && inbound_calls.is_empty()
            && recording_reads.is_empty()
            && evaluations.is_empty()
            && answers.is_empty()
            && contact_dispositions.is_empty()
            && movements.is_empty()
            && ledger_entries.is_empty()
            && accounts.is_empty()
            && blocks.is_empty()
            && unblocked.is_empty()
            && email_contents.is_empty()
            && message_sends.is_empty()
            && voices_forgotten.is_empty()
    }

    /// The rows that this replaces or depends on, so that the writer puts no two changes of one row into one statement.
    pub fn touched(&self) -> Vec<(&'static str, Uuid)> {
        let mut keys = Vec::new();
        keys.extend(self.guards.iter().map(|guard| match guard {
            Guard::Dispatchable(campaign, _) | Guard::Rules(campaign, _) | Guard::Runs(campaign) => {
                ("campaign", campaign.0)
            }
            Guard::Free(tenant, ..) => ("tenant", tenant.0),
            Guard::Callable(call) => ("dnc", call.tenant_id.0),
            Guard::Reachable(person) => ("dnc", person.tenant_id.0),
            Guard::Writable(message) => ("dnc", message.tenant_id.0),
            Guard::Drained { campaign_id, .. } | Guard::Counted { campaign_id, .. } => ("tally", campaign_id.0),
        }));
        keys.extend(self.written());
        keys
    }

    /// The rows that this replaces.
    pub fn written(&self) -> Vec<(&'static str, Uuid)> {
        let mut keys = Vec::new();
        keys.extend(self.tenants.iter().map(|row| ("tenant", row.id.0)));
        keys.extend(self.topups.iter().map(|row| ("topup", row.id.0)));
        keys.extend(self.agents.iter().map(|row| ("agent", row.id.0)));
        keys.extend(self.functions.iter().map(|row| ("function", row.id.0)));
        keys.extend(self.numbers.iter().map(|row| ("number", row.id.0)));
        keys.extend(self.number_alarms.iter().map(|row| ("alarm", row.number_id.0)));
        keys.extend(self.recordings.iter().map(|row| ("recording", row.id.0)));
        keys.extend(self.evaluations.iter().map(|row| ("evaluation", row.session_id.0)));
        keys.extend(self.contact_dispositions.iter().map(|(id, ..)| ("contact", id.0)));
        keys.extend(self.endpoints.iter().map(|row| ("endpoint", row.id.0)));
        keys.extend(self.campaigns.iter().map(|row| ("campaign", row.id.0)));
        keys.extend(self.contacts.iter().map(|row| ("contact", row.id.0)));
        keys.extend(self.sessions.iter().map(|row| ("session", row.id.0)));
        keys.extend(self.rooms.iter().map(|row| ("room", row.id.0)));
        keys.extend(self.sms_messages.iter().map(|row| ("sms", row.id.0)));
        keys.extend(self.email_messages.iter().map(|row| ("email", row.id.0)));
        keys.extend(self.voices.iter().map(|row| ("voice", row.id.0)));
        keys.extend(self.voice_samples.iter().map(|row| ("voice_sample", row.id.0)));
        // One key for a tenant's whole list: no dial of that tenant is in one transaction with a change of it.
        keys.extend(self.dnc.iter().map(|row| ("dnc", row.tenant_id.0)));
        keys.extend(self.tallies.keys().map(|campaign| ("tally", campaign.id.0)));
        keys
    }

    /// Writes it all. The caller's transaction makes it one.
    pub async fn apply(&self, db: &impl ConnectionTrait, now: Times) -> Result<Applied> {
        self.check_guards(db, now).await?;
        bulk::save(db, &self.tenants, OnConflict::ReplacePredecessor).await?;
        bulk::save(db, &self.users, OnConflict::Fail).await?;
        bulk::save(db, &self.memberships, OnConflict::Fail).await?;
        bulk::save(db, &self.api_keys, OnConflict::Fail).await?;
        bulk::save(db, &self.topups, OnConflict::ReplacePredecessor).await?;
        bulk::save(db, &self.agents, OnConflict::ReplacePredecessor).await?;
        bulk::save(db, &self.agent_versions, OnConflict::Fail).await?;
        bulk::save(db, &self.functions, OnConflict::ReplacePredecessor).await?;
        bulk::save(db, &self.numbers, OnConflict::ReplacePredecessor).await?;
        bulk::save(db, &self.number_alarms, OnConflict::Replace).await?;
        bulk::save(db, &self.inbound_calls, OnConflict::Keep).await?;
        bulk::save(db, &self.endpoints, OnConflict::ReplacePredecessor).await?;
        bulk::save(db, &self.campaigns, OnConflict::ReplacePredecessor).await?;
        bulk::save(db, &self.contacts, OnConflict::ReplacePredecessor).await?;
        bulk::save(db, &self.sessions, OnConflict::ReplacePredecessor).await?;
        bulk::save(db, &self.rooms, OnConflict::ReplacePredecessor).await?;
        bulk::save(db, &self.transcripts, OnConflict::Replace).await?;
        bulk::save(db, &self.recordings, OnConflict::ReplacePredecessor).await?;
        bulk::save(db, &self.recording_reads, OnConflict::Fail).await?;
        bulk::save(db, &self.evaluations, OnConflict::Replace).await?;
        // What somebody has said already stays.
        bulk::save(db, &self.answers, OnConflict::Keep).await?;
        for session in &self.forgotten {
            answer::delete_of(db, *session).await?;
        }
        for (id, session, code) in &self.contact_dispositions {
            contact::set_disposition(db, *id, *session, code).await?;
        }
        bulk::save(db, &self.dials, OnConflict::Fail).await?;
        bulk::save(db, &self.dnc, OnConflict::ReplacePredecessor).await?;
        bulk::save(db, &self.sms_messages, OnConflict::ReplacePredecessor).await?;
        bulk::save(db, &self.email_messages, OnConflict::ReplacePredecessor).await?;
        bulk::save(db, &self.email_contents, OnConflict::Fail).await?;
        bulk::save(db, &self.message_sends, OnConflict::Fail).await?;
        bulk::save(db, &self.campaign_moves, OnConflict::Fail).await?;
        campaign_hour::add(db, &self.campaign_hours).await?;
        bulk::save(db, &self.events, OnConflict::Fail).await?;
        bulk::save(db, &self.deliveries, OnConflict::Fail).await?;
        delivery::update(db, &self.delivery_updates).await?;
        for (endpoint, queue) in &self.queues {
            match queue {
                Queue::CancelOpen => delivery::put_away(db, *endpoint, PutAway::CancelOpen).await?,
                Queue::CancelAll => {
                    delivery::put_away(db, *endpoint, PutAway::CancelHeld).await?;
                    delivery::put_away(db, *endpoint, PutAway::CancelOpen).await?
                }
                Queue::Hold => delivery::put_away(db, *endpoint, PutAway::HoldOpen).await?,
            };
        }
        bulk::save(db, &self.attempts, OnConflict::Keep).await?;
        bulk::save(db, &self.healths, OnConflict::Replace).await?;
        endpoint_hour::add(db, &self.hours).await?;
        bulk::save(db, &self.mails, OnConflict::Fail).await?;
        bulk::save(db, &self.ledger_entries, OnConflict::Fail).await?;
        bulk::save(db, &self.accounts, OnConflict::ReplacePredecessor).await?;
        dispatch_block::add(db, &self.blocks).await?;
        for (tenant, env, reason) in &self.unblocked {
            dispatch_block::remove(db, *tenant, *env, *reason).await?;
        }
        bulk::save(db, &self.voices, OnConflict::ReplacePredecessor).await?;
        bulk::save(db, &self.voice_samples, OnConflict::Replace).await?;
        for voice in &self.voices_forgotten {
            voice::sample::delete_of(db, *voice).await?;
        }
        // A campaign's first row of counts is born with it.
        let born: Vec<_> = self
            .campaigns
            .iter()
            .filter(|row| row.version == 1)
            .map(|row| tally::Model::new(row.id))
            .collect();
        bulk::save(db, &born, OnConflict::Fail).await?;
        let mut applied = Applied::default();
        for (campaign, by) in &self.tallies {
            if tally::add(db, by).await? == 0 {
                applied.drained.push(*campaign);
            }
        }
        Ok(applied)
    }

    async fn check_guards(&self, db: &impl ConnectionTrait, now: Times) -> Result<()> {
        let (mut campaigns, mut tenants, mut calls) = (BTreeSet::new(), BTreeSet::new(), Vec::new());
        let (mut running, mut rules) = (BTreeSet::new(), BTreeSet::new());
        let mut written = Vec::new();
        let mut people = Vec::new();
        for guard in &self.guards {
            match guard {
                Guard::Dispatchable(campaign, version) => drop(campaigns.insert((*campaign, *version))),
                Guard::Rules(campaign, version) => drop(rules.insert((*campaign, *version))),
                Guard::Runs(campaign) => drop(running.insert(*campaign)),
                Guard::Free(tenant, env, version) => drop(tenants.insert((*tenant, *env, *version))),
                Guard::Callable(call) => calls.push(call),
                Guard::Reachable(person) => people.push(person),
                Guard::Writable(message) => written.push(message),
                Guard::Counted {
                    campaign_id,
                    total,
                    waiting,
                } => {
                    let tally = tally::load(db, *campaign_id).await?;
                    if tally.total != *total || tally.pending + tally.waiting != *waiting {
                        return Err(Error::Stale);
                    }
                }
                Guard::Drained { campaign_id, total } => {
                    let tally = tally::load(db, *campaign_id).await?;
                    if tally.unfinished() != 0 || tally.total != *total {
                        return Err(Error::Stale);
                    }
                }
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
        let leaves = !(people.is_empty() && written.is_empty() && calls.is_empty());
        if leaves && (now.in_doubt || dispatch_pause::lasts(db).await?) {
            return Err(Error::Stale);
        }
        check_people(db, &people).await?;
        check_written(db, &written, now).await?;
        check_calls(db, &calls, now).await
    }
}

const DAY_MS: i64 = 24 * 3_600_000;

/// Do the hours hold now and at that moment, by our time and by the wall clock?
fn in_hours(now: Times, at: Moment, hours: (Moment, Moment), wall_hours: (Moment, Moment)) -> bool {
    let within = |at: Moment, (opens, closes): (Moment, Moment)| opens <= at && at <= closes;
    let wall_at = at.plus_millis(-now.behind_ms());
    within(now.ours, hours) && within(at, hours) && within(now.wall, wall_hours) && within(wall_at, wall_hours)
}

/// Hours, the do-not-call list and the caps of everybody who is to be called.
async fn check_calls(db: &impl ConnectionTrait, calls: &[&Callable], now: Times) -> Result<()> {
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
        let capped: Vec<_> = calls.into_iter().filter(|call| call.caps != (None, None)).collect();
        let Some(first) = capped.iter().map(|call| call.dialed_at).min() else {
            continue;
        };
        let numbers: Vec<E164> = capped.iter().map(|call| call.phone_number.clone()).collect();
        let mut recent = dial::recent(db, owner, &numbers, first.plus_millis(-7 * DAY_MS - behind_ms)).await?;
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
async fn check_people(db: &impl ConnectionTrait, people: &[&Reachable]) -> Result<()> {
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
async fn check_written(db: &impl ConnectionTrait, messages: &[&Writable], now: Times) -> Result<()> {
    let behind_ms = now.behind_ms().max(0);
    let mut by_channel: BTreeMap<_, Vec<&Writable>> = BTreeMap::new();
    for message in messages {
        if !in_hours(now, message.at, message.hours, message.wall_hours) {
            return Err(Error::Stale);
        }
        if message.caps != (None, None) {
            let key = (message.tenant_id, message.env, message.channel);
            by_channel.entry(key).or_default().push(message);
        }
    }
    for ((tenant, env, channel), messages) in by_channel {
        let addresses: Vec<String> = messages.iter().map(|message| message.address.clone()).collect();
        let Some(first) = messages.iter().map(|message| message.at).min() else {
            continue;
        };
        let since = first.plus_millis(-7 * DAY_MS - behind_ms);
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
        let reached = |cap: Option<i32>, days: i64| {
            let since = self.at.plus_millis(-days * DAY_MS - behind_ms);
            let others = before.iter().filter(|sent| sent.message_id != self.message_id);
            let count = others.filter(|sent| sent.at > since).count();
            cap.is_some_and(|cap| count >= usize::try_from(cap).unwrap_or(0))
        };
        reached(self.caps.0, 1) || reached(self.caps.1, 7)
    }
}

impl Callable {
    /// Was the number called too often already? A call that a trunk sent back does not count against itself. `behind_ms`: the
    /// wall clock counts from so much earlier on, and by it too the cap must hold.
    pub fn is_capped(&self, before: &[dial::Dialed], behind_ms: i64) -> bool {
        let reached = |cap: Option<i32>, days: i64| {
            let since = self.dialed_at.plus_millis(-days * DAY_MS - behind_ms);
            let others = before.iter().filter(|call| call.session_id != self.session_id);
            let count = others.filter(|call| call.at > since).count();
            cap.is_some_and(|cap| count >= usize::try_from(cap).unwrap_or(0))
        };
        reached(self.caps.0, 1) || reached(self.caps.1, 7)
    }
}
