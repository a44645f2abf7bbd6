//! What was understood by the time a talk was cut off and nobody had taken yet. It is screened for the wish to be left alone, as all
//! that was said before it.
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

/// The words of what was not understood.
pub const UNKNOWN: &str = "[speech]";

/// Looks for a wish in what was said (second) after the agent's words (first).
pub type Screen = Box<dyn Fn(&str, &[String]) + Send + Sync>;

/// Of one talk. Whoever may still hold words has a clone and puts them in when it is dropped; with the last clone they are screened.
#[derive(Clone, Default)]
pub struct LastWords(Arc<Kept>);

#[derive(Default)]
struct Kept {
    screen: OnceLock<Screen>,
    words: Mutex<Words>,
}

#[derive(Default)]
struct Words {
    agent: String,
    said: Vec<String>,
}

impl LastWords {
    /// The first one counts. Without any they are forgotten.
    pub fn screened_by(&self, screen: Screen) {
        let _ = self.0.screen.set(screen);
    }

    fn words(&self) -> MutexGuard<'_, Words> {
        self.0.words.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The agent says this now.
    pub fn after(&self, agent: &str) {
        agent.clone_into(&mut self.words().agent);
    }

    /// Nobody else will hear of these.
    pub fn keep<'a>(&self, said: impl IntoIterator<Item = &'a str>) {
        let said = said.into_iter().filter(|words| !words.is_empty() && *words != UNKNOWN);
        self.words().said.extend(said.map(str::to_owned));
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        let Words { agent, said } = self.words.get_mut().unwrap_or_else(PoisonError::into_inner);
        if let Some(screen) = self.screen.get()
            && !said.is_empty()
        {
            screen(agent.as_str(), said.as_slice());
        }
    }
}
