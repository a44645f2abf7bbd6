//! Every intent to call somebody: to whom, when, and in which order. The caps are counted from it.
use crate::{
    boxed,
    bulk::{
        self,
        table::{self, Table},
    },
    connection::Connection,
    error::Result,
    ids::{CampaignId, SessionId, TenantId},
    values::{E164, Env, Moment},
};
use sea_orm::{Statement, Value, entity::prelude::*};
use std::collections::HashMap;

#[sea_orm::model]
#[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "dials")]
pub struct Model {
    // The table's own key begins with these three, so that a number's calls lie together.
    pub tenant_id: TenantId,
    pub env: Env,
    pub phone_number: E164,
    #[sea_orm(primary_key, auto_increment = false)]
    pub session_id: SessionId,
    /// 1, and more where the trunk had no room for the call and was asked again.
    #[sea_orm(primary_key, auto_increment = false)]
    pub n: i32,
    pub campaign_id: Option<CampaignId>,
    pub dialed_at: Moment,
    /// Its place among all commits; the writer gives it.
    pub seq: i64,
}
impl ActiveModelBehavior for ActiveModel {}

/// A call to a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Dialed {
    pub at: Moment,
    pub session_id: SessionId,
}

/// The calls after `since` to each of `numbers`, in order. One that was asked again counts once.
#[boxed]
pub async fn recent(
    db: &Connection,
    (tenant, env): (TenantId, Env),
    numbers: &[E164],
    since: Moment,
) -> Result<HashMap<E164, Vec<Dialed>>> {
    let mut found: HashMap<E164, Vec<Dialed>> = HashMap::new();
    for chunk in bulk::padded(numbers) {
        let backend = db.get_database_backend();
        let mut text = String::from("SELECT phone_number, session_id, MAX(dialed_at) FROM dials WHERE phone_number");
        let mut values = bulk::among(&mut text, backend, &chunk);
        for (clause, value) in [
            (" AND tenant_id = ", Value::from(tenant)),
            (" AND env = ", env.into()),
            (" AND dialed_at > ", since.into()),
        ] {
            values.push(value);
            text.push_str(clause);
            bulk::placeholder(&mut text, backend, values.len());
        }
        text.push_str(" GROUP BY phone_number, session_id");
        for row in db
            .query_all_raw(Statement::from_sql_and_values(backend, text, values))
            .await?
        {
            let number: E164 = row.try_get_by_index(0)?;
            let session_id = row.try_get_by_index(1)?;
            let at = row.try_get_by_index(2)?;
            found.entry(number).or_default().push(Dialed { at, session_id });
        }
    }
    for calls in found.values_mut() {
        calls.sort();
    }
    Ok(found)
}

/// The last intent of each of these sessions: `(session, seq, dialed_at)`.
#[boxed]
pub async fn of_sessions(
    db: &Connection,
    sessions: &[(TenantId, Env, E164, SessionId)],
) -> Result<HashMap<SessionId, Model>> {
    let mut found = HashMap::new();
    for (tenant, env, number, session) in sessions {
        let select = Entity::find()
            .filter(Column::TenantId.eq(*tenant))
            .filter(Column::Env.eq(*env))
            .filter(Column::PhoneNumber.eq(number.clone()))
            .filter(Column::SessionId.eq(*session));
        for row in select.all(db).await? {
            found.insert(*session, row);
        }
    }
    Ok(found)
}

/// The last place that a call which has not ended has among all commits; one that has ended told so in an event after it.
#[boxed]
pub async fn last_seq_of_open(db: &Connection) -> Result<i64> {
    const LAST: &str = "SELECT CAST(COALESCE(MAX(dials.seq), 0) AS BIGINT) FROM sessions JOIN dials \
        ON dials.tenant_id = sessions.tenant_id AND dials.env = sessions.env \
        AND dials.phone_number = sessions.to_number AND dials.session_id = sessions.id \
        WHERE sessions.phase <> 'ended'";
    let last = db
        .query_one_raw(Statement::from_string(db.get_database_backend(), LAST))
        .await?;
    Ok(match last {
        Some(row) => row.try_get_by_index(0)?,
        None => 0,
    })
}

/// The place of each session's last intent among all commits, and how many it has; one that was never dialled is missing. For the
/// audit.
#[boxed]
pub async fn last_seqs(
    db: &Connection,
    sessions: &[(TenantId, Env, E164, SessionId)],
) -> Result<HashMap<SessionId, (i64, i64)>> {
    const COLUMNS: usize = 4;
    let mut found = HashMap::new();
    let backend = db.get_database_backend();
    for chunk in table::chunks(backend, sessions, COLUMNS) {
        let known = Table::of(backend, chunk.len(), COLUMNS);
        // Joined by the whole key: a look-up per session, not a walk over all dials.
        let mut text = String::from("WITH v (tenant_id, env, phone_number, session_id) AS (");
        known.write(&mut text, 1);
        text.push_str(
            ") SELECT dials.session_id, MAX(dials.seq), COUNT(*) FROM v JOIN dials ON dials.tenant_id = v.tenant_id \
             AND dials.env = v.env AND dials.phone_number = v.phone_number AND dials.session_id = v.session_id \
             GROUP BY dials.session_id",
        );
        let values = known.values(chunk.len(), |row, column| {
            let (tenant, env, number, session) = &chunk[row];
            match column {
                0 => Value::from(*tenant),
                1 => (*env).into(),
                2 => number.clone().into(),
                _ => (*session).into(),
            }
        });
        for row in db
            .query_all_raw(Statement::from_sql_and_values(backend, text, values))
            .await?
        {
            let intents = (row.try_get_by_index(1)?, row.try_get_by_index(2)?);
            found.insert(row.try_get_by_index(0)?, intents);
        }
    }
    Ok(found)
}

/// Removes the intents of these sessions to these numbers. No cap counts them any more.
#[boxed]
pub async fn remove(db: &Connection, (tenant, env): (TenantId, Env), calls: &[(E164, SessionId)]) -> Result<()> {
    let key = |(number, session): &(E164, SessionId)| -> Vec<Value> {
        vec![tenant.into(), env.into(), number.clone().into(), (*session).into()]
    };
    let rows: Vec<_> = calls.iter().map(key).collect();
    bulk::remove_by_key(db, "dials", &["tenant_id", "env", "phone_number", "session_id"], &rows).await
}
