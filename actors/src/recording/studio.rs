//! Where recordings are made, and unmade: what was said becomes sound, and the sound lies in the vault until it is erased.
//!
//! What a line has carried was spooled while it was heard, and is put together here. A call of the sandbox has no line: after its
//! end every turn is spoken once more, each at its time, by the service's own voice; of an agent that speaks by itself the sound is
//! kept.
use super::{
    origin::{self, Source},
    sounds::AT_ONCE,
    spooling::spool_name,
};
use crate::{consent::recordings::proves_until, deps::Deps};
use adapters::{
    recording::{
        mark::Mark,
        mix::{self, Piece},
        spool::Made,
        vault::Plain,
        voice,
    },
    sound::mu_law,
};
use bytes::Bytes;
use entities::{
    Error, Result,
    agent::Channels,
    agent_version,
    ids::{RecordingId, TenantScoped},
    recording::{self, Model as Recording, PurgeReason, Status},
    session,
    transcript::{self, Speaker, Turn},
};
use rules::recording::machine::{Command, Stored};
use runtime::{signing::SigningKey, supervise::join_text};
use std::sync::Arc;

/// Where a recording lies in the vault.
pub fn name(key: TenantScoped<RecordingId>) -> String {
    format!("{}/{}.wav", key.tenant_id, key.id)
}

/// Where a recording can be heard, with a key.
pub fn url(base_url: &str, id: RecordingId) -> String {
    format!("{base_url}/v1/recordings/{id}/audio")
}

/// Makes and stores a recording; its actor is told what came of it.
pub fn store(deps: &Deps, key: TenantScoped<RecordingId>) {
    let its = deps.clone();
    let stay = deps.stay(key.tenant_id);
    deps.jobs.run(&deps.studio.running, key.id, "recording", async move {
        let _stay = stay;
        // What cannot be read may be of a line.
        let mut spooled = true;
        let command = match make(&its, key, &mut spooled).await {
            Ok(command) => command,
            Err(error) => {
                tracing::warn!(%error, recording = %key.id, "a recording could not be stored");
                let why = "the recording could not be stored".to_owned();
                Command::StoreFailed { why, spooled }
            }
        };
        tell(&its, key, command);
        Ok(())
    });
}

/// Erases a recording; its actor is told what came of it.
pub fn erase(deps: &Deps, key: TenantScoped<RecordingId>) {
    let its = deps.clone();
    let stay = deps.stay(key.tenant_id);
    deps.jobs.run(&deps.studio.running, key.id, "purge", async move {
        let _stay = stay;
        let command = match erase_all(&its, key).await {
            Ok(command) => command,
            Err(error) => {
                tracing::warn!(%error, recording = %key.id, "a recording could not be erased; it is tried again");
                let why = "the recording could not be erased yet".to_owned();
                Command::EraseFailed { why }
            }
        };
        tell(&its, key, command);
        Ok(())
    });
}

/// Unless it proves a consent. What somebody wants deleted was looked at then; and without the other side's consent to it it proves none.
async fn erase_all(deps: &Deps, key: TenantScoped<RecordingId>) -> Result<Command> {
    let studio = &deps.studio;
    let row = recording::load(&deps.db.read, key).await?;
    if row.purge_reason != Some(PurgeReason::Deleted)
        && row.status != Status::Failed
        && let Some(until) = proves_until(deps, key).await?
    {
        return Ok(Command::Kept { until });
    }
    deps.pass(key.tenant_id).await?;
    let erased = studio.vault.erase(&name(key)).await;
    erased.map_err(|failure| Error::Unavailable(failure.to_string()))?;
    studio.sounds().remove(&key.id);
    let session = TenantScoped::new(key.tenant_id, key.env, row.session_id);
    let call = session::load_even_deleted(&deps.db.read, session).await;
    // Where no line was, the disk of the spools is not waited for.
    if !call.is_ok_and(|call| !call.has_line()) {
        let erased = studio.spools.erase(&spool_name(session)).await;
        erased.map_err(Error::Unavailable)?;
    }
    Ok(Command::Erased)
}

fn tell(deps: &Deps, key: TenantScoped<RecordingId>, command: Command) {
    deps.router.recordings().tell(key, command);
}

