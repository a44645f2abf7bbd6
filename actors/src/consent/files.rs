//! Files that prove consents. They lie in the recordings' store, sealed. A file's row comes first and says `stored: false`; what no
//! consent has taken is found by it and erased.
use crate::deps::Deps;
use entities::{
    Error, Result, boxed,
    consent::{
        self, Evidence, Model,
        file::{self, Model as File},
    },
    ids::{ConsentFileId, ConsentId, TenantId, TenantScoped},
    values::Moment,
};
use rules::{
    commit::Commit,
    consent::evidence::{Kind, check_room},
};

/// An upload takes minutes; what is not whole after an hour never will be.
const ABANDONED_SECONDS: i64 = 3600;
/// Abandoned files that are erased at once.
const SLICE: u64 = 100;

/// Where a file lies in the vault.
pub fn name(tenant: TenantId, id: ConsentFileId) -> String {
    format!("{tenant}/{id}.evidence")
}

/// Gives a consent the file that proves it. What proves it is never replaced; the same file again changes nothing.
#[boxed]
pub async fn attach(
    deps: &Deps,
    key: TenantScoped<ConsentId>,
    kind: Kind,
    content: Vec<u8>,
    by: String,
) -> Result<Model> {
    let sha256 = rules::digest::sha256(&content);
    let row = consent::load(&deps.db.read, key).await?;
    if is_there(&row, &sha256)? {
        return Ok(row);
    }
    let bytes = i64::try_from(content.len()).unwrap_or(i64::MAX);
    check_room(file::bytes_of(&deps.db.read, key.tenant_id).await?, bytes)?;
    let file = File {
        id: deps.ids.next(),
        tenant_id: key.tenant_id,
        stored: false,
        bytes,
        created_at: deps.clock.now(),
    };
    let mut commit = Commit::default();
    commit.changes.consent_files.push(file.clone());
    deps.writer.commit(key.tenant_id.into(), commit).await?;
    let evidence = Evidence {
        id: file.id,
        content_type: kind.content_type.into(),
        bytes,
        sha256,
        added_at: file.created_at,
        added_by: Some(by),
    };
    deps.pass(key.tenant_id).await?;
    let put = deps.studio.vault.put(&name(key.tenant_id, file.id), content).await;
    let taken = match put {
        Ok(_) => take(deps, key, file.clone(), evidence).await,
        Err(failure) => Err(Error::Unavailable(failure.to_string())),
    };
    match taken {
        Ok((row, true)) => Ok(row),
        // Another upload of the same file was faster.
        Ok((row, false)) => {
            erase(deps, key.tenant_id, &[file.id]).await?;
            Ok(row)
        }
        // It stands, perhaps: the rows say which of them counts.
        Err(error @ Error::Unavailable(_)) => Err(error),
        Err(error) => {
            erase(deps, key.tenant_id, &[file.id]).await?;
            Err(error)
        }
    }
}

/// Has the consent this file already? Another one is refused.
fn is_there(row: &Model, sha256: &str) -> Result<bool> {
    match &row.evidence {
        None => Ok(false),
        Some(known) if known.sha256 == sha256 => Ok(true),
        Some(known) => Err(Error::InUse(format!(
            "this consent has its evidence since {}, and what proves a consent is not replaced: record another consent for another file",
            known.added_at
        ))),
    }
}

/// The file counts from now on. False: one like it does already.
async fn take(deps: &Deps, key: TenantScoped<ConsentId>, file: File, evidence: Evidence) -> Result<(Model, bool)> {
    deps.writer
        .run(key.tenant_id, move |db| {
            let (file, evidence) = (file.clone(), evidence.clone());
            Box::pin(async move {
                let row = consent::load(db, key).await?;
                if is_there(&row, &evidence.sha256)? {
                    return Ok(((row, false), Commit::default()));
                }
                let row = Model {
                    evidence: Some(evidence),
                    version: row.version + 1,
                    ..row
                };
                let mut commit = Commit::default();
                commit.changes.consents.push(row.clone());
                commit.changes.consent_files.push(File { stored: true, ..file });
                Ok(((row, true), commit))
            })
        })
        .await
}

/// Erases files that no consent has. What fails is found again by `sweep`.
#[boxed]
pub async fn erase(deps: &Deps, tenant: TenantId, files: &[ConsentFileId]) -> Result<()> {
    let mut erased = Vec::new();
    for id in files {
        deps.pass(tenant).await?;
        match deps.studio.vault.erase(&name(tenant, *id)).await {
            Ok(()) => erased.push(*id),
            Err(failure) => tracing::warn!(%failure, "a file that no consent has is not erased yet"),
        }
    }
    if erased.is_empty() {
        return Ok(());
    }
    let gone = deps.writer.run(tenant, move |db| {
        let erased = erased.clone();
        Box::pin(async move {
            file::remove(db, &erased).await?;
            Ok(((), Commit::default()))
        })
    });
    gone.await
}

/// Erases what uploads that were cut off have left, and what deleted consents had. Run by the reconcile. Answers whether there was any.
#[boxed]
pub async fn sweep(deps: &Deps) -> Result<bool> {
    let left = abandoned(deps, deps.clock.now(), SLICE).await?;
    for of_one in left.chunk_by(|one, next| one.tenant_id == next.tenant_id) {
        if let Some(first) = of_one.first() {
            let ids: Vec<ConsentFileId> = of_one.iter().map(|file| file.id).collect();
            erase(deps, first.tenant_id, &ids).await?;
        }
    }
    Ok(!left.is_empty())
}

/// Will there be any by then?
#[boxed]
pub async fn comes_due(deps: &Deps, by: Moment) -> Result<bool> {
    Ok(!abandoned(deps, by, 1).await?.is_empty())
}

async fn abandoned(deps: &Deps, at: Moment, limit: u64) -> Result<Vec<File>> {
    file::abandoned(&deps.db.read, deps.share(), at.plus_seconds(-ABANDONED_SECONDS), limit).await
}
