//! Clones of voices: what each is called, how far it is, and what it is made from. Shared by a tenant's two envs; the events
//! of a clone go to the env in which it was created.
use crate::{
    boxed,
    connection::Connection,
    db::Db,
    error::{Error, Result},
    ids::{TenantId, TenantScoped, VoiceId},
    keys,
    page::{self, Listed, Page},
    values::{Env, Moment, Text},
    workspace_lease::{self, Share},
};
use schemars::JsonSchema;
use sea_orm::{DeriveActiveEnum, EnumIter, FromJsonQueryResult, QueryTrait, entity::prelude::*, sea_query::Expr};
use serde::{Deserialize, Serialize};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema, EnumIter, DeriveActiveEnum)]
#[sea_orm(rs_type = "String", db_type = "String(StringLen::N(16))", rename_all = "snake_case")]
#[serde(rename_all = "snake_case")]
#[schemars(description = "How far the voice is.")]
pub enum Status {
    /// Its samples are there; the training begins at once.
    Pending,
    Training,
    /// It can be used.
    Ready,
    /// The training failed; `error_code` says why.
    Failed,
}

/// Who makes the clone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema, EnumIter, DeriveActiveEnum)]
#[sea_orm(rs_type = "String", db_type = "String(StringLen::N(16))", rename_all = "snake_case")]
#[serde(rename_all = "snake_case")]
pub enum Maker {
    /// For test keys: the samples are examined, no provider is asked, and the service's own voice speaks.
    Sandbox,
    /// The operator's provider, which speaks ElevenLabs' protocol.
    Elevenlabs,
}

/// That the person who speaks has agreed to be cloned, and what shows it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema, FromJsonQueryResult)]
#[schemars(rename = "VoiceConsent")]
pub struct Consent {
    pub speaker_name: Text<1, 200>,
    /// When the person has agreed.
    pub given_at: Moment,
    /// The words that were agreed to.
    pub statement: Text<1, 1000>,
    /// Where the original lies, such as a contract's number.
    pub reference: Option<Text<1, 200>>,
    /// The file that shows it.
    pub evidence: ConsentEvidence,
    /// When it was put here.
    pub recorded_at: Moment,
}

/// A file that shows that somebody has agreed: a recording of the statement, or a signed document.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "VoiceConsentEvidence")]
pub struct ConsentEvidence {
    pub file_name: String,
    pub bytes: i64,
    /// Of the file, hex.
    pub sha256: String,
}

#[sea_orm::model]
#[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "voices")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub id: VoiceId,
    pub tenant_id: TenantId,
    pub env: Env,
    pub name: String,
    /// BCP 47.
    pub language: Option<String>,
    pub provider: Maker,
    /// What the provider calls it.
    pub provider_voice_id: Option<String>,
    pub status: Status,
    /// Samples that it is made from.
    pub samples: i32,
    /// Trainings so far, the present one included.
    pub run: i32,
    /// The present training ends by then.
    pub deadline: Option<Moment>,
    /// Written before the provider is asked, once per run: after a crash nobody asks it again.
    pub submitted_at: Option<Moment>,
    /// The provider may have copies of it that nobody uses.
    pub leftovers: bool,
    /// The next moment at which its actor has something to do.
    pub wake_at: Option<Moment>,
    /// Failed tries to erase it.
    pub tries: i32,
    pub error_code: Option<String>,
    pub error_message: Option<String>,
    pub consent_attested_at: Moment,
    /// None: nothing but a tick says that the person has agreed.
    #[sea_orm(column_type = "JsonBinary", nullable)]
    pub consent: Option<Consent>,
    pub ready_at: Option<Moment>,
    pub version: i32,
    pub created_at: Moment,
    pub updated_at: Moment,
    pub deleted_at: Option<Moment>,
}
impl ActiveModelBehavior for ActiveModel {}

impl Model {
    pub fn key(&self) -> TenantScoped<VoiceId> {
        TenantScoped::new(self.tenant_id, self.env, self.id)
    }
}

fn owned(tenant: TenantId) -> sea_orm::Select<Entity> {
    Entity::find()
        .filter(Column::TenantId.eq(tenant))
        .filter(Column::DeletedAt.is_null())
}

#[boxed]
pub async fn load(db: &Connection, tenant: TenantId, id: VoiceId) -> Result<Model> {
    let found = owned(tenant).filter(Column::Id.eq(id)).one(db).await?;
    found.ok_or(Error::NotFound("voice"))
}

/// May calls to real people speak with it? A clone only if something shows that the person has agreed; what is no clone is nobody's.
#[boxed]
pub async fn has_evidence(db: &Connection, tenant: TenantId, voice_id: &str) -> Result<bool> {
    let Ok(id) = voice_id.parse::<VoiceId>() else {
        return Ok(true);
    };
    let found = owned(tenant).filter(Column::Id.eq(id)).one(db).await?;
    Ok(found.is_none_or(|row| row.consent.is_some()))
}

/// One that may have been deleted since, of either environment.
#[boxed]
pub async fn of_ever(db: &Connection, tenant: TenantId, id: VoiceId) -> Result<Option<Model>> {
    let found = Entity::find_by_id(id).filter(Column::TenantId.eq(tenant));
    Ok(found.one(db).await?)
}

/// For what follows its deletion.
#[boxed]
pub async fn load_even_deleted(db: &Connection, key: TenantScoped<VoiceId>) -> Result<Model> {
    let found = Entity::find_by_id(key.id)
        .filter(Column::TenantId.eq(key.tenant_id))
        .filter(Column::Env.eq(key.env));
    found.one(db).await?.ok_or(Error::NotFound("voice"))
}

