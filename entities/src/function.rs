//! Functions: what agents may call during a talk. Shared by a tenant's two envs.
use crate::{
    boxed,
    connection::Connection,
    error::{Error, Result},
    ids::{FunctionId, TenantId},
    owned::of_tenant,
    page::{self, Listed, Page},
    values::{Bounded, Moment, Text, WebhookUrl},
};
use schemars::JsonSchema;
use sea_orm::{FromJsonQueryResult, entity::prelude::*};
use serde::{Deserialize, Serialize};

/// What a user decides about a function, without its secrets.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema, FromJsonQueryResult)]
#[serde(deny_unknown_fields)]
pub struct Definition {
    /// Unique in its workspace; letters, digits, `_` and `-`. What the model calls it.
    pub name: FunctionName,
    /// When to call it and what it answers: the model reads this.
    pub description: Text<1, 2_000>,
    /// JSON Schema of an object, at most 16 KiB: the model's arguments must fit it.
    pub parameters: serde_json::Value,
    pub url: WebhookUrl,
    #[serde(default)]
    pub method: Method,
    /// The tool of an MCP server that is called instead; `url` is the server's endpoint then, and `method` is `POST`.
    // Left out where there is none: a node of an older version reads the rows of all other functions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mcp: Option<McpTool>,
    /// Milliseconds until the agent says that it is still working, and the talk goes on without an answer.
    #[serde(default = "ten_seconds")]
    pub timeout_ms: Bounded<100, 120_000>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "UPPERCASE")]
pub enum Method {
    #[default]
    Post,
    Put,
    Patch,
}

/// A tool of an MCP server.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct McpTool {
    /// Its name, exactly as the server lists it.
    pub tool: McpToolName,
}

/// 1 to 128 characters, without control characters. What servers call their tools is theirs to say.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct McpToolName(String);
impl McpToolName {
    pub fn parse(text: &str) -> Result<Self, String> {
        if !(1..=128).contains(&text.chars().count()) {
            return Err("must have 1 to 128 characters".into());
        }
        if text.chars().any(char::is_control) {
            return Err("must not contain control characters".into());
        }
        Ok(McpToolName(text.to_owned()))
    }
}
impl std::ops::Deref for McpToolName {
    type Target = str;
    fn deref(&self) -> &str {
        &self.0
    }
}
impl<'de> Deserialize<'de> for McpToolName {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::parse(&std::borrow::Cow::<'de, str>::deserialize(deserializer)?).map_err(serde::de::Error::custom)
    }
}
impl JsonSchema for McpToolName {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "McpToolName".into()
    }
    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({ "type": "string", "minLength": 1, "maxLength": 128 })
    }
}

/// 1 to 64 letters, digits, `_` and `-`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(transparent)]
pub struct FunctionName(String);
impl FunctionName {
    pub fn parse(text: &str) -> Result<Self, String> {
        let fits = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
        if (1..=64).contains(&text.len()) && text.bytes().all(fits) {
            Ok(FunctionName(text.to_owned()))
        } else {
            Err("must have 1 to 64 letters, digits, `_` or `-`".into())
        }
    }
}
impl std::ops::Deref for FunctionName {
    type Target = str;
    fn deref(&self) -> &str {
        &self.0
    }
}
impl<'de> Deserialize<'de> for FunctionName {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::parse(&std::borrow::Cow::<'de, str>::deserialize(deserializer)?).map_err(serde::de::Error::custom)
    }
}
impl JsonSchema for FunctionName {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "FunctionName".into()
    }
    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({ "type": "string", "pattern": "^[A-Za-z0-9_-]{1,64}$" })
    }
}

fn ten_seconds() -> Bounded<100, 120_000> {
    Bounded::new(10_000).unwrap_or_else(|_| unreachable!("a constant"))
}

#[sea_orm::model]
#[derive(Clone, Debug, PartialEq, DeriveEntityModel)]
#[sea_orm(table_name = "functions")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub id: FunctionId,
    pub tenant_id: TenantId,
    pub name: String,
    #[sea_orm(column_type = "JsonBinary")]
    pub definition: Definition,
    /// Headers sent with every call, sealed.
    pub sealed_headers: String,
    pub sealed_secret: String,
    pub secret_hint: String,
    pub version: i32,
    pub created_at: Moment,
    pub updated_at: Moment,
    pub deleted_at: Option<Moment>,
}
impl ActiveModelBehavior for ActiveModel {}

of_tenant!(FunctionId, "function");

#[boxed]
pub async fn of_name(db: &Connection, tenant: TenantId, name: &str) -> Result<Option<Model>> {
    Ok(owned(tenant).filter(Column::Name.eq(name)).one(db).await?)
}

/// Those of `ids` that exist, in no order.
#[boxed]
pub async fn of_ids(db: &Connection, tenant: TenantId, ids: &[FunctionId]) -> Result<Vec<Model>> {
    if ids.is_empty() {
        return Ok(Vec::new());
    }
    Ok(owned(tenant)
        .filter(Column::Id.is_in(ids.iter().copied()))
        .all(db)
        .await?)
}

/// All functions with a secret, a page at a time: to seal them anew.
pub async fn all_after(db: &Connection, after: Option<FunctionId>, limit: u64) -> Result<Vec<Model>> {
    page::behind(db, Entity::find(), Column::Id, after, limit).await
}

#[boxed]
pub async fn reseal(db: &Connection, id: FunctionId, sealed_secret: String, sealed_headers: String) -> Result<()> {
    Entity::update_many()
        .col_expr(Column::SealedSecret, sea_orm::sea_query::Expr::value(sealed_secret))
        .col_expr(Column::SealedHeaders, sea_orm::sea_query::Expr::value(sealed_headers))
        .filter(Column::Id.eq(id))
        .exec(db)
        .await?;
    Ok(())
}

#[boxed]
pub async fn count(db: &Connection, tenant: TenantId) -> Result<u64> {
    Ok(owned(tenant).count(db).await?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tool_is_called_as_its_server_calls_it() {
        for (name, is_good) in [
            ("orders.search", true),
            ("Größe / size", true),
            (" blanks stay ", true),
            ("", false),
            ("a\nb", false),
            ("a\u{0}", false),
        ] {
            let parsed = McpToolName::parse(name);
            assert_eq!(parsed.is_ok(), is_good, "{name:?}");
            assert!(parsed.is_err() || *parsed.unwrap() == *name);
        }
        assert!(McpToolName::parse(&"ü".repeat(128)).is_ok() && McpToolName::parse(&"ü".repeat(129)).is_err());
    }
}
