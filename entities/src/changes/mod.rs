//! Everything that one commit writes. The writer applies the changes of many actors in one transaction.
mod guards;
mod table;
mod writes;

pub use guards::{Callable, CapSpan, Guard, KeyCall, Lawful, Reachable, Writable};
pub use writes::Queue;

use crate::{
    agent, agent_version, answer, api_key, attempt, boxed,
    bulk::{OnConflict, batch::Batch},
    call_hour, caller_rest, campaign, campaign_brake, campaign_hour, campaign_move,
    connection::Transaction,
    consent, contact, delivery, delivery_attempt, dial, dispatch_block, dnc, email_message, endpoint_health,
    endpoint_hour,
    error::Result,
    evaluation, event, function,
    ids::{CampaignId, ContactId, EmailId, EndpointId, SessionId, SipLegId, TenantId, TenantScoped, VoiceId},
    inbound_call, ledger, mail, membership, message_send, number, number_hour, recording, rest, room, session, sip_leg,
    sms_message, tally, tenant, topup, transcript, user,
    values::{Env, Times},
    voice, webhook_endpoint,
};
use std::collections::BTreeMap;
use table::changes;
use uuid::Uuid;

// A list, a line: its rows, how they are written, and what names a row that is replaced. They are written in this order.
changes! {
    /// Rows with a `version` are inserted at 1 and else replace exactly their predecessor.
    #[derive(Clone, Debug, Default)]
    pub struct Changes {
        /// Looked at before anything is written.
        guards: Vec<Guard> => elsewhere;
        tenants: Vec<tenant::Model> => ReplacePredecessor, key("tenant", id);
        users: Vec<user::Model> => Fail;
        memberships: Vec<membership::Model> => Fail;
        api_keys: Vec<api_key::Model> => Fail;
        topups: Vec<topup::Model> => ReplacePredecessor, key("topup", id);
        agents: Vec<agent::Model> => ReplacePredecessor, key("agent", id);
        agent_versions: Vec<agent_version::Model> => Fail;
        functions: Vec<function::Model> => ReplacePredecessor, key("function", id);
        numbers: Vec<number::Model> => ReplacePredecessor, key("number", id);
        number_alarms: Vec<number::alarm::Model> => Replace, key("alarm", number_id);
        inbound_calls: Vec<inbound_call::Model> => Keep;
        endpoints: Vec<webhook_endpoint::Model> => ReplacePredecessor, key("endpoint", id);
        campaigns: Vec<campaign::Model> => ReplacePredecessor, key("campaign", id);
        contacts: Vec<contact::Model> => with(contact::advance), key("contact", id);
        sessions: Vec<session::Model> => with(session::advance), key("session", id);
        /// Legs as they are on the wire, and those of which nothing is any more.
        sip_legs: Vec<sip_leg::Model> => Replace, key("sip_leg", id);
        sip_legs_gone: Vec<SipLegId> => by(writes::delete_legs);
        rooms: Vec<room::Model> => ReplacePredecessor, key("room", id);
        transcripts: Vec<transcript::Model> => Replace;
        /// What became known of sessions after their end.
        timeline_entries: Vec<(SessionId, transcript::Entry)> => by(transcript::add);
        recordings: Vec<recording::Model> => ReplacePredecessor, key("recording", id);
        recording_reads: Vec<recording::read::Model> => Fail;
        evaluations: Vec<evaluation::Model> => Replace, key("evaluation", session_id);
        // What somebody has said already stays.
        answers: Vec<answer::Model> => Keep;
        /// Sessions of which nobody shall read what was answered.
        forgotten: Vec<SessionId> => by(writes::forget_answers);
        /// How a contact's last call was classified, after its end.
        contact_dispositions: Vec<(ContactId, SessionId, String)> => by(writes::set_dispositions), key("contact", 0);
        /// Intents to call.
        dials: Vec<dial::Model> => Fail;
        // One key for a tenant's whole list: no dial of that tenant is in one transaction with a change of it.
        dnc: Vec<dnc::Model> => ReplacePredecessor, key("dnc", tenant_id);
        /// Of entries that are there already: the person has said it again.
        dnc_wishes: Vec<dnc::Wish> => by(dnc::note), key("dnc", tenant_id);
        // Of the same key: no dial is in one transaction with a change of what it may rest on.
        consents: Vec<consent::Model> => ReplacePredecessor, key("dnc", tenant_id);
        consent_texts: Vec<consent::text::Model> => Fail;
        consent_files: Vec<consent::file::Model> => Replace, key("consent_file", id);
        /// Consents that somebody takes back.
        revocations: Vec<consent::Revocation> => by(consent::revoke), key("dnc", tenant_id);
        sms_messages: Vec<sms_message::Model> => ReplacePredecessor, key("sms", id);
        email_messages: Vec<email_message::Model> => ReplacePredecessor, key("email", id);
        email_contents: Vec<email_message::content::Model> => Fail;
        /// E-mails of which nobody shall read what they said.
        emails_forgotten: Vec<EmailId> => by(writes::forget_contents);
        /// Intents to send a message.
        message_sends: Vec<message_send::Model> => Fail;
        campaign_moves: Vec<campaign_move::Model> => Fail;
        /// Differences, added to the hour's counts.
        campaign_hours: Vec<campaign_hour::Model> => with(campaign_hour::add);
        /// The same for all calls of a workspace.
        call_hours: Vec<call_hour::Model> => with(call_hour::add);
        /// The same for all calls that showed a number.
        number_hours: Vec<number_hour::Model> => with(number_hour::add);
        /// Who is to be left alone for a while.
        rests: Vec<rest::Model> => with(rest::put);
        /// Numbers that are shown no more for a while.
        caller_rests: Vec<caller_rest::Model> => Replace, key("caller", tenant_id);
        /// Campaigns that are held for what they have abandoned.
        campaign_brakes: Vec<campaign_brake::Model> => Keep;
        /// Differences, added up per campaign; counted last.
        tallies: BTreeMap<TenantScoped<CampaignId>, tally::Model> => elsewhere, key("tally", 0.id);
        /// New events with the deliveries that carry them.
        events: Vec<event::Model> => Fail;
        deliveries: Vec<delivery::Model> => Fail;
        /// Outcomes of attempts.
        delivery_updates: Vec<delivery::Model> => with(delivery::update);
        /// What becomes of everything that an endpoint has not received. One slice of it here; its lane sees to the rest.
        queues: Vec<(EndpointId, Queue)> => by(writes::put_away);
        attempts: Vec<delivery_attempt::Model> => Keep;
        healths: Vec<endpoint_health::Model> => Replace;
        /// Differences, added to the hour's counts.
        hours: Vec<endpoint_hour::Model> => with(endpoint_hour::add);
        mails: Vec<mail::Model> => Fail;
        /// What happens to credits; the writer books it in order, together with what it follows from.
        movements: Vec<ledger::Movement> => elsewhere;
        /// The booked entries and the accounts after them, by the writer alone.
        ledger_entries: Vec<ledger::Model> => Fail;
        accounts: Vec<ledger::account::Model> => ReplacePredecessor;
        /// What is to be recorded of attempts; the writer chains it in order.
        attempt_records: Vec<attempt::New> => elsewhere;
        /// The chained rows and where their chains end, by the writer alone.
        chained_records: Vec<attempt::Model> => Fail;
        attempt_chains: Vec<attempt::chain::Model> => ReplacePredecessor;
        /// What keeps tenants from dispatching, and what no longer does.
        blocks: Vec<dispatch_block::Model> => Keep;
        unblocked: Vec<(TenantId, Env, dispatch_block::Reason)> => by(writes::unblock);
        voices: Vec<voice::Model> => ReplacePredecessor, key("voice", id);
        voice_samples: Vec<voice::sample::Model> => Replace, key("voice_sample", id);
        /// Voices of which no sample is kept.
        voices_forgotten: Vec<VoiceId> => by(writes::forget_samples);
    }
}

