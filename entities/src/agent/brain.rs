//! What an agent thinks with.
use crate::values::{Bounded, Text};
use schemars::JsonSchema;
use serde::{
    Deserialize, Deserializer, Serialize,
    de::{self, IgnoredAny, MapAccess, Visitor},
};
use std::{borrow::Cow, collections::BTreeSet, fmt};

/// What decides the agent's words.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(tag = "mode", rename_all = "snake_case", deny_unknown_fields)]
pub enum Brain {
    /// Says prepared lines; deterministic, works without any provider.
    Scripted {
        /// At most 100. Each is said at most once.
        #[serde(default)]
        replies: Vec<Reply>,
    },
    /// A language model behind an OpenAI-compatible `/v1/chat/completions`, which the operator configures.
    Chat {
        /// Null: the operator's.
        #[serde(default)]
        model: Option<Text<1, 200>>,
        /// 0 to 2; null: the model's own.
        #[serde(default)]
        temperature: Option<Temperature>,
        /// Of one answer; null: the model's own.
        #[serde(default)]
        max_tokens: Option<Bounded<16, 8192>>,
    },
    /// Speech to speech over an OpenAI-Realtime-compatible websocket, which the operator configures.
    Realtime {
        /// Null: the operator's.
        #[serde(default)]
        model: Option<Text<1, 200>>,
    },
}
impl Default for Brain {
    fn default() -> Self {
        Brain::Scripted { replies: Vec::new() }
    }
}

/// Written by hand to read one field after the other. What serde derives for a tagged enum reads all of it first and takes it
/// apart later, when nobody knows any more which field an error is in. The mode may come last: JSON has no order.
impl<'de> Deserialize<'de> for Brain {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(BrainVisitor)
    }
}

struct BrainVisitor;

impl<'de> Visitor<'de> for BrainVisitor {
    type Value = Brain;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a map")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Brain, A::Error> {
        let mut mode: Option<Mode> = None;
        let (mut replies, mut model, mut temperature, mut max_tokens) = (Vec::new(), None, None, None);
        let mut given = BTreeSet::new();
        while let Some(field) = map.next_key::<String>()? {
            if given.contains(&field) {
                return Err(de::Error::custom(format!("duplicate field `{field}`")));
            }
            match field.as_str() {
                "mode" => mode = Some(map.next_value()?),
                "replies" => replies = map.next_value()?,
                "model" => model = map.next_value()?,
                "temperature" => temperature = map.next_value()?,
                "max_tokens" => max_tokens = map.next_value()?,
                _ => {
                    map.next_value::<IgnoredAny>()?;
                }
            }
            given.insert(field);
        }
        let Some(mode) = mode else {
            return Err(de::Error::missing_field("mode"));
        };
        let allowed = mode.fields();
        if let Some(field) = given.iter().find(|field| !allowed.contains(&field.as_str())) {
            return Err(de::Error::unknown_field(field, allowed));
        }
        Ok(match mode {
            Mode::Scripted => Brain::Scripted { replies },
            Mode::Chat => Brain::Chat {
                model,
                temperature,
                max_tokens,
            },
            Mode::Realtime => Brain::Realtime { model },
        })
    }
}

/// Which brain it is, as requests and rows say it.
#[derive(Deserialize)]
#[serde(variant_identifier, rename_all = "snake_case")]
enum Mode {
    Scripted,
    Chat,
    Realtime,
}
impl Mode {
    /// What a brain of this mode may have.
    fn fields(&self) -> &'static [&'static str] {
        match self {
            Mode::Scripted => &["mode", "replies"],
            Mode::Chat => &["mode", "model", "temperature", "max_tokens"],
            Mode::Realtime => &["mode", "model"],
        }
    }
}

/// 0 to 2.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(transparent)]
pub struct Temperature(f64);
impl Temperature {
    pub fn get(self) -> f64 {
        self.0
    }
}
impl<'de> Deserialize<'de> for Temperature {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match f64::deserialize(deserializer)? {
            value if (0.0..=2.0).contains(&value) => Ok(Temperature(value)),
            value => Err(de::Error::custom(format!("must be from 0 to 2, not {value}"))),
        }
    }
}
impl JsonSchema for Temperature {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> Cow<'static, str> {
        "Temperature".into()
    }
    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({ "type": "number", "minimum": 0, "maximum": 2 })
    }
}

/// One prepared line of a scripted agent. What it says comes first, then what it does.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Reply {
    /// One of these words must have been heard, in upper or lower case; empty: fits anything that no other line fits.
    #[serde(default)]
    pub hear: Vec<Text<1, 100>>,
    pub say: Text<1, 2_000>,
    /// A tool that it calls after this line: one of its functions by name, or a built-in one.
    #[serde(default)]
    pub call: Option<ScriptedCall>,
    /// The agent ends the call after this line.
    #[serde(default)]
    pub hang_up: bool,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ScriptedCall {
    pub name: Text<1, 64>,
    /// A JSON object of at most 16 KiB.
    #[serde(default)]
    pub arguments: serde_json::Map<String, serde_json::Value>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_written_is_read_wherever_its_mode_stands() {
        let scripted = || Brain::Scripted { replies: Vec::new() };
        let chat = Brain::Chat {
            model: Some(Text::parse("small").unwrap()),
            temperature: Some(Temperature(1.0)),
            max_tokens: Some(Bounded::new(200).unwrap()),
        };
        let quiet = Brain::Chat {
            model: None,
            temperature: None,
            max_tokens: None,
        };
        let realtime = Brain::Realtime {
            model: Some(Text::parse("loud").unwrap()),
        };
        for (text, expected) in [
            (r#"{"mode":"scripted"}"#, scripted()),
            (r#"{"replies":[],"mode":"scripted"}"#, scripted()),
            (r#"{"mode":"chat"}"#, quiet.clone()),
            (
                r#"{"model":null,"temperature":null,"max_tokens":null,"mode":"chat"}"#,
                quiet,
            ),
            (
                r#"{"max_tokens":200,"model":"small","mode":"chat","temperature":1}"#,
                chat,
            ),
            (r#"{"model":"loud","mode":"realtime"}"#, realtime),
        ] {
            assert_eq!(serde_json::from_str::<Brain>(text).unwrap(), expected, "{text}");
            let written = serde_json::to_value(&expected).unwrap();
            assert_eq!(serde_json::from_value::<Brain>(written).unwrap(), expected, "{text}");
        }
    }
}
