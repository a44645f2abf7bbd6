//! Recordings: the sound of calls, and what became of it. The sound itself lies in the recordings' store.
use crate::{
    agent::Channels,
    boxed, bulk,
    connection::Connection,
    db::Db,
    error::{Error, Result},
    ids::{RecordingId, SessionId, TenantId, TenantScoped},
    keys,
    owned::of_tenant_and_env,
    page::{self, Listed, Page},
    values::{Env, Moment},
    workspace_lease::{self, Share},
};
use schemars::JsonSchema;
use sea_orm::{
    Condition, DeriveActiveEnum, EnumIter, FromJsonQueryResult, QuerySelect, QueryTrait, entity::prelude::*,
    sea_query::Expr,
};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema, EnumIter, DeriveActiveEnum)]
#[sea_orm(rs_type = "String", db_type = "String(StringLen::N(16))", rename_all = "snake_case")]
#[serde(rename_all = "snake_case")]
#[schemars(description = "How far the recording is.")]
pub enum Status {
    /// The call has ended; the sound is being stored.
    Processing,
    Completed,
    /// There is no sound, and there never will be.
    Failed,
    /// Kept until `purge_after`, because of an opt-out.
    PendingPurge,
    /// The sound is gone.
    Purged,
}

/// Why a recording is, or will be, erased.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema, EnumIter, DeriveActiveEnum)]
#[sea_orm(rs_type = "String", db_type = "String(StringLen::N(16))", rename_all = "snake_case")]
#[serde(rename_all = "snake_case")]
pub enum PurgeReason {
    OptOut,
    /// `recording.retention_days` of its agent.
    Retention,
    /// By the API.
    Deleted,
}

/// What a recording says of the machine that speaks in it. The file says the same, signed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema, FromJsonQueryResult)]
#[schemars(rename = "SyntheticSound")]
pub struct Synthetic {
    /// A machine speaks in it: always true.
    pub synthetic: bool,
    /// Whose sound is in each channel: `left` and `right`, or `mono`.
    pub channels: BTreeMap<String, Sound>,
    /// In which the agent speaks.
    pub voice: SyntheticVoice,
    /// Of an agent that speaks by itself (`brain.mode: realtime`): in which the service speaks in its place, such as what the law wants said.
    /// Null: `voice` says all.
    #[serde(default)]
    pub service_voice: Option<SyntheticVoice>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "ChannelSound")]
pub enum Sound {
    /// The machine; after a hand-over whoever took the call.
    Agent,
    Person,
    /// The other side of a call of the sandbox, which is a machine, too.
    SimulatedPerson,
    /// All who spoke.
    Everybody,
}

/// Whose voice the machine has.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SyntheticVoice {
    /// The `voice_id`. Empty: a realtime provider's own, which it does not name.
    pub id: String,
    pub kind: VoiceKind,
    /// Who makes the sound, such as `elevenlabs`, or `realtime`; or a program of the operator's machine.
    pub provider: String,
    /// Null: it has none, or it is not known.
    pub model: Option<String>,
    /// The operator says that its provider puts a watermark into its sound.
    pub watermark: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum VoiceKind {
    Builtin,
    Provider,
    /// A clone of somebody's.
    Cloned,
}

#[sea_orm::model]
#[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "recordings")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub id: RecordingId,
    pub tenant_id: TenantId,
    pub env: Env,
    pub session_id: SessionId,
    pub status: Status,
    pub channels: Channels,
    /// Milliseconds of the talk that came before it: consent was asked first.
    pub from_ms: i64,
    /// Failed tries to store it, or to erase it.
    pub tries: i32,
    /// The next moment at which its actor has something to do.
    pub wake_at: Option<Moment>,
    pub duration_ms: Option<i64>,
    pub bytes: Option<i64>,
    /// Of the WAV file, hex.
    pub sha256: Option<String>,
    /// None: it is not stored yet, or was before recordings said it.
    #[sea_orm(column_type = "JsonBinary", nullable)]
    pub synthetic: Option<Synthetic>,
    pub purge_after: Option<Moment>,
    pub purge_reason: Option<PurgeReason>,
    pub error: Option<String>,
    pub completed_at: Option<Moment>,
    pub purged_at: Option<Moment>,
    pub version: i32,
    pub created_at: Moment,
}
impl ActiveModelBehavior for ActiveModel {}

of_tenant_and_env!(RecordingId, "recording");

/// Whose it is, for a link that carries its own proof.
#[boxed]
pub async fn owner_of(db: &Connection, id: RecordingId) -> Result<Option<TenantScoped<RecordingId>>> {
    Ok(Entity::find_by_id(id).one(db).await?.map(|row| row.key()))
}

/// What a list is narrowed to.
#[derive(Clone, Copy, Debug, Default)]
pub struct Filter {
    pub session_id: Option<SessionId>,
    pub status: Option<Status>,
}

#[boxed]
pub async fn list(db: &Db, owner: (TenantId, Env), filter: Filter, page: Page) -> Result<Listed<Model>> {
    let all = owned(owner.0, owner.1)
        .apply_if(filter.session_id, |all, session| {
            all.filter(Column::SessionId.eq(session))
        })
        .apply_if(filter.status, |all, status| all.filter(Column::Status.eq(status)));
    page::fetch(&db.read, all, Column::Id, Column::CreatedAt, page).await
}

