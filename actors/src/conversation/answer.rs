//! One answer of the brain, from what was heard to the last word that is said of it.
//!
//! While one utterance is heard the brain is asked for more, as far as there is room, and the sound of what follows is made. What it
//! wants done is done when all has been said, and a failure counts then too. Of words that may go on it thinks already, but
//! nothing is heard, told or called before they are settled; if they go on, all of it is thrown away.
use super::{
    Conversation,
    hearing::{overhear, take_in},
    judge::{Judge, No},
    known::Later,
    late_words::LateWords,
    latency::Stopwatch,
    line::Line,
    lines::Lines,
    moments::{Moments, THINKING},
    one_too_many,
    safe_harbour::TOO_LATE,
    speech_out::{Over, SpeechOut, Spoken, Whose},
    transport::{CallTransport, Settling, Words},
    wishes::Wishes,
};
use adapters::{
    brain::{Act, Failure, Heard},
    sound::Sound,
};
use entities::Result;
use futures_util::{
    StreamExt,
    future::{BoxFuture, FutureExt, pending, ready},
    stream::BoxStream,
};
use rules::{
    conversation::{claims::Watch, guard, stock_phrases::StockPhrases},
    session::command::Command,
};
use std::{convert::Infallible, pin::pin};
use tokio::time::Instant;

/// What a brain has made of what it heard.
#[derive(Default)]
pub(super) struct Answer {
    /// As far as it was heard, and for so long.
    pub said: String,
    pub said_ms: u64,
    /// The other side cut in.
    pub is_cut: bool,
    /// The voice broke off: not all of it was heard.
    pub broke_off: bool,
    /// Something else was said in its place, for it claimed to be human.
    pub is_corrected: bool,
    /// It said by itself, or was stopped in saying, that it is human: these words, and nothing has been said in their place.
    pub claim: Option<String>,
    /// Ids, names and arguments.
    pub calls: Vec<(String, String, String)>,
    pub failure: Option<String>,
}

impl Answer {
    fn add(&mut self, spoken: &Spoken) {
        // A brain knows its whole answer, not the sentences it came in.
        if !self.said.is_empty() {
            self.said.push(' ');
        }
        self.said.push_str(&spoken.said);
        self.said_ms += spoken.ms;
        self.is_cut |= spoken.is_cut;
        self.broke_off |= spoken.broke_off;
    }
}

/// Why an answer is over.
enum End {
    /// All of it was said, as far as it was heard.
    Said,
    /// What it answers went on.
    Retracted,
    /// A wish, by the phrases, or by a model.
    Wish(No),
    Judged(No),
    Over(Over),
}

/// What the brain hands over, and what is made of it ahead of its being heard.
struct Script<'a> {
    acts: BoxStream<'a, Result<Act, Failure>>,
    lines: Lines,
    calls: Vec<(String, String, String)>,
    /// Names of calls beyond those that are made: the first few.
    refused: Vec<String>,
    failure: Option<String>,
    /// The brain has nothing more to say.
    is_over: bool,
    stopwatch: Stopwatch,
    /// None: whatever it says is said.
    watch: Option<Watch>,
}

impl Script<'_> {
    fn take(&mut self, act: Option<Result<Act, Failure>>) {
        if let Some(Ok(Act::Say { .. } | Act::Speak { .. })) = &act {
            self.stopwatch.clause();
        }
        match act {
            Some(Ok(Act::Say { text, audio })) => {
                return match self.watch.as_mut().and_then(|watch| watch.look(&text)) {
                    Some(instead) => self.lines.say(&instead, None),
                    None => self.lines.say(&text, audio),
                };
            }
            Some(Ok(Act::Speak { sound, words })) => return self.lines.speak(sound, words),
            Some(Ok(Act::Call { id, name, arguments })) if self.calls.len() < guard::MAX_CALLS_A_TURN => {
                self.calls.push((id, name, arguments));
            }
            Some(Ok(Act::Call { name, .. })) if self.refused.len() < guard::MAX_CALLS_A_TURN => self.refused.push(name),
            Some(Ok(Act::Call { .. })) => {}
            Some(Err(error)) => self.failure = Some(error.to_string()),
            None => {
                self.is_over = true;
                return self.lines.finish();
            }
        }
        self.lines.close();
    }

    fn has_room(&self) -> bool {
        !self.is_over && self.lines.has_room()
    }

    /// Takes what comes, and makes sound of it. `is_live`: the brain must be asked for more, else nothing more is heard of what is
    /// being heard. May be dropped and called again.
    async fn run(&mut self, is_live: bool) -> Infallible {
        loop {
            tokio::select! {
                biased;
                act = self.acts.next(), if self.has_room() || (is_live && !self.is_over) => self.take(act),
                never = self.lines.run() => match never {},
            }
        }
    }

    /// What is heard next; none if nothing more is. May be dropped and called again.
    async fn next(&mut self) -> Option<Line> {
        loop {
            if self.is_over && self.lines.is_empty() {
                return None;
            }
            tokio::select! {
                biased;
                line = self.lines.next() => return Some(line),
                act = self.acts.next(), if self.has_room() => self.take(act),
            }
        }
    }
}

