//! Keys, workspaces and users.
use entities::{
    api_key,
    ids::{ApiKeyId, TenantId},
    tenant,
    values::{Env, Moment, Role, Scopes, Zone},
};
use schemars::JsonSchema;
use serde::Serialize;

#[derive(Serialize, JsonSchema)]
pub struct ApiKeyView {
    pub id: ApiKeyId,
    pub name: String,
    /// The key's first 12 characters.
    pub prefix: String,
    pub env: Env,
    pub scopes: Scopes,
    /// What calls that it asks for may cost in a day (UTC).
    pub max_spend_cents_per_day: Option<i32>,
    /// How many calls that it asks for may be dialled in any 60 seconds.
    pub max_calls_per_minute: Option<i32>,
    /// The full key. Only in the answer to its creation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub plaintext: Option<String>,
    pub expires_at: Option<Moment>,
    pub created_at: Moment,
    pub last_used_at: Option<Moment>,
    pub revoked_at: Option<Moment>,
}

impl From<api_key::Model> for ApiKeyView {
    fn from(key: api_key::Model) -> Self {
        ApiKeyView {
            id: key.id,
            name: key.name,
            prefix: key.key_prefix,
            env: key.env,
            scopes: key.scopes,
            max_spend_cents_per_day: key.max_spend_cents_per_day,
            max_calls_per_minute: key.max_calls_per_minute,
            plaintext: None,
            expires_at: key.expires_at,
            created_at: key.created_at,
            last_used_at: key.last_used_at,
            revoked_at: key.revoked_at,
        }
    }
}

#[derive(Serialize, JsonSchema)]
pub struct WorkspaceView {
    pub id: TenantId,
    pub slug: String,
    pub name: String,
    /// How numbers without `+` are read.
    pub country: String,
    /// The time zone for calls whose own is unknown.
    pub timezone: Zone,
}

impl From<&tenant::Model> for WorkspaceView {
    fn from(tenant: &tenant::Model) -> Self {
        WorkspaceView {
            id: tenant.id,
            slug: tenant.slug.clone(),
            name: tenant.name.clone(),
            country: tenant.country.clone(),
            timezone: tenant.timezone,
        }
    }
}

#[derive(Serialize, JsonSchema)]
pub struct MeView {
    pub tenant: WorkspaceView,
    pub key: ApiKeyView,
    pub env: Env,
    pub scopes: Scopes,
    pub expires_at: Option<Moment>,
    pub last_used_at: Option<Moment>,
}

#[derive(Serialize, JsonSchema)]
pub struct SignedInView {
    pub user: UserView,
    pub workspaces: Vec<MembershipView>,
}

#[derive(Serialize, JsonSchema)]
pub struct UserView {
    pub id: entities::ids::UserId,
    pub email: String,
}

#[derive(Serialize, JsonSchema)]
pub struct MembershipView {
    pub slug: String,
    pub name: String,
    pub role: Role,
}