/// What the rest of the service may want to know about a commit.
#[derive(Debug, Default)]
pub struct Applied {
    /// Campaigns of which no contact is left unfinished.
    pub drained: Vec<TenantScoped<CampaignId>>,
}

impl Changes {
    /// Counts a contact's move, or a session's end, for the campaign.
    pub fn tally(&mut self, campaign: TenantScoped<CampaignId>) -> &mut tally::Model {
        self.tallies
            .entry(campaign)
            .or_insert_with(|| tally::Model::new(campaign.id))
    }

    /// The rows that this replaces, and the campaigns of which it counts an abandoned call: no dial that asks how many there are is in
    /// one transaction with it.
    pub fn written(&self) -> Vec<(&'static str, Uuid)> {
        let mut keys = self.replaced();
        let abandoned = self.campaign_hours.iter().filter(|hour| hour.abandoned > 0);
        keys.extend(abandoned.map(|hour| (guards::ABANDONED, hour.campaign_id.0)));
        keys
    }

    /// The rows that this replaces or depends on, so that the writer puts no two changes of one row into one statement.
    pub fn touched(&self) -> Vec<(&'static str, Uuid)> {
        let mut keys = self.written();
        keys.extend(self.guards.iter().map(Guard::key));
        keys
    }

    /// Writes it all. The caller's transaction makes it one.
    #[boxed]
    pub async fn apply(&self, db: &Transaction, now: Times) -> Result<Applied> {
        Self::apply_all(&[self], db, now).await
    }