/// Gives one answer.
struct Answering<'a, L> {
    script: Script<'a>,
    speech_out: &'a mut SpeechOut<L>,
    judge: &'a mut Judge,
    late_words: &'a mut LateWords,
    moments: &'a Moments,
    wishes: &'a Wishes,
    phrases: &'static StockPhrases,
    /// Resolves when it is too late for the first of it.
    overdue: BoxFuture<'static, ()>,
    answer: Answer,
    /// Words that may still become known of what was heard.
    later: Vec<Later>,
}

impl<L: CallTransport> Conversation<L> {
    /// Lets the brain think and says what it says, until it is done, cut in on, or not wanted any more. `open`: what was heard may
    /// go on. None: it went on, as if it had not been heard yet.
    pub(super) async fn answer(
        &mut self,
        heard: Heard,
        open: Option<(Words, Settling)>,
    ) -> Result<Option<Answer>, Over> {
        // Who opens a talk is not asked for patience.
        let is_awaited = heard != Heard::Opening;
        let phrases = self.stock_phrases();
        let voice = self.speech_out.transport.voice();
        let (watch, overdue) = (self.watch(&heard), self.overdue(&heard));
        let mut answering = Answering {
            script: Script {
                acts: self.brain.think(heard),
                lines: Lines::new(voice),
                calls: Vec::new(),
                refused: Vec::new(),
                failure: None,
                is_over: false,
                stopwatch: self.speech_out.transport.stopwatch(),
                watch,
            },
            speech_out: &mut self.speech_out,
            judge: &mut self.judge,
            late_words: &mut self.late_words,
            moments: &self.moments,
            wishes: &self.wishes,
            phrases,
            overdue,
            answer: Answer::default(),
            later: Vec::new(),
        };
        let mut end = None;
        if let Some((words, settling)) = open {
            end = answering.settle(words, settling).await;
        }
        let end = match end {
            Some(end) => end,
            None => answering.give(is_awaited).await,
        };
        let answer = answering.finish();
        match end {
            End::Said => Ok(Some(answer)),
            End::Retracted => {
                self.brain.retract().await;
                Ok(None)
            }
            End::Wish(no) => Err(self.heed(no).await),
            End::Judged(no) => Err(self.obey(no).await),
            End::Over(over) => Err(over),
        }
    }
}

