//! What a training does, and what an erasure: work after the commit whose row says that it is under way. The voice's actor
//! is told what came of it.
use super::samples;
use crate::deps::Deps;
use adapters::voice_clone::{
    examine::{self, Report},
    provider::{Order, Recording, Refused},
};
use bytes::{Bytes, BytesMut};
use entities::{
    Error, Result,
    ids::{TenantScoped, VoiceId},
    tenant,
    voice::{
        self, Maker, Model as Row, Status,
        sample::{self, Model as Sample},
    },
};
use rules::voice_clone::machine::{Code, Command, Refusal, Voice};
use runtime::supervise::join_text;

/// Samples that must be good. Source: specification, "Voice clone events".
pub const FEWEST_SAMPLES: usize = 3;

/// Trains a voice, or takes up its training again, unless somebody is at it.
pub fn train(deps: &Deps, key: TenantScoped<VoiceId>) {
    let its = deps.clone();
    let stay = deps.stay(key.tenant_id);
    deps.jobs.run(&deps.cloning.trainings, key.id, "training", async move {
        let _stay = stay;
        work(&its, key).await
    });
}

async fn work(deps: &Deps, key: TenantScoped<VoiceId>) -> Result<()> {
    let row = voice::load_even_deleted(&deps.db.read, key).await?;
    if row.status != Status::Training {
        return Ok(());
    }
    let ended = match row.submitted_at {
        None => match choose(deps, &row).await? {
            Ok(samples) => {
                let examined = Command::Examined { run: row.run, samples };
                let Some(row) = ask(deps, key, examined).await? else {
                    return Ok(());
                };
                submit(deps, &row).await?
            }
            Err((refusal, samples)) => refuse(&row, refusal, samples),
        },
        // The sandbox's voice is the same each time.
        Some(_) if row.provider == Maker::Sandbox => submit(deps, &row).await?,
        Some(_) => look_up(deps, &row).await?,
    };
    tell(deps, key, ended);
    Ok(())
}

fn refuse(row: &Row, refusal: Refusal, samples: Vec<Sample>) -> Command {
    Command::Refused {
        run: row.run,
        refusal,
        samples,
    }
}

fn tell(deps: &Deps, key: TenantScoped<VoiceId>, command: Command) {
    deps.router.voices().tell(key, command);
}

/// None: the run is over.
async fn ask(deps: &Deps, key: TenantScoped<VoiceId>, command: Command) -> Result<Option<Row>> {
    match deps.router.voices().request(key, command).await {
        Ok(Voice { row, .. }) => Ok(Some(row)),
        Err(Error::InvalidState { .. } | Error::NotFound(_)) => Ok(None),
        Err(error) => Err(error),
    }
}

type Verdict = std::result::Result<Vec<Sample>, (Refusal, Vec<Sample>)>;

/// All samples, with what was found out about them, if enough of them are good.
async fn choose(deps: &Deps, row: &Row) -> Result<Verdict> {
    let no = |code, message: String| {
        let leftovers = false;
        Refusal {
            code,
            message,
            leftovers,
        }
    };
    if !tenant::load(&deps.db.read, row.tenant_id).await?.voice_clones {
        let why = "this workspace's plan does not include cloned voices; ask the operator".into();
        return Ok(Err((no(Code::VoiceCloneDisabledOnPlan, why), Vec::new())));
    }
    let mut samples = sample::of_voice(&deps.db.read, row.tenant_id, row.id).await?;
    if samples.len() < FEWEST_SAMPLES {
        let why = format!(
            "at least 3 samples of 30 seconds each are needed; so far: {}",
            samples.len()
        );
        return Ok(Err((no(Code::InsufficientSamples, why), Vec::new())));
    }
    let closed = |_| Error::Unavailable("the service is shutting down".into());
    let _permit = deps.cloning.examinations.acquire().await.map_err(closed)?;
    let (mut good, mut first_fault) = (0, None);
    for sample in &mut samples {
        match examine_one(deps, sample).await? {
            Ok(()) => good += 1,
            Err(fault) if first_fault.is_none() => first_fault = Some((sample.file_name.clone(), fault)),
            Err(_) => {}
        }
    }
    match first_fault {
        Some((name, fault)) if good < FEWEST_SAMPLES => {
            let why = format!("the sample `{name}` {}", fault.what);
            Ok(Err((no(fault.code, why), samples)))
        }
        // Enough others are good: those with a fault are left out.
        Some(_) | None => Ok(Ok(samples)),
    }
}

async fn examine_one(deps: &Deps, sample: &mut Sample) -> Result<std::result::Result<(), examine::Fault>> {
    let file = read(deps, sample).await?;
    let examined = tokio::task::spawn_blocking(move || examine::examine(file)).await;
    let examined = examined.map_err(|error| Error::Internal(join_text(error)))?;
    let verdict = examined.and_then(|report| {
        let Report {
            format,
            duration_ms,
            loudness_lufs,
            ..
        } = report;
        sample.format = Some(format.into());
        (sample.duration_ms, sample.loudness_lufs) = (Some(duration_ms), loudness_lufs);
        report.fault().map_or(Ok(()), Err)
    });
    sample.fault = verdict.as_ref().err().map(|fault| fault.code.as_str().into());
    Ok(verdict)
}

