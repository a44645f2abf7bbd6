use super::Text;
use schemars::JsonSchema;
use serde::Deserialize;
use std::{borrow::Cow, fmt, ops::Deref};

/// A password as it was given, 1 to 255 characters: not shown in any log, and stored nowhere but sealed.
#[derive(Clone, PartialEq, Eq, Deserialize)]
#[serde(transparent)]
pub struct Password(Text<1, 255>);

impl Deref for Password {
    type Target = str;
    fn deref(&self) -> &str {
        &self.0
    }
}
impl fmt::Debug for Password {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}
impl JsonSchema for Password {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> Cow<'static, str> {
        "Password".into()
    }
    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({ "type": "string", "minLength": 1, "maxLength": 255, "writeOnly": true })
    }
}