    /// Writes all of what one transaction commits.
    #[boxed]
    pub async fn apply_all(all: &[&Changes], db: &Transaction, now: Times) -> Result<Applied> {
        let guards: Vec<&Guard> = all.iter().flat_map(|one| &one.guards).collect();
        guards::check(db, &guards, now).await?;
        Self::write_lists(db, all).await?;
        let drained = writes::count(db, all).await?;
        Ok(Applied { drained })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ids::ConsentId, values::Moment};

    /// Each a list with one row, of those whose rows are quickly made. The table treats all of them alike.
    fn ones() -> Vec<Changes> {
        let nil = Uuid::nil();
        let (tenant, campaign, session) = (TenantId(nil), CampaignId(nil), SessionId(nil));
        let mut counted = Changes::default();
        counted.tally(TenantScoped::new(tenant, Env::Test, campaign)).total = 1;
        let entry = transcript::Entry {
            at: Moment::from_millis(0),
            kind: "sip_ladder".into(),
            detail: None,
        };
        vec![
            counted,
            Changes {
                guards: vec![Guard::Runs(campaign)],
                ..Changes::default()
            },
            Changes {
                forgotten: vec![session],
                ..Changes::default()
            },
            Changes {
                contact_dispositions: vec![(ContactId(nil), session, "reached".into())],
                ..Changes::default()
            },
            Changes {
                campaign_hours: vec![campaign_hour::Model::empty(campaign, Moment::from_millis(0))],
                ..Changes::default()
            },
            Changes {
                call_hours: vec![call_hour::Model::empty(tenant, Env::Test, Moment::from_millis(0))],
                ..Changes::default()
            },
            Changes {
                hours: vec![endpoint_hour::Model::empty(EndpointId(nil), Moment::from_millis(0))],
                ..Changes::default()
            },
            Changes {
                queues: vec![(EndpointId(nil), Queue::Hold)],
                ..Changes::default()
            },
            Changes {
                unblocked: vec![(tenant, Env::Test, dispatch_block::Reason::Credits)],
                ..Changes::default()
            },
            Changes {
                timeline_entries: vec![(session, entry)],
                ..Changes::default()
            },
            Changes {
                voices_forgotten: vec![VoiceId(nil)],
                ..Changes::default()
            },
            Changes {
                emails_forgotten: vec![EmailId(nil)],
                ..Changes::default()
            },
            Changes {
                sip_legs_gone: vec![SipLegId(nil)],
                ..Changes::default()
            },
            Changes {
                revocations: vec![revocation(tenant)],
                ..Changes::default()
            },
        ]
    }

    fn revocation(tenant_id: TenantId) -> consent::Revocation {
        consent::Revocation {
            tenant_id,
            env: Env::Test,
            what: consent::Revoked::One(ConsentId(Uuid::nil())),
            channels: dnc::Channels(Vec::new()),
            given_by: None,
            at: Moment::from_millis(0),
            by: None,
            reason: String::new(),
            seq: 0,
        }
    }

    #[test]
    fn a_commit_with_one_list_is_not_nothing() {
        assert!(Changes::default().is_empty());
        for one in ones() {
            assert!(!one.is_empty(), "{one:?}");
        }
    }

    #[test]
    fn what_is_replaced_is_named() {
        let kinds = |changes: &Changes| changes.touched().into_iter().map(|(kind, _)| kind).collect::<Vec<_>>();
        let named: Vec<_> = ones().iter().flat_map(kinds).collect();
        assert_eq!(named, ["tally", "campaign", "contact", "dnc"]);
    }

    #[test]
    fn no_dial_is_written_together_with_an_abandoned_call_of_its_campaign() {
        let campaign_id = CampaignId(Uuid::from_u128(7));
        let counts = |abandoned| Changes {
            campaign_hours: vec![campaign_hour::Model {
                abandoned,
                ..campaign_hour::Model::empty(campaign_id, Moment::from_millis(0))
            }],
            ..Changes::default()
        };
        let dial = Changes {
            guards: vec![Guard::NotBraked {
                campaign_id,
                limits: Vec::new(),
            }],
            ..Changes::default()
        };
        let touches = |written: &Changes| dial.touched().iter().any(|key| written.written().contains(key));
        assert!(touches(&counts(1)) && !touches(&counts(0)));
        assert!(!touches(&dial), "dials go together");
    }
}
