//! What was answered about numbers is written down before anything else is asked: each answer is paid for once.
use super::questions::{Answer, Questions};
use crate::deps::Deps;
use entities::{Error, Result, ids::TenantId};
use rules::commit::Commit;
use std::sync::Arc;

/// Writes down what was answered for a workspace and does not stand in the database yet; were there any such answers? If that fails they
/// are kept, and nothing is asked for a while: the same would be asked again.
pub async fn write_down<S: ?Sized, A: Answer>(
    deps: &Deps,
    tenant: TenantId,
    questions: &Questions<S, A>,
) -> Result<bool> {
    let Some(answers) = questions.unsaved(tenant) else {
        return Ok(false);
    };
    if let Err(error) = save(deps, tenant, answers.clone()).await {
        questions.failed(tenant, 0, deps.clock.now());
        return Err(error);
    }
    questions.saved(tenant, &answers);
    Ok(true)
}

async fn save<A: Answer>(deps: &Deps, tenant: TenantId, answers: Arc<Vec<A>>) -> Result<()> {
    let written = deps.writer.run(tenant, move |db| {
        let answers = answers.clone();
        Box::pin(async move {
            A::save(db, &answers).await?;
            Ok(((), Commit::default()))
        })
    });
    match written.await {
        // Another node has the workspace now, and asks for itself.
        Err(Error::Moved) => Ok(()),
        done => done,
    }
}
