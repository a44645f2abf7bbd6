//! What the service says for the law, in the agent's place: who speaks, before the brain's first word and again in a long talk; the truth,
//! to who asks, and instead of a claim to be human; at the end, where people answer.
//!
//! What is owed is known by [`rules::conversation::disclosure`]; here it is said, and the session is told what was really heard of it.
use super::{
    Conversation, Next,
    hearing::Input,
    speech_out::{Over, Spoken},
    transport::{CallTransport, Settling, Words},
};
use adapters::brain::Heard;
use entities::{Result, agent::ConsentMode, law::DisclosureKind, session::EndReason, values::Moment};
use rules::{
    conversation::{
        claims::Watch,
        disclosure::{Asked, Came, Sentence, Speech, joined, kinds_of, speaks},
    },
    session::command::{Command, Disclosed},
};

impl<L: CallTransport> Conversation<L> {
    /// The opening. Whoever talks over it is heard out, and it is said again; the brain is not asked about that.
    pub(super) async fn disclose(&mut self) -> Result<(), Over> {
        while let Some(speech) = self.disclosures.next() {
            let is_cut = self.say_disclosure(&speech).await?;
            if is_cut && self.disclosures.next().is_some() {
                self.hear_out().await?;
            }
        }
        Ok(())
    }

    /// When the agent has finished, and before it listens: what somebody has asked meanwhile, and what is owed again.
    pub(super) async fn remind(&mut self) -> Result<(), Over> {
        self.answer_aside().await?;
        if std::mem::take(&mut self.speech_out.has_returned) {
            self.disclosures.interrupted();
        }
        let now = self.now();
        self.disclosures.look(now);
        if let Some(speech) = self.disclosures.next() {
            self.say_disclosure(&speech).await?;
            self.brain.spoken_for(&speech.text()).await;
        }
        Ok(())
    }

    /// Whoever asks whether a machine speaks is answered at once, and the brain is told so. Anything else is the brain's.
    pub(super) async fn answer_itself(&mut self, heard: Heard) -> Result<Heard, Over> {
        let Heard::Words(speech) = heard else { return Ok(heard) };
        let Some((asked, words)) = self.late_words.asked() else {
            return Ok(Heard::Words(speech));
        };
        let answer = self.answer_asked(asked, words).await?;
        Ok(Heard::Answered { speech, answer })
    }

    /// The same of a question that may go on: nothing is thought about it before it is known that it does not.
    pub(super) async fn settle_question(&mut self, words: Words, settling: Settling) -> Result<Next, Over> {
        self.leave_open(&words);
        if !self.is_over(settling).await? {
            return Ok(Next::HearOut);
        }
        let speech = self.take_in(words).await?;
        let heard = self.answer_itself(Heard::Words(speech)).await?;
        self.turn(heard, None).await
    }

    /// The same of one that was asked where nothing is answered, or that was understood late.
    pub(super) async fn answer_aside(&mut self) -> Result<(), Over> {
        if let Some((asked, words)) = self.late_words.asked() {
            let answer = self.answer_asked(asked, words).await?;
            self.brain.spoken_for(&answer).await;
        }
        Ok(())
    }

    async fn answer_asked(&mut self, asked: Asked, words: String) -> Result<String, Over> {
        self.speech_out.tell(Command::Note {
            kind: "asked_if_ai",
            detail: words,
        });
        let answer = self.disclosures.answer(asked);
        let text = answer.text.clone();
        self.say_truth(answer, false).await?;
        Ok(text)
    }

    /// Instead of what a brain has claimed that speaks by itself: nobody can cut in.
    pub(super) async fn tell_truth(&mut self) -> Result<(), Over> {
        let truth = self.disclosures.truth();
        let text = truth.text.clone();
        self.say_truth(truth, true).await?;
        self.brain.spoken_for(&text).await;
        Ok(())
    }

    /// What is talked over is owed.
    async fn say_truth(&mut self, truth: Sentence, is_whole: bool) -> Result<(), Over> {
        let began = self.now();
        let spoken = self.speak_for_the_law(&truth.text, is_whole).await?;
        let is_cut_off = is_cut(&spoken);
        if is_cut_off {
            self.disclosures.owe_truth();
        }
        self.tell_disclosed(&[truth], began, is_cut_off);
        self.heed_overheard().await
    }

