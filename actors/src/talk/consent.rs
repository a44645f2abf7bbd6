//! May the call be recorded? Asked before anything else, and only a plain yes counts.
use super::{PRESSED, Talk, line::Line, mouth::Over};
use adapters::brain::Heard;
use entities::{Result, agent::ConsentMode};
use rules::{conversation::phrases, session::command::Command, template::fill};

impl<L: Line> Talk<L> {
    /// Before anything is recorded. Unclear twice is a no.
    pub(super) async fn ask_consent(&mut self) -> Result<(), Over> {
        let Some(recorded) = self.call.options.recording.as_ref().filter(|_| !self.with_a_machine) else {
            return Ok(());
        };
        let own = self
            .agent
            .definition
            .recording
            .consent_message
            .as_ref()
            .map(|own| fill(own, &self.call.mentions()));
        let lines = self.lines();
        match recorded.consent {
            ConsentMode::None => Ok(()),
            ConsentMode::Notice => {
                self.mouth
                    .say_whole(own.as_deref().unwrap_or(lines.consent_notice))
                    .await;
                Ok(())
            }
            ConsentMode::Verbal => {
                let first = own.unwrap_or_else(|| lines.consent_question.to_owned());
                for (question, again) in [(first.as_str(), false), (lines.consent_again, true)] {
                    self.mouth.line.expect_consent();
                    let line = &self.mouth.line;
                    if line.has_keys() && (again || !line.has_ears()) {
                        let question = format!("{question} {}", lines.consent_keys);
                        self.mouth.say_whole(&question).await;
                    } else {
                        self.mouth.say_whole(question).await;
                    }
                    let Heard::Words(speech) = self.listen().await? else {
                        continue;
                    };
                    match self.consent(&speech.text) {
                        Some(true) => {
                            self.mouth.tell(Command::Consent(true));
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
        let keys = text
            .strip_prefix(PRESSED)
            .filter(|_| self.mouth.line.has_keys())
            .and_then(|keys| keys.strip_suffix(']'));
        match keys {
            Some("1") => Some(true),
            Some("2") => Some(false),
            Some(_) => None,
            None => phrases::consent(text, &self.agent.definition.language),
        }
    }

    pub(super) async fn refuse_consent(&mut self) -> Over {
        self.mouth.tell(Command::Consent(false));
        let words = self.lines().consent_refused;
        self.leave(words).await
    }
}