#[boxed]
pub async fn list(db: &Db, tenant: TenantId, status: Option<Status>, page: Page) -> Result<Listed<Model>> {
    let all = owned(tenant).apply_if(status, |all, status| all.filter(Column::Status.eq(status)));
    page::fetch(&db.read, all, Column::Id, Column::CreatedAt, page).await
}

#[boxed]
pub async fn count(db: &Connection, tenant: TenantId) -> Result<u64> {
    Ok(owned(tenant).count(db).await?)
}

/// Voices that have something to do by then.
#[boxed]
pub async fn due(db: &Connection, share: Share, by: Moment, limit: u64) -> Result<Vec<TenantScoped<VoiceId>>> {
    let mine = Entity::find().filter(share.of(Column::TenantId));
    let waiting = mine.filter(Expr::cust("wake_at IS NOT NULL"));
    let due = keys::due(waiting, Column::WakeAt, by, limit);
    keys::of(db, due, [Column::TenantId, Column::Env, Column::Id]).await
}

/// Makes what is being trained or erased due at once: whoever was at it has ended.
#[boxed]
pub async fn let_go(db: &Connection, of: Option<&[TenantId]>, now: Moment) -> Result<()> {
    Entity::update_many()
        .col_expr(Column::WakeAt, Expr::value(now))
        .filter(workspace_lease::any_of(Column::TenantId, of))
        .filter(Expr::cust("wake_at IS NOT NULL"))
        .filter(Column::WakeAt.gt(now))
        .exec(db)
        .await?;
    Ok(())
}

/// What a voice is made from. The sound itself lies in the recordings' store.
pub mod sample {
    use crate::{
        boxed,
        connection::Connection,
        error::Result,
        ids::{TenantId, VoiceId, VoiceSampleId},
        page,
        values::Moment,
        workspace_lease::Share,
    };
    use sea_orm::{Order, QueryOrder, QuerySelect, entity::prelude::*, sea_query::Expr};

    #[sea_orm::model]
    #[derive(Clone, Debug, PartialEq, DeriveEntityModel)]
    #[sea_orm(table_name = "voice_samples")]
    pub struct Model {
        #[sea_orm(primary_key, auto_increment = false)]
        pub id: VoiceSampleId,
        pub tenant_id: TenantId,
        pub voice_id: VoiceId,
        /// Among the samples of its voice, from 0; [`EVIDENCE`]: it is none of them.
        pub place: i32,
        /// It is whole and counts. Else it is on its way into the store, or its upload was cut off.
        pub stored: bool,
        /// As the client called it.
        pub file_name: String,
        /// `wav`, `mp3`, `flac` or `ogg`, once it was examined.
        pub format: Option<String>,
        pub bytes: i64,
        /// Of the file, hex.
        pub sha256: String,
        pub duration_ms: Option<i64>,
        /// Integrated, EBU R 128.
        pub loudness_lufs: Option<f64>,
        /// Why it cannot be used: an `error_code`.
        pub fault: Option<String>,
        pub created_at: Moment,
    }
    impl ActiveModelBehavior for ActiveModel {}

    /// The place of the file that shows that the person has agreed to be cloned. It lies and goes with the samples.
    pub const EVIDENCE: i32 = -1;

    /// The file that shows that the person has agreed, if it is there.
    #[boxed]
    pub async fn evidence(db: &Connection, tenant: TenantId, voice: VoiceId) -> Result<Option<Model>> {
        let select = Entity::find()
            .filter(Column::TenantId.eq(tenant))
            .filter(Column::VoiceId.eq(voice))
            .filter(Column::Place.eq(EVIDENCE))
            .filter(Column::Stored.eq(true));
        Ok(select.one(db).await?)
    }

    /// Those that count, in their order.
    #[boxed]
    pub async fn of_voice(db: &Connection, tenant: TenantId, voice: VoiceId) -> Result<Vec<Model>> {
        let select = Entity::find()
            .filter(Column::TenantId.eq(tenant))
            .filter(Column::VoiceId.eq(voice))
            .filter(Column::Place.gte(0))
            .filter(Column::Stored.eq(true));
        let select = select
            .order_by(Column::Place, Order::Asc)
            .order_by(Column::Id, Order::Asc);
        Ok(select.all(db).await?)
    }

    /// All of a voice, also what was never whole.
    #[boxed]
    pub async fn all_of_voice(db: &Connection, tenant: TenantId, voice: VoiceId) -> Result<Vec<Model>> {
        let select = Entity::find()
            .filter(Column::TenantId.eq(tenant))
            .filter(Column::VoiceId.eq(voice));
        Ok(select.all(db).await?)
    }

    /// Begun before then and never whole: nobody is at them any more.
    #[boxed]
    pub async fn abandoned(db: &Connection, share: Share, before: Moment, limit: u64) -> Result<Vec<Model>> {
        let select = Entity::find()
            .filter(share.of(Column::TenantId))
            .filter(Expr::cust("NOT stored"))
            .filter(Column::CreatedAt.lt(before));
        Ok(select.limit(limit).all(db).await?)
    }

    /// All of all tenants, a page at a time: to seal them anew.
    pub async fn all_after(db: &Connection, after: Option<VoiceSampleId>, limit: u64) -> Result<Vec<Model>> {
        page::behind(db, Entity::find(), Column::Id, after, limit).await
    }

    #[boxed]
    pub async fn delete(db: &Connection, ids: &[VoiceSampleId]) -> Result<()> {
        Entity::delete_many()
            .filter(Column::Id.is_in(ids.iter().copied()))
            .exec(db)
            .await?;
        Ok(())
    }

    #[boxed]
    pub async fn delete_of(db: &Connection, voice: VoiceId) -> Result<()> {
        Entity::delete_many().filter(Column::VoiceId.eq(voice)).exec(db).await?;
        Ok(())
    }
}
