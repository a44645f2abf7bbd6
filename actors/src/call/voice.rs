//! Who speaks in a call.
use crate::deps::Deps;
use adapters::voice_clone::builtin;

/// By the first of these that there is, as the operator has set the service up; else the default of the language (BCP 47).
pub fn of_call<'a>(deps: &Deps, chosen: impl IntoIterator<Item = Option<&'a str>>, language: &str) -> String {
    builtin::of_call(deps.studio.voice.name(), &deps.providers, chosen, language)
}