impl<L: CallTransport> Answering<'_, L> {
    /// Until it is known whether the other side has said all. Then it is told and screened.
    async fn settle(&mut self, mut words: Words, settling: Settling) -> Option<End> {
        let (since, text) = (Instant::now(), words.speech.text.as_str());
        let no = self.wishes.no_in(text);
        self.judge.leave_open(no, &self.speech_out.last_said, text);
        let mut settled = pin!(settling.is_over());
        let is_over = loop {
            tokio::select! {
                biased;
                no = self.judge.no() => return Some(End::Judged(no)),
                late = self.late_words.next() => match self.late_words.take(&late, self.wishes, self.judge) {
                    Some(no) => return Some(End::Wish(no)),
                    None => continue,
                },
                is_over = &mut settled => break is_over,
                never = self.script.run(false) => match never {},
            }
        };
        if !is_over {
            return Some(End::Retracted);
        }
        let waited = u64::try_from(since.elapsed().as_millis()).unwrap_or(u64::MAX);
        words.ago_ms = words.ago_ms.map(|ago| ago.saturating_add(waited));
        let screens = (&mut *self.late_words, &mut *self.judge);
        let no = take_in(self.speech_out, screens, self.wishes, words).await;
        no.map(End::Wish)
    }

    /// Says it.
    async fn give(&mut self, is_awaited: bool) -> End {
        // Asked for once: what comes after that comes.
        let mut moment: BoxFuture<'static, ()> = match is_awaited {
            true => self.moments.due(THINKING),
            false => pending().boxed(),
        };
        // The sound of that: the answer may still come first.
        let mut filler: BoxFuture<'static, Option<Sound>> = pending().boxed();
        loop {
            let line = tokio::select! {
                biased;
                no = self.judge.no() => return End::Judged(no),
                late = self.late_words.next() => match self.late_words.take(&late, self.wishes, self.judge) {
                    Some(no) => return End::Wish(no),
                    None => continue,
                },
                line = self.script.next() => line,
                // If nobody takes over, what was thought meanwhile follows.
                to = self.speech_out.transport.wanted() => {
                    // A clock stands still until whoever it has woken goes on: nobody may wait unheard.
                    (moment, filler) = (pending().boxed(), pending().boxed());
                    self.overdue = pending().boxed();
                    match self.speech_out.hand_over(&to, self.phrases.nobody_available).await {
                        Ok(()) => continue,
                        Err(over) => return End::Over(over),
                    }
                }
                () = &mut moment => {
                    (moment, filler) = (pending().boxed(), self.filler());
                    continue;
                }
                sound = &mut filler => {
                    filler = pending().boxed();
                    if let Some(end) = self.ask_for_a_moment(sound).await {
                        return end;
                    }
                    continue;
                }
                () = &mut self.overdue => {
                    self.answer.failure = Some(TOO_LATE.to_owned());
                    return End::Said;
                }
            };
            (moment, filler) = (pending().boxed(), pending().boxed());
            self.overdue = pending().boxed();
            let Some(line) = line else {
                self.take_calls();
                return End::Said;
            };
            let (mut spoken, wish) = self.say(line, Whose::Brain).await;
            self.later.extend(spoken.later.take());
            self.answer.add(&spoken);
            let screens = (&mut *self.late_words, &mut *self.judge);
            let overheard = overhear(self.speech_out, screens, self.wishes, false).await;
            if let Some(no) = wish.or(overheard) {
                return End::Wish(no);
            }
            if spoken.claim.is_some() {
                // Nothing else of it is said or done.
                self.answer.claim = spoken.claim;
                return End::Said;
            }
            if spoken.is_silent {
                self.answer.failure = Some("no voice gives any sound".into());
                return End::Said;
            }
            if self.answer.is_cut {
                return End::Said;
            }
        }
    }

    /// What the brain wants to be done now that it has said all.
    fn take_calls(&mut self) {
        self.answer.failure = self.script.failure.take();
        self.answer.calls = std::mem::take(&mut self.script.calls);
        for name in std::mem::take(&mut self.script.refused) {
            self.speech_out.tell(one_too_many(&name));
        }
    }

    /// While the brain goes on. A wish in words that become known meanwhile ends it.
    async fn say(&mut self, line: Line, whose: Whose) -> (Spoken, Option<No>) {
        let hush = self.speech_out.transport.hush();
        let (is_live, mut wish) = (line.is_live(), None);
        let mut saying = pin!(self.speech_out.deliver(line, whose));
        loop {
            tokio::select! {
                biased;
                spoken = &mut saying => return (spoken, wish),
                no = self.late_words.no(self.wishes, self.judge), if wish.is_none() => {
                    hush();
                    wish = Some(no);
                }
                never = self.script.run(is_live) => match never {},
            }
        }
    }

    /// The sound of a request for a moment, where there is sound.
    fn filler(&self) -> BoxFuture<'static, Option<Sound>> {
        let Some(voice) = self.speech_out.transport.voice() else {
            return ready(None).boxed();
        };
        self.script.stopwatch.fill(true);
        let sound = voice.speak(self.phrases.bear_with_me.to_owned(), false, None);
        self.script.stopwatch.fill(false);
        sound.map(Some).boxed()
    }

    /// None of the brain's words.
    async fn ask_for_a_moment(&mut self, sound: Option<Sound>) -> Option<End> {
        if !self.moments.ask() {
            return None;
        }
        // What is heard of it is none of the answer.
        self.script.stopwatch.fill(true);
        let line = Line::of(self.phrases.bear_with_me, sound);
        let (spoken, wish) = self.say(line, Whose::Service { whole: false }).await;
        self.script.stopwatch.fill(false);
        self.answer.is_cut |= spoken.is_cut;
        let cut = spoken.is_cut.then_some(End::Said);
        wish.map(End::Wish).or(cut)
    }

    /// What became known after it had been heard is told.
    fn finish(self) -> Answer {
        let Answering {
            mut script,
            speech_out,
            mut answer,
            later,
            ..
        } = self;
        for later in later {
            let words = later.text();
            speech_out.tell_later(later);
            if answer.claim.is_none() && speech_out.claims(&words) {
                answer.claim = Some(words);
            }
        }
        for claim in script.watch.as_mut().map_or_else(Vec::new, Watch::replaced) {
            answer.is_corrected = true;
            speech_out.tell(claim_replaced(claim));
        }
        answer
    }
}

/// For the timeline.
pub(super) fn claim_replaced(claim: String) -> Command {
    let kind = "claim_replaced";
    Command::Note { kind, detail: claim }
}

#[cfg(test)]
#[path = "answer_tests.rs"]
mod tests;