/// Puts it together and stores it: what its actor is told then. `spooled` says, as soon as that is known, whether it is made of what
/// was heard on a line.
async fn make(deps: &Deps, key: TenantScoped<RecordingId>, spooled: &mut bool) -> Result<Command> {
    let studio = &deps.studio;
    let closed = |_| Error::Unavailable("the service is shutting down".into());
    let db = &deps.db.read;
    let row = recording::load(db, key).await?;
    let call = session::load_even_deleted(db, TenantScoped::new(key.tenant_id, key.env, row.session_id)).await?;
    *spooled = call.has_line();
    let quarters = (1 + call.duration_seconds / 900).clamp(1, AT_ONCE as i32);
    // A disk of spools that hangs keeps no other calls waiting.
    let permits = match *spooled {
        true => &studio.permits_of_lines,
        false => &studio.permits,
    };
    let permits = permits.acquire_many(quarters.unsigned_abs());
    let _permits = permits.await.map_err(closed)?;
    let channels = match row.channels {
        Channels::Dual => mix::Channels::Dual,
        Channels::Mono => mix::Channels::Mono,
    };
    let source = match *spooled {
        true => Source::Line,
        false => Source::Words {
            has_own_sound: studio.sounds().contains_key(&key.id),
        },
    };
    let made = match *spooled {
        true => match of_line(deps, &call, channels).await? {
            Ok(made) => made,
            Err(why) => return Ok(Command::NoSound { why }),
        },
        false => of_words(deps, &row, &call, channels).await?,
    };
    let synthetic = origin::of(deps, &call, row.channels, source).await?;
    let mark = Mark::new(key.id, call.id, &synthetic, SigningKey::of(&deps.links)?)?;
    deps.pass(key.tenant_id).await?;
    let stored = studio.vault.put_read(&name(key), mark.put_on(made.wav)).await;
    let stored = stored.map_err(|failure| Error::Unavailable(failure.to_string()))?;
    studio.sounds().remove(&key.id);
    Ok(Command::Stored(Box::new(Stored {
        recording_url: url(&deps.base_url, key.id),
        call: Arc::new(call),
        duration_ms: i64::try_from(made.duration_ms).unwrap_or(i64::MAX),
        bytes: i64::try_from(stored.bytes).unwrap_or(i64::MAX),
        sha256: stored.sha256,
        synthetic,
    })))
}

/// A recording of what a line has carried; or why there is none, and never will be.
async fn of_line(deps: &Deps, call: &session::Model, channels: mix::Channels) -> Result<Result<Made, String>> {
    let (spools, spool) = (&deps.studio.spools, spool_name(call.key()));
    if let Err(why) = spools.close(&spool).await.map_err(Error::Unavailable)? {
        return Ok(Err(why.to_string()));
    }
    match spools.recording(&spool, channels).await.map_err(Error::Unavailable)? {
        Some(made) => Ok(Ok(made)),
        // It may lie there, and be found when the folder can be used again.
        None if spools.is_off() => Err(Error::Unavailable("recordings_spool cannot be used".into())),
        // It was never spooled, or what was is gone.
        None => Ok(Err(
            "the call could not be recorded: nothing of its sound was kept".to_owned()
        )),
    }
}

/// A recording of a call without a line.
async fn of_words(deps: &Deps, row: &Recording, call: &session::Model, channels: mix::Channels) -> Result<Made> {
    let db = &deps.db.read;
    let turns = transcript::load(db, row.session_id).await?.turns.0;
    let version = agent_version::load(db, row.tenant_id, call.agent_id, call.agent_version).await;
    let language = version.map_or_else(
        |_| "en-US".to_owned(),
        |version| version.definition.language.to_string(),
    );
    let sounds = deps.studio.sounds().get(&row.id).cloned().unwrap_or_default();
    let pieces = pieces(deps, row, &turns, &sounds, &language).await;
    let duration_ms = mix::duration_ms(&pieces);
    // Hours of sound take a while: not on a thread that others wait for.
    let mixed = tokio::task::spawn_blocking(move || mix::wav(&pieces, channels)).await;
    let wav = mixed.map_err(|error| Error::Internal(join_text(error)))?;
    let wav = Plain::from(Bytes::from(wav));
    Ok(Made { duration_ms, wav })
}

/// Every turn since the recording began, as sound, at its time.
async fn pieces(deps: &Deps, row: &Recording, turns: &[Turn], sounds: &[(usize, Bytes)], language: &str) -> Vec<Piece> {
    let mut pieces = Vec::new();
    for (at, turn) in turns.iter().enumerate() {
        let speaker = match turn.role {
            Speaker::Agent => voice::Speaker::Agent,
            Speaker::User => voice::Speaker::User,
            Speaker::Tool => continue,
        };
        let begins = (turn.t * 1000.0) as i64 - row.from_ms;
        let (Some(words), true) = (&turn.content, begins >= 0) else {
            continue;
        };
        let own = sounds.iter().find(|(place, _)| *place == at);
        let sound = match own {
            Some((_, sound)) => sound.iter().copied().map(mu_law::decode).collect(),
            None => deps.studio.voice.speak(words, language, speaker).await,
        };
        pieces.push(Piece {
            speaker,
            start_ms: u64::try_from(begins).unwrap_or(0),
            sound,
            cut_ms: None,
        });
    }
    mix::lay_out(pieces)
}
