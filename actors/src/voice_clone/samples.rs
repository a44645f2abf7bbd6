//! Samples on their way into the store. A sample's row comes first and says `stored: false`; what is never whole is found by
//! it and erased.
use crate::deps::Deps;
use entities::{
    Error, Result, boxed,
    ids::{TenantId, VoiceId, VoiceSampleId},
    values::Moment,
    voice::sample::{self, Model as Sample},
};
use rules::commit::Commit;
use runtime::keyring::hex;
use sha2::{Digest, Sha256};

/// Bytes of one file.
pub const MAX_FILE: usize = 25 * 1024 * 1024;
/// Bytes of all samples of a voice.
pub const MAX_TOTAL: u64 = 200 * 1024 * 1024;

/// An upload takes minutes; what is not whole after an hour never will be.
const ABANDONED_SECONDS: i64 = 3600;
/// Abandoned samples that are erased at once.
const SLICE: u64 = 100;

/// Where a sample lies in the vault.
pub fn name(sample: &Sample) -> String {
    format!("{}/{}.sample", sample.tenant_id, sample.id)
}

/// Puts a file into the store. Its row does not count yet: see `stored`.
#[boxed]
pub async fn put(
    deps: &Deps,
    (tenant_id, voice_id): (TenantId, VoiceId),
    (id, place): (VoiceSampleId, i32),
    file_name: String,
    file: Vec<u8>,
) -> Result<Sample> {
    let sample = Sample {
        id,
        tenant_id,
        voice_id,
        place,
        stored: false,
        file_name,
        format: None,
        bytes: i64::try_from(file.len()).unwrap_or(i64::MAX),
        sha256: hex(&Sha256::digest(&file)),
        duration_ms: None,
        loudness_lufs: None,
        fault: None,
        created_at: deps.clock.now(),
    };
    let mut commit = Commit::default();
    commit.changes.voice_samples.push(sample.clone());
    deps.writer.commit(tenant_id.into(), commit).await?;
    deps.pass(tenant_id).await?;
    let put = deps.studio.vault.put(&name(&sample), file).await;
    put.map_err(|failure| Error::Unavailable(failure.to_string()))?;
    Ok(sample)
}

/// They count from now on.
pub fn whole(samples: &[Sample]) -> Vec<Sample> {
    let whole = |sample: &Sample| Sample {
        stored: true,
        ..sample.clone()
    };
    samples.iter().map(whole).collect()
}

/// Erases samples that no voice has taken. What fails is found again by `sweep`.
#[boxed]
pub async fn drop_all(deps: &Deps, samples: &[Sample]) -> Result<()> {
    for of_one in samples.chunk_by(|one, next| one.tenant_id == next.tenant_id) {
        drop_some(deps, of_one[0].tenant_id, of_one).await?;
    }
    Ok(())
}

async fn drop_some(deps: &Deps, tenant: TenantId, samples: &[Sample]) -> Result<()> {
    let mut erased = Vec::new();
    for sample in samples {
        deps.pass(tenant).await?;
        match deps.studio.vault.erase(&name(sample)).await {
            Ok(()) => erased.push(sample.id),
            Err(failure) => tracing::warn!(%failure, "an upload that was cut off is not erased yet"),
        }
    }
    if erased.is_empty() {
        return Ok(());
    }
    let gone = deps.writer.run(tenant, move |db| {
        let erased = erased.clone();
        Box::pin(async move {
            sample::delete(db, &erased).await?;
            Ok(((), Commit::default()))
        })
    });
    gone.await
}

/// Erases what uploads that were cut off have left. Run by the reconcile. Answers whether there was any.
#[boxed]
pub async fn sweep(deps: &Deps) -> Result<bool> {
    let left = abandoned(deps, deps.clock.now(), SLICE).await?;
    drop_all(deps, &left).await?;
    Ok(!left.is_empty())
}

/// Will there be any by then?
#[boxed]
pub async fn comes_due(deps: &Deps, by: Moment) -> Result<bool> {
    Ok(!abandoned(deps, by, 1).await?.is_empty())
}

async fn abandoned(deps: &Deps, at: Moment, limit: u64) -> Result<Vec<Sample>> {
    sample::abandoned(&deps.db.read, deps.share(), at.plus_seconds(-ABANDONED_SECONDS), limit).await
}
