//! The wish to be left alone, heard by the phrases or by a model, and obeyed.
use super::{Caller, Conversation, judge::No, speech_out::Over, transport::CallTransport};
use entities::agent::Definition;
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
