//! What the limits of API keys leave to their calls. Read anew each round: what ends cheaper than it might have gives back.
use entities::{
    api_key::Model as Key,
    ids::ApiKeyId,
    session::KeyUse,
    values::{Cents, Moment},
};
use std::collections::HashMap;

/// Those of the keys whose calls are at hand.
#[derive(Debug, Default)]
pub struct KeyLimits(HashMap<ApiKeyId, (Key, KeyUse)>);

impl KeyLimits {
    pub fn knows(&self, key: ApiKeyId) -> bool {
        self.0.contains_key(&key)
    }

    pub fn learn(&mut self, key: Key, used: KeyUse) {
        self.0.insert(key.id, (key, used));
    }

    /// When one more call that can cost so much may leave, if not at that moment. Something that ends may make it earlier.
    pub fn full_until(&self, key: Option<ApiKeyId>, most: Cents, at: Moment) -> Option<Moment> {
        let (key, used) = self.0.get(&key?)?;
        used.is_full(key, most, at).map(|full| full.until())
    }

    /// It leaves at that moment.
    pub fn take(&mut self, key: Option<ApiKeyId>, most: Cents, at: Moment) {
        if let Some((_, used)) = key.and_then(|key| self.0.get_mut(&key)) {
            used.add(most, at);
        }
    }
}
