//! What the law's rules ask of the numbers that calls and texts show.
use entities::{Result, boxed, connection::Connection, ids::TenantId, number, values::E164};
use rules::law::facts::CallerFact;
use std::collections::HashMap;

/// Of each of `numbers` that is the workspace's own; of another one nothing is known.
#[boxed]
pub async fn caller_facts(db: &Connection, tenant: TenantId, numbers: &[E164]) -> Result<HashMap<E164, CallerFact>> {
    let known = number::callers(db, tenant, numbers).await?;
    let facts = known.into_iter().map(|caller| {
        let fact = CallerFact {
            number: caller.phone_number.clone(),
            right_to_use: caller.claimed_by.map(|source| source.as_str().to_owned()),
            is_answered: caller.is_answered(),
            registration: caller.sms_registration,
        };
        (caller.phone_number, fact)
    });
    Ok(facts.collect())
}

/// The same of one number. Of one that is not the workspace's: it may not be shown, and nobody answers it.
#[boxed]
pub async fn caller_fact(db: &Connection, tenant: TenantId, number: &E164) -> Result<CallerFact> {
    let mut known = caller_facts(db, tenant, std::slice::from_ref(number)).await?;
    Ok(known.remove(number).unwrap_or_else(|| CallerFact {
        number: number.clone(),
        right_to_use: None,
        is_answered: false,
        registration: None,
    }))
}
