//! May the call be recorded? Asked before anything else, and only a plain yes counts.
use super::{
    Conversation,
    speech_out::Over,
    transport::{CallTransport, keys_in},
};
use adapters::brain::Heard;
use entities::{Result, agent::ConsentMode};
use rules::{conversation::phrases, session::command::Command, template::fill};

impl<L: CallTransport> Conversation<L> {
    /// Before anything is recorded. Unclear twice is a no.
    pub(super) async fn ask_consent(&mut self) -> Result<(), Over> {
        let Some(recorded) = self.call.recorded().filter(|_| !self.with_a_machine) else {
            return Ok(());
        };
        let own = self
            .agent
            .definition
            .recording
            .consent_message
            .as_ref()
            .map(|own| fill(own, &self.call.mentions()));
        let stock_phrases = self.stock_phrases();
        match recorded.consent {
            ConsentMode::None => Ok(()),
            ConsentMode::Notice => {
                let notice = own.as_deref().unwrap_or(stock_phrases.consent_notice);
                self.tell_of_recording(notice, recorded.consent).await;
                Ok(())
            }
            ConsentMode::Verbal => {
                let first = own.unwrap_or_else(|| stock_phrases.consent_question.to_owned());
                for (question, again) in [(first.as_str(), false), (stock_phrases.consent_again, true)] {
                    self.speech_out.transport.expect_consent();
                    let transport = &self.speech_out.transport;
                    if transport.has_keys() && (again || !transport.has_ears()) {
                        let question = format!("{question} {}", stock_phrases.consent_keys);
                        self.tell_of_recording(&question, recorded.consent).await;
                    } else {
                        self.tell_of_recording(question, recorded.consent).await;
                    }
                    let Heard::Words(speech) = self.listen().await? else {
                        continue;
                    };
                    self.answer_aside().await?;
                    match self.consent(&speech.text) {
                        Some(true) => {
                            self.speech_out.tell(Command::Consent(true));
                            return Ok(());
                        }
                        Some(false) => return Err(self.refuse_consent().await),
                        None => {}
                    }
                }
                match self.judge.last().await {
                    Some(no) => Err(self.obey(no).await),
                    None => Err(self.refuse_consent().await),
                }
            }
        }
    }

    /// `None`: it is no answer, or not a clear one.
    pub(super) fn consent(&self, text: &str) -> Option<bool> {
        let has_keys = self.speech_out.transport.has_keys();
        match keys_in(text).filter(|_| has_keys) {
            Some("1") => Some(true),
            Some("2") => Some(false),
            Some(_) => None,
            None => phrases::consent(text, &self.agent.definition.language),
        }
    }

    pub(super) async fn refuse_consent(&mut self) -> Over {
        self.speech_out.tell(Command::Consent(false));
        let words = self.stock_phrases().consent_refused;
        self.leave(words).await
    }
}
