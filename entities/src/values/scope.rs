use schemars::JsonSchema;
use sea_orm::FromJsonQueryResult;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use std::{borrow::Cow, fmt, str::FromStr};

macro_rules! scopes { ($($name:ident = $text:literal),* $(,)?) => {
    /// What a key may do, as `resource:action`. Source: specification, "Scopes".
    #[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
    pub enum Scope { $($name),* }
    impl Scope {
        /// All of them, in the specification's order.
        pub const ALL: &'static [Scope] = &[$(Scope::$name),*];
        pub const fn as_str(self) -> &'static str { match self { $(Scope::$name => $text),* } }
    }
} }
scopes! {
    SessionsRead = "sessions:read", SessionsWrite = "sessions:write",
    CampaignsRead = "campaigns:read", CampaignsWrite = "campaigns:write",
    SmsSend = "sms:send", EmailSend = "email:send",
    WebhooksRead = "webhooks:read", WebhooksWrite = "webhooks:write",
    FunctionsRead = "functions:read", FunctionsWrite = "functions:write",
    VoicesRead = "voices:read", VoicesWrite = "voices:write",
    NumbersRead = "numbers:read", NumbersWrite = "numbers:write",
    CreditsRead = "credits:read", CreditsWrite = "credits:write",
    AgentsRead = "agents:read", AgentsWrite = "agents:write",
    ConcurrencyRead = "concurrency:read", ConcurrencyWrite = "concurrency:write",
    QuestionsRead = "questions:read",
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
impl fmt::Debug for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
impl FromStr for Scope {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        Scope::ALL
            .iter()
            .copied()
            .find(|scope| scope.as_str() == text)
            .ok_or_else(|| {
                let known: Vec<_> = Scope::ALL.iter().map(|scope| scope.as_str()).collect();
                format!("`{text}` is not a scope; the scopes are {}", known.join(", "))
            })
    }
}
impl Serialize for Scope {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}
impl<'de> Deserialize<'de> for Scope {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Cow::<'de, str>::deserialize(deserializer)?
            .parse()
            .map_err(de::Error::custom)
    }
}
impl JsonSchema for Scope {
    fn schema_name() -> Cow<'static, str> {
        "Scope".into()
    }
    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({ "type": "string", "enum": Scope::ALL })
    }
}

/// A key's scopes, sorted, each once.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema, FromJsonQueryResult)]
#[serde(transparent)]
pub struct Scopes(Vec<Scope>);

impl Scopes {
    pub fn all() -> Self {
        Scopes(Scope::ALL.to_vec())
    }
    pub fn new(mut scopes: Vec<Scope>) -> Result<Self, String> {
        scopes.sort();
        scopes.dedup();
        if scopes.is_empty() {
            Err("at least one scope is needed; leave the field out for all of them".into())
        } else {
            Ok(Scopes(scopes))
        }
    }
    pub fn contains(&self, scope: Scope) -> bool {
        self.0.contains(&scope)
    }
    pub fn iter(&self) -> impl Iterator<Item = Scope> + '_ {
        self.0.iter().copied()
    }
}
impl<'de> Deserialize<'de> for Scopes {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Scopes::new(Vec::deserialize(deserializer)?).map_err(de::Error::custom)
    }
}