/// The whole file: at most 25 MiB.
async fn read(deps: &Deps, sample: &Sample) -> Result<Bytes> {
    let name = samples::name(sample);
    let away = |failure: adapters::recording::vault::Failure| Error::Unavailable(failure.to_string());
    let size = deps.studio.vault.size(&name).await.map_err(away)?.unwrap_or(0);
    let mut file = BytesMut::new();
    for piece in adapters::recording::vault::pieces(0..size) {
        file.extend_from_slice(&deps.studio.vault.read(&name, piece).await.map_err(away)?);
    }
    Ok(file.freeze())
}

/// Has the provider make the voice. Its row says by now that it is asked.
async fn submit(deps: &Deps, row: &Row) -> Result<Command> {
    let Some(cloner) = deps.cloning.of(row.provider) else {
        return Ok(refuse(row, not_configured(), Vec::new()));
    };
    let samples = sample::of_voice(&deps.db.read, row.tenant_id, row.id).await?;
    let recordings = samples.iter().filter(|sample| sample.fault.is_none()).map(recording);
    let order = Order {
        voice_id: row.id,
        run: row.run,
        name: row.name.clone(),
        recordings: recordings.collect(),
        vault: deps.studio.vault.clone(),
        patience: row.deadline.unwrap_or(deps.clock.now()).since(deps.clock.now()),
    };
    deps.pass(row.tenant_id).await?;
    Ok(match cloner.create(order).await {
        Ok(provider_voice_id) => Command::Made {
            run: row.run,
            provider_voice_id,
        },
        Err(refused) => refuse(row, refused.into(), Vec::new()),
    })
}

fn recording(sample: &Sample) -> Recording {
    let format = match sample.format.as_deref() {
        Some("mp3") => "mp3",
        Some("flac") => "flac",
        Some("ogg") => "ogg",
        Some(_) | None => "wav",
    };
    Recording {
        file_name: format!("sample-{}.{format}", sample.place + 1),
        format,
        bytes: u64::try_from(sample.bytes).unwrap_or(0),
        name: samples::name(sample),
    }
}

fn not_configured() -> Refusal {
    Refusal {
        code: Code::ProviderError,
        message: "no voice provider is configured any more; ask the operator".into(),
        leftovers: false,
    }
}

/// The provider was asked, and the service ended before its answer came. It is not asked again: does it have the voice?
async fn look_up(deps: &Deps, row: &Row) -> Result<Command> {
    let Some(cloner) = deps.cloning.of(row.provider) else {
        return Ok(refuse(row, not_configured(), Vec::new()));
    };
    deps.pass(row.tenant_id).await?;
    let copies = cloner.copies(row.id).await;
    let copies = copies.map_err(|Refused { why, .. }| Error::Unavailable(format!("the voice provider {why}")))?;
    Ok(match copies.into_iter().find(|copy| copy.run == row.run) {
        Some(copy) => Command::Made {
            run: row.run,
            provider_voice_id: copy.provider_voice_id,
        },
        None => {
            let refusal = Refusal {
                code: Code::ProviderError,
                message: "the service was interrupted while the provider worked; train the voice again".into(),
                leftovers: true,
            };
            refuse(row, refusal, Vec::new())
        }
    })
}

/// Erases what nobody uses: of a deleted voice everything, else what earlier runs have left with the provider.
pub fn erase(deps: &Deps, key: TenantScoped<VoiceId>) {
    let its = deps.clone();
    let stay = deps.stay(key.tenant_id);
    deps.jobs
        .run(&deps.cloning.erasures, key.id, "erasure of a voice", async move {
            let _stay = stay;
            let row = voice::load_even_deleted(&its.db.read, key).await?;
            let command = match clear(&its, &row).await {
                Ok(()) => Command::Erased { until_run: row.run },
                Err(why) => {
                    tracing::warn!(voice = %row.id, %why, "a voice could not be erased; it is tried again");
                    Command::EraseFailed { why }
                }
            };
            tell(&its, key, command);
            Ok(())
        });
}

async fn clear(deps: &Deps, row: &Row) -> std::result::Result<(), String> {
    let cloner = deps.cloning.of(row.provider);
    let cloner = cloner.ok_or("no voice provider is configured any more")?;
    let said = |refused: Refused| refused.why;
    let kept = row.provider_voice_id.as_ref().filter(|_| row.deleted_at.is_none());
    passed(deps, row).await?;
    let copies = cloner.copies(row.id).await.map_err(said)?;
    // A later run's are its own.
    let old = copies.into_iter().filter(|copy| copy.run <= row.run);
    let mut unwanted: Vec<String> = old.map(|copy| copy.provider_voice_id).collect();
    unwanted.extend(row.provider_voice_id.clone());
    unwanted.sort();
    unwanted.dedup();
    for id in unwanted.into_iter().filter(|id| Some(id) != kept) {
        passed(deps, row).await?;
        cloner.delete(id).await.map_err(said)?;
    }
    if row.deleted_at.is_some() {
        let samples = sample::all_of_voice(&deps.db.read, row.tenant_id, row.id).await;
        for sample in samples.map_err(|error| error.to_string())? {
            passed(deps, row).await?;
            let erased = deps.studio.vault.erase(&samples::name(&sample)).await;
            erased.map_err(|failure| failure.to_string())?;
        }
    }
    Ok(())
}

async fn passed(deps: &Deps, row: &Row) -> std::result::Result<(), String> {
    deps.pass(row.tenant_id).await.map_err(|error| error.to_string())
}