    /// Says whether the other side has cut in. If no voice gets through it the talk ends: nobody is talked to who was not told.
    async fn say_disclosure(&mut self, speech: &Speech) -> Result<bool, Over> {
        let began = self.now();
        let spoken = self.speak_for_the_law(&speech.text(), speech.is_whole).await?;
        let now = self.now();
        let (whole, cut) = self.disclosures.said(speech, came(&spoken), now);
        self.tell_disclosed(&whole, began, false);
        self.tell_disclosed(&cut, began, true);
        self.heed_overheard().await?;
        if self.disclosures.have_failed() {
            let why = "no voice has said to its end what the law wants said".to_owned();
            return Err(self.break_off(EndReason::ProviderError, why).await);
        }
        Ok(spoken.is_cut)
    }

    /// A wish that is understood meanwhile ends it. A machine is not waited for.
    async fn speak_for_the_law(&mut self, text: &str, is_whole: bool) -> Result<Spoken, Over> {
        if is_whole || self.with_a_machine {
            return Ok(self.speech_out.speak(text, None, true).await);
        }
        let enough = self.late_words.no(&self.wishes, &mut self.judge);
        match self.speech_out.say_until(text, None, enough).await {
            (_, Some(no)) => Err(self.heed(no).await),
            (spoken, None) => Ok(spoken),
        }
    }

    /// The key by which somebody opts out, and what was said and answers nothing.
    async fn heed_overheard(&mut self) -> Result<(), Over> {
        match self.overhear(false).await {
            Some(no) => Err(self.heed(no).await),
            None => Ok(()),
        }
    }

    /// What has cut in is listened to and stands in the transcript; a question about who speaks is answered.
    async fn hear_out(&mut self) -> Result<(), Over> {
        loop {
            match self.next_input().await? {
                Input::Heard(_) => break,
                Input::Open(words, settling) => {
                    self.leave_open(&words);
                    if self.is_over(settling).await? {
                        self.take_in(words).await?;
                        break;
                    }
                }
                Input::Returned => {
                    self.speech_out.has_returned = false;
                    break;
                }
            }
        }
        self.answer_aside().await
    }

    /// That it is recorded, or the question whether it may be: both are said to their end.
    pub(super) async fn tell_of_recording(&mut self, text: &str, basis: ConsentMode) {
        let began = self.now();
        let spoken = self.speech_out.speak(text, None, true).await;
        if self.call.options.legal.is_none() {
            return;
        }
        self.speech_out.tell(Command::ConsentAsked { basis });
        let told = Sentence {
            kinds: vec![DisclosureKind::Recording],
            text: text.trim().to_owned(),
        };
        self.tell_disclosed(&[told], began, is_cut(&spoken));
    }

    /// Before a message to a machine.
    pub(super) async fn introduce_message(&mut self) {
        if let Some(speech) = self.disclosures.of_message() {
            self.disclose_whole(&speech).await;
        }
    }

    /// At the end of a talk that we end, and of a message to a machine. Whoever hangs up hears no more.
    pub(super) async fn close(&mut self) {
        if let Some(speech) = self.disclosures.closing() {
            self.disclose_whole(&speech).await;
        }
    }

    async fn disclose_whole(&mut self, speech: &Speech) {
        let began = self.now();
        let spoken = self.speech_out.speak(&speech.text(), None, true).await;
        self.tell_disclosed(&speech.sentences, began, is_cut(&spoken));
    }

    fn tell_disclosed(&mut self, sentences: &[Sentence], began: Moment, is_cut_off: bool) {
        if sentences.is_empty() {
            return;
        }
        let language = &self.agent.definition.language;
        // Where there are no words of it, English is spoken.
        let language = if speaks(language) {
            language.to_string()
        } else {
            "en".to_owned()
        };
        let disclosed = Disclosed {
            kinds: kinds_of(sentences),
            language,
            text_sha256: rules::digest::sha256(joined(sentences).as_bytes()),
            began,
            ended: self.now(),
            is_cut_off,
        };
        self.speech_out.tell(Command::Disclosed(disclosed));
    }

    /// Who looks at what the brain says to that; none: nobody does.
    pub(super) fn watch(&self, heard: &Heard) -> Option<Watch> {
        let language = self.speech_out.watched.as_deref()?;
        let is_answered = matches!(heard, Heard::Answered { .. });
        Some(Watch::new(language, self.disclosures.truth().text, is_answered))
    }
}

fn came(spoken: &Spoken) -> Came {
    let heard = spoken.said.chars().count();
    if spoken.is_cut {
        Came::CutIn(heard)
    } else if spoken.broke_off {
        Came::BrokeOff(heard)
    } else {
        Came::Whole
    }
}

/// Not all of it was heard, whoever is to blame.
fn is_cut(spoken: &Spoken) -> bool {
    spoken.is_cut || spoken.broke_off
}
