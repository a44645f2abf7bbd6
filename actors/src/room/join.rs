//! Somebody joins a room: its participant is settled, its session gets a slot and its credits, and the browser is connected.
use super::lifecycle;
use crate::{
    birth,
    call::{in_hand::Call, leg::Leg},
    credits,
    deps::Deps,
    router::{Admitted, Arrival},
    shell,
};
use entities::{
    Error, Result, agent_version, boxed,
    campaign::AgentSnapshot,
    dispatch_block::{self, Reason},
    ids::ParticipantId,
    room::{ErrorCode, Model as Row},
    session, tenant,
};
use media::webrtc::Offered;
use rules::{
    commit::Commit,
    room::machine::{Command, Phase, Room},
    session::{
        command::Command as SessionCommand,
        machine::{self as sessions, Session},
    },
};
use runtime::supervise::join_text;
use std::sync::Arc;

/// Who has joined, and what the browser is answered.
#[derive(Clone, Debug)]
pub struct Joining {
    pub participant: ParticipantId,
    /// SDP.
    pub answer: String,
}

/// Joins, or, with `again_as`, comes back after the page was reloaded. An offer that cannot be answered changes nothing, and
/// what passes by itself neither: the same browser may try again.
#[boxed]
pub async fn join(deps: &Deps, row: &Row, again_as: Option<ParticipantId>, sdp: &str) -> Result<Joining> {
    let offered = answer(deps, sdp.to_owned()).await?;
    let command = Command::Join {
        participant: deps.ids.next(),
        again_as,
    };
    let room = deps.router.rooms().request(row.key(), command).await?;
    let (participant, is_connecting) = match room.phase {
        Phase::Connecting { participant, .. } => (participant, true),
        Phase::Joined { participant, .. } => (participant, false),
        // Its time was over at this very moment.
        Phase::Open | Phase::Ended { .. } => return Err(Error::NotFound("room")),
    };
    if is_connecting && !deps.carriers.rooms.contains(row.session_id) {
        admit(deps, &room, participant).await?;
    }
    connect(deps, &room, participant, offered)
}

/// Keys are made for it, which takes a while: not on a thread that others wait for.
async fn answer(deps: &Deps, sdp: String) -> Result<Offered> {
    let its = deps.clone();
    let answering = deps
        .runtime
        .spawn_blocking(move || its.carriers.rooms.media.offer(&sdp));
    let answered = answering.await.map_err(|error| Error::Internal(join_text(error)))?;
    answered.map_err(|bad| Error::invalid("sdp", bad.0))
}

fn connect(deps: &Deps, room: &Room, participant: ParticipantId, offered: Offered) -> Result<Joining> {
    let answer = offered.answer().to_owned();
    if lifecycle::connect(deps, room.made.session_id, offered) {
        lifecycle::fetch_agent(deps, room.made.session_id);
        Ok(Joining { participant, answer })
    } else {
        // It has ended at this very moment.
        Err(Error::NotFound("room"))
    }
}

/// Takes a slot and sets credits aside, as for a call that comes in. Without them the room has failed; what passes by itself,
/// such as a database or a service that is away, leaves it as it was.
async fn admit(deps: &Deps, room: &Room, participant: ParticipantId) -> Result<()> {
    let mut tries = 1;
    let refused = loop {
        match try_admit(deps, room, participant).await {
            Ok(None) => return Ok(()),
            // The credits that it was to set aside were gone at its commit: it may set less aside.
            Err(Error::Stale) if tries < TRIES => tries += 1,
            Ok(Some(refused)) | Err(refused) => break refused,
        }
        lifecycle::close(deps, room.made.session_id, "failed");
    };
    lifecycle::close(deps, room.made.session_id, "failed");
    let code = match &refused {
        Error::InsufficientCredits => Some(ErrorCode::InsufficientCredits),
        Error::ConcurrencyFull { .. } => Some(ErrorCode::ConcurrencyFull),
        Error::NotConfigured(_) => Some(ErrorCode::AgentUnreachable),
        Error::PlanLimit(_) => Some(ErrorCode::InternalError),
        _ => None,
    };
    match code {
        Some(code) => {
            let message = refused.to_string();
            deps.router
                .rooms()
                .request(room.key(), Command::Fail { code, message })
                .await?;
        }
        // Before the next one who asks, however long the database is away.
        None => deps.router.rooms().tell(room.key(), Command::Withdraw(participant)),
    }
    Err(refused)
}

/// Times that a join is decided anew.
const TRIES: u32 = 3;

/// `Some`: why not.
async fn try_admit(deps: &Deps, room: &Room, participant: ParticipantId) -> Result<Option<Error>> {
    let db = &deps.db.read;
    let row = session::load(db, room.made.session()).await?;
    let version = agent_version::load(db, row.tenant_id, row.agent_id, row.agent_version).await?;
    if let Err(error) = deps.providers.check(&version.definition, row.env) {
        return Ok(Some(error));
    }
    let wanted = deps
        .limits
        .credits
        .hold(row.price_cents_per_minute, row.max_duration_seconds);
    let owner = (row.tenant_id, row.env);
    let Some(hold) = credits::set_aside(deps, owner, wanted).await? else {
        credits::fall_short(deps, owner, deps.limits.credits.least(wanted)).await?;
        return blocked(deps, room).await.map(Some);
    };
    let now = deps.clock.now();
    let session = Session::from_row(row, deps.base_url.clone())?;
    let (mut session, effects) = sessions::transition(session, SessionCommand::Dispatch { at: now, hold }, now)?;
    if !session.is_live() {
        // It has ended at this very moment.
        return Err(Error::NotFound("room"));
    }
    let mut commit = Commit::default();
    shell::succeed(deps, &mut session, &effects, &mut commit).await?;
    let agent = AgentSnapshot {
        id: version.agent_id,
        version: version.version,
        definition: version.definition,
    };
    let leg = Arc::new(Leg {
        call: session.call.clone(),
        agent: Arc::new(agent),
    });
    let in_hand = Call {
        leg: leg.clone(),
        contact: None,
    };
    deps.carriers.rooms.open(leg, room.key(), participant);
    let arrival = Arrival {
        session,
        call: in_hand,
        commit,
    };
    match birth::admit(deps, room.made.tenant_id, arrival, effects).await {
        Ok(Admitted::Yes) => Ok(None),
        Ok(Admitted::NoSlot) => no_slot(deps, room).await.map(Some),
        Ok(Admitted::Blocked) => blocked(deps, room).await.map(Some),
        Err(error) => Err(error),
    }
}

async fn no_slot(deps: &Deps, room: &Room) -> Result<Error> {
    let tenant = tenant::load(&deps.db.read, room.made.tenant_id).await?;
    let limit = rules::dispatch::concurrency::Concurrency::of(&tenant, &deps.limits).limit;
    Ok(Error::ConcurrencyFull { limit })
}

async fn blocked(deps: &Deps, room: &Room) -> Result<Error> {
    if deps.is_draining() {
        return Ok(Error::Unavailable("the service is stopping".into()));
    }
    let blocks = dispatch_block::of(&deps.db.read, room.made.tenant_id).await?;
    let is_suspended = blocks
        .iter()
        .any(|block| block.env == room.made.env && block.reason == Reason::Suspension);
    Ok(if is_suspended {
        Error::PlanLimit("the workspace is suspended".into())
    } else {
        Error::InsufficientCredits
    })
}
