//! Commits what a round has decided, and hands over what then stands.
use super::{
    dial::Dial,
    message::MessageIntent,
    place::{at_its_moment, place, undecided},
    rounds::Intents,
    state::State,
};
use crate::{deps::Deps, leases::Of};
use entities::{
    Error, Result, boxed,
    ids::{CampaignId, TrunkId},
};
use futures_util::future::join_all;
use rules::dispatch::{concurrency::Slot, last_second::Paced};

impl State {
    /// What a call, or a message, of that campaign is held to in its last second, beside the tenant's rate.
    fn paced(&self, campaign: Option<CampaignId>, trunk: Option<TrunkId>) -> Vec<(Paced, f64)> {
        let of_campaign = campaign.and_then(|id| {
            let queue = self.snapshot.campaigns.get(&id)?;
            Some((Paced::Campaign(id), queue.pace.rate()))
        });
        let of_trunk = trunk.and_then(|id| {
            let trunk = self.snapshot.trunks.live.get(&id)?;
            Some((Paced::Trunk(id), trunk.pace.rate()))
        });
        of_campaign.into_iter().chain(of_trunk).collect()
    }

    /// Commits the intents, all at once, and hands the calls over at their moments. Answers whether all rows were as
    /// expected.
    #[boxed]
    pub async fn commit(&mut self, deps: &Deps, intents: Intents) -> Result<bool> {
        let (mut as_expected, mut failed) = (true, None);
        let mut note = |error: Error| {
            as_expected = false;
            // Nothing was dialled; a database that does not answer is asked again later.
            if !matches!(error, Error::Stale) {
                failed.get_or_insert(error);
            }
        };
        let of = Of::from(self.known.tenant);
        let settled = join_all(intents.settled.into_iter().map(|commit| deps.writer.commit(of, commit)));
        let (calls, dials): (Vec<_>, Vec<_>) = intents
            .dials
            .into_iter()
            .map(
                |Dial {
                     call,
                     session,
                     at,
                     commit,
                     effects,
                 }| {
                    // Before the commit, so that nobody takes the call for one that a crash cut off.
                    deps.calls.insert(session.call.id, call);
                    ((session, at, effects), deps.writer.commit(of, commit))
                },
            )
            .unzip();
        let (messages, written): (Vec<_>, Vec<_>) = intents
            .messages
            .into_iter()
            .map(|(intent, permit)| {
                let MessageIntent {
                    message,
                    permission,
                    at,
                    commit,
                    effects,
                } = intent;
                let message = (message, permit, permission);
                ((message, at, effects), deps.writer.commit(of, commit))
            })
            .unzip();
        let (settled, dialed, written) = futures_util::future::join3(settled, join_all(dials), join_all(written)).await;
        for (outcome, ((message, permit, permission), at, effects)) in written.into_iter().zip(messages) {
            if let Err(error) = outcome {
                if !matches!(error, Error::Stale) {
                    message.undecided(deps);
                }
                note(error);
                continue;
            }
            deps.router.perform(effects);
            let campaign = message.campaign();
            if let Some(campaign) = campaign {
                deps.pacing_report.dialed(campaign, at);
            }
            let paced = self.paced(campaign, None);
            at_its_moment(deps, of, self.limiter.clone(), paced, at, move |deps, _| {
                message.send(deps, permit, permission)
            });
        }
        settled.into_iter().filter_map(Result::err).for_each(&mut note);
        for (outcome, (session, at, effects)) in dialed.into_iter().zip(calls) {
            let id = session.call.id;
            if let Err(error) = outcome {
                match error {
                    Error::Stale => deps.calls.remove(id),
                    _ => undecided(deps, session.key(), at),
                }
                note(error);
                continue;
            }
            deps.router.perform(effects);
            self.snapshot.live.insert(id, Slot::of(&session));
            let campaign = session.call.campaign_id;
            if let Some(campaign) = campaign {
                deps.pacing_report.dialed(campaign, at);
            }
            let paced = self.paced(campaign, session.call.trunk_id);
            at_its_moment(deps, of, self.limiter.clone(), paced, at, move |deps, late| {
                place(deps, session, at, late)
            });
        }
        failed.map_or(Ok(as_expected), Err)
    }
}
