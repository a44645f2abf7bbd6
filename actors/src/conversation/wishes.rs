//! The wish to be left alone, heard by the phrases or by a model, and obeyed.
use super::{
    Caller, Conversation,
    judge::{Judge, No},
    speech_out::Over,
    transport::{CallTransport, keys_in},
};
use crate::{call::leg::Leg, deps::Deps};
use entities::agent::{Definition, OptOut};
use rules::{conversation::phrases, session::command::Command};
use std::time::Duration;

/// The wish to be left alone, or else the wish not to be recorded, as the phrases hear it.
pub(super) fn no_in(text: &str, definition: &Definition) -> Option<No> {
    let language = definition.language.to_string();
    let opt_out = &definition.opt_out;
    let own: Vec<String> = opt_out.phrases.iter().map(|phrase| phrase.to_string()).collect();
    if opt_out.enabled && phrases::is_opt_out(text, &language, &own) {
        return Some(No::Calls);
    }
    phrases::objects_to_recording(text, &language).then_some(No::Recording)
}

/// The key by which calls of this agent are opted out of.
pub fn opt_out_key(definition: &Definition) -> Option<&str> {
    let OptOut { enabled, key, .. } = &definition.opt_out;
    key.as_deref().filter(|_| *enabled)
}

/// It was pressed.
pub(super) fn opts_out_by(keys: &str, definition: &Definition) -> bool {
    opt_out_key(definition) == Some(keys)
}

/// Screens what was understood by the end of a talk and nobody in it had taken, after the agent's last words. Nobody waits for it: a no is
/// told to the session, at once where the phrases hear it, within 3 s where only the model does.
pub fn screen_last(deps: &Deps, leg: &Leg, agent: &str, said: &[String]) {
    let definition = &leg.agent.definition;
    let (calls, recording) = (definition.opt_out.enabled, leg.call.options.recording.is_some());
    let mut judge = Judge::of(deps, leg.session(), calls, recording);
    let opts_out = |keys: &str| opts_out_by(keys, definition).then_some(No::Calls);
    let wishes = said.iter().filter_map(|words| match keys_in(words) {
        Some(keys) => opts_out(keys),
        None => no_in(words, definition),
    });
    // Who is not to be called again is not recorded either.
    let no = wishes.reduce(|one, other| if one == No::Calls { one } else { other });
    // Nobody is asked what is meant by a key.
    let words: Vec<&str> = said
        .iter()
        .map(String::as_str)
        .filter(|words| keys_in(words).is_none())
        .collect();
    if no.is_some() || !words.is_empty() {
        judge.leave_open(no, agent, &words.join(" "));
    }
    // Dropped, it screens what is open.
}

impl<L: CallTransport> Conversation<L> {
    /// Says good-bye to somebody who does not want this.
    pub(super) async fn heed(&mut self, no: No) -> Over {
        match no {
            No::Calls => self.opt_out().await,
            No::Recording => self.refuse_consent().await,
        }
    }

    async fn opt_out(&mut self) -> Over {
        self.tell_opt_out();
        let words = self.stock_phrases().opted_out;
        self.leave(words).await
    }

    fn tell_opt_out(&mut self) {
        let purge_after = match &self.caller {
            Caller::Live(deps) => self.now().plus(deps.limits.opt_out_purge_grace),
            Caller::Stubbed(_) => self.now().plus(Duration::from_secs(7 * 86_400)),
        };
        self.speech_out.tell(Command::OptOut { purge_after });
    }

    /// What a model has added is done as if the phrases had heard it.
    pub(super) async fn obey(&mut self, no: No) -> Over {
        self.speech_out.tell(no.note());
        self.heed(no).await
    }

    /// The session is told of a wish, where nothing more is said.
    pub(super) fn tell_no(&mut self, no: No) {
        match no {
            No::Calls => self.tell_opt_out(),
            No::Recording => self.speech_out.tell(Command::Consent(false)),
        }
    }
}
