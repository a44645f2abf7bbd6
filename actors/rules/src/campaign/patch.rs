//! A change of a campaign's settings, as its user sends it: a JSON merge patch. It is merged where it is applied, into what the
//! settings are at that moment, so that of two changes at once each keeps what the other has changed.
use crate::shape::{self, Misshapen};
use entities::{
    campaign::Plan,
    error::{Fault, FaultCode},
};
use serde_json::Value;

#[derive(Clone, Debug, PartialEq)]
pub struct Patch(Value);

/// A cap that is lifted is null; of all other settings null is the default.
const CAPS: [&str; 2] = ["per_number_24h", "per_number_7d"];

impl Patch {
    pub fn new(patch: Value) -> Self {
        Patch(patch)
    }

    /// The settings after it.
    pub fn apply(&self, plan: &Plan) -> Result<Plan, Misshapen> {
        shape::parse_value(self.merged(&settings_of(plan)?))
    }

    /// The same; or all that is wrong with them.
    pub fn check(&self, plan: &Plan) -> Result<Plan, Vec<Fault>> {
        let before = settings_of(plan).map_err(|fault| vec![Fault::from(fault)])?;
        shape::parse_all(self.merged(&before), &before)
    }

    fn merged(&self, before: &Value) -> Value {
        let mut settings = before.clone();
        shape::merge(&mut settings, self.0.clone());
        for cap in CAPS {
            if self.0["caps"].get(cap).is_some_and(Value::is_null) {
                settings["caps"][cap] = Value::Null;
            }
        }
        settings
    }
}

fn settings_of(plan: &Plan) -> Result<Value, Misshapen> {
    let mut settings = serde_json::to_value(plan).map_err(|error| Misshapen {
        param: String::new(),
        message: error.to_string(),
        code: FaultCode::InvalidValue,
    })?;
    // It follows from the channel.
    if let Some(fields) = settings.as_object_mut() {
        fields.remove("session_type");
    }
    Ok(settings)
}
