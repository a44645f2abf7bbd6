//! The wish to be left alone, heard by the phrases or by a model, and obeyed.
use super::{Caller, Conversation, judge::No, speech_out::Over, transport::CallTransport};
use entities::Result;
use rules::{conversation::phrases, session::command::Command};
use std::time::Duration;

impl<L: CallTransport> Conversation<L> {
    /// The wish to be left alone, and the wish not to be recorded, are nothing that a brain decides about. Where the phrases
    /// hear neither, a model may.
    pub(super) async fn screen_opt_out(&mut self, text: &str) -> Result<(), Over> {
        let language = self.agent.definition.language.to_string();
        let opt_out = &self.agent.definition.opt_out;
        let own: Vec<String> = opt_out.phrases.iter().map(|phrase| phrase.to_string()).collect();
        if opt_out.enabled && phrases::is_opt_out(text, &language, &own) {
            return Err(self.opt_out().await);
        }
        if phrases::objects_to_recording(text, &language) {
            return Err(self.refuse_consent().await);
        }
        self.judge.hear(&self.speech_out.last_said, text);
        Ok(())
    }

    pub(super) async fn opt_out(&mut self) -> Over {
        self.tell_opt_out();
        let words = self.stock_phrases().opted_out;
        self.leave(words).await
    }

    pub(super) fn tell_opt_out(&mut self) {
        let purge_after = match &self.caller {
            Caller::Live(deps) => self.now().plus(deps.limits.opt_out_purge_grace),
            Caller::Stubbed(_) => self.now().plus(Duration::from_secs(7 * 86_400)),
        };
        self.speech_out.tell(Command::OptOut { purge_after });
    }

    /// What a model has added is done as if the phrases had heard it.
    pub(super) async fn obey(&mut self, no: No) -> Over {
        self.speech_out.tell(no.note());
        match no {
            No::Calls => self.opt_out().await,
            No::Recording => self.refuse_consent().await,
        }
    }

    /// The same where nothing more is said.
    pub(super) fn tell_no(&mut self, no: No) {
        self.speech_out.tell(no.note());
        match no {
            No::Calls => self.tell_opt_out(),
            No::Recording => self.speech_out.tell(Command::Consent(false)),
        }
    }
}