/// Recordings that have something to do by then.
#[boxed]
pub async fn due(db: &Connection, share: Share, by: Moment, limit: u64) -> Result<Vec<TenantScoped<RecordingId>>> {
    let mine = Entity::find().filter(share.of(Column::TenantId));
    let waiting = mine.filter(Expr::cust("wake_at IS NOT NULL"));
    let due = keys::due(waiting, Column::WakeAt, by, limit);
    keys::of(db, due, [Column::TenantId, Column::Env, Column::Id]).await
}

/// Makes what is being stored or erased, or waits to be tried again, due at once; what is kept until later is not touched.
#[boxed]
pub async fn let_go(db: &Connection, of: Option<&[TenantId]>, now: Moment) -> Result<()> {
    let at_work = Condition::any()
        .add(Column::Status.eq(Status::Processing))
        .add(Column::PurgeAfter.lte(now));
    Entity::update_many()
        .col_expr(Column::WakeAt, Expr::value(now))
        .filter(workspace_lease::any_of(Column::TenantId, of))
        .filter(Expr::cust("wake_at IS NOT NULL"))
        .filter(Column::WakeAt.gt(now))
        .filter(at_work)
        .exec(db)
        .await?;
    Ok(())
}

/// Those of `sessions` whose recording is kept only until its purge, or is gone after an opt-out: left out of exports.
#[boxed]
pub async fn opted_out(db: &Connection, sessions: &[SessionId]) -> Result<Vec<SessionId>> {
    let mut found = Vec::new();
    for chunk in bulk::padded(sessions) {
        let select = Entity::find()
            .select_only()
            .column(Column::SessionId)
            .filter(Column::SessionId.is_in(chunk))
            .filter(Column::PurgeReason.eq(PurgeReason::OptOut));
        found.extend(select.into_tuple::<SessionId>().all(db).await?);
    }
    Ok(found)
}

/// Those of `sessions` whose recording can be heard, and may be named in an export.
#[boxed]
pub async fn linked(db: &Connection, tenant: TenantId, sessions: &[SessionId]) -> Result<Vec<SessionId>> {
    let mut found = Vec::new();
    for chunk in bulk::padded(sessions) {
        let select = Entity::find()
            .select_only()
            .column(Column::SessionId)
            .filter(Column::TenantId.eq(tenant))
            .filter(Column::SessionId.is_in(chunk))
            .filter(Column::Status.eq(Status::Completed));
        found.extend(select.into_tuple::<SessionId>().all(db).await?);
    }
    Ok(found)
}

/// Those of `sessions` of which a recording is still to be stored.
#[boxed]
pub async fn waiting(db: &Connection, sessions: &[SessionId]) -> Result<Vec<SessionId>> {
    let mut found = Vec::new();
    for chunk in bulk::padded(sessions) {
        let select = Entity::find()
            .select_only()
            .column(Column::SessionId)
            .filter(Column::SessionId.is_in(chunk))
            .filter(Column::Status.eq(Status::Processing));
        found.extend(select.into_tuple::<SessionId>().all(db).await?);
    }
    Ok(found)
}

/// All of all tenants, a page at a time: for the audit.
pub async fn all_after(db: &Connection, after: Option<RecordingId>, limit: u64) -> Result<Vec<Model>> {
    page::behind(db, Entity::find(), Column::Id, after, limit).await
}

/// Who has listened to what.
pub mod read {
    use crate::{
        boxed,
        connection::Connection,
        ids::{ApiKeyId, RecordingId, RecordingReadId, TenantId},
        values::Moment,
    };
    use sea_orm::entity::prelude::*;

    #[sea_orm::model]
    #[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
    #[sea_orm(table_name = "recording_reads")]
    pub struct Model {
        #[sea_orm(primary_key, auto_increment = false)]
        pub id: RecordingReadId,
        pub tenant_id: TenantId,
        pub recording_id: RecordingId,
        /// The key that asked for it; none: a signed link.
        pub api_key_id: Option<ApiKeyId>,
        pub at: Moment,
    }
    impl ActiveModelBehavior for ActiveModel {}

    #[boxed]
    pub async fn count(db: &Connection, recording: RecordingId) -> crate::Result<u64> {
        Ok(Entity::find()
            .filter(Column::RecordingId.eq(recording))
            .count(db)
            .await?)
    }
}

/// Recordings of these sessions of which there may be sound.
#[boxed]
pub async fn with_sound(
    db: &Connection,
    sessions: &[SessionId],
) -> Result<Vec<(SessionId, TenantScoped<RecordingId>)>> {
    let select = Entity::find()
        .filter(Column::SessionId.is_in(sessions.iter().copied()))
        .filter(Column::Status.ne(Status::Purged));
    let rows = select.all(db).await?;
    Ok(rows.iter().map(|row| (row.session_id, row.key())).collect())
}

/// Removes what is left of recordings of these sessions, of which there is no sound, and who has heard them.
#[boxed]
pub async fn remove(db: &Connection, sessions: &[SessionId]) -> Result<()> {
    let these = || Column::SessionId.is_in(sessions.iter().copied());
    let gone = Entity::find().select_only().column(Column::Id).filter(these());
    read::Entity::delete_many()
        .filter(read::Column::RecordingId.in_subquery(gone.into_query()))
        .exec(db)
        .await?;
    Entity::delete_many().filter(these()).exec(db).await?;
    Ok(())
}
