//! Some words on their way: from the provider that was asked for them, or from the next one where that one fails.
use crate::{
    conversation::{moments::Moments, transport::Due},
    voice::speech_input::Tell,
};
use adapters::{
    sound::{Pcm, PcmStream, Resampler, Timings, ms_of},
    speech::{InTurn, ItsTurn, SpeechError, SpeechStream, Tongue},
};
use futures_util::{StreamExt, future::pending, stream};
use rules::session::command::Command;
use std::{
    collections::VecDeque,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering},
    },
    time::Duration,
};
use tokio::time::{Instant, timeout, timeout_at};

/// How long nothing may be heard of some words.
#[derive(Clone, Copy, Debug)]
pub struct Patience {
    /// Before this machine's voice asks for a moment.
    pub filler: Duration,
    /// Before somebody else says them.
    pub next: Duration,
    /// Before they are given up, whoever was to say them.
    pub end: Duration,
}

impl Default for Patience {
    fn default() -> Self {
        Patience {
            filler: Duration::from_millis(1_500),
            next: Duration::from_secs(4),
            end: Duration::from_secs(10),
        }
    }
}

/// This machine's voice must be ready to ask for a moment within that, else nobody does.
const FILLER_WITHIN: Duration = Duration::from_millis(700);

/// All of it, of this machine's voice.
pub async fn whole(mut sound: SpeechStream) -> Pcm {
    let (rate, mut samples) = (sound.rate, Vec::new());
    // This machine's voice does not fail.
    while let Some(Ok(piece)) = sound.next().await {
        samples.extend(piece);
    }
    Pcm::new(rate, samples)
}

/// What all words of a talk share. Cloning is cheap.
#[derive(Clone)]
pub struct Common {
    pub patience: Patience,
    pub tell: Tell,
    /// So many of the cast, in its order, have failed.
    pub failed: Arc<AtomicUsize>,
    /// Who else asks for a moment in this talk.
    pub moments: Moments,
}

impl Common {
    pub fn new(tell: Tell) -> Self {
        Common {
            patience: Patience::default(),
            tell,
            failed: Arc::default(),
            moments: Moments::new(None),
        }
    }
}

/// Some words on their way.
pub struct Words {
    text: String,
    turn: InTurn,
    /// What was promised, whoever speaks.
    rate: u32,
    must_be_heard: bool,
    /// When who speaks was asked; behind other pieces of the turn, when these had been made.
    since: Instant,
    /// That is not known yet.
    its_turn: Option<ItsTurn>,
    /// From then on nothing else is heard; `None`: something is.
    needed: Option<Instant>,
    due: Option<Due>,
    filler: Option<Filler>,
    /// Samples that are none of the words.
    lead: Arc<AtomicU64>,
    broke_off: Arc<AtomicBool>,
    timings: Timings,
    /// Who speaks: the place in the cast, and the name.
    place: usize,
    name: &'static str,
    sound: SpeechStream,
    /// None where the sound has the promised rate.
    resampler: Option<Resampler>,
    rest: VecDeque<(usize, Tongue)>,
    /// Samples of the words, by whoever speaks now.
    heard: u64,
    /// The same by whoever has spoken, at the promised rate.
    came: u64,
    common: Common,
}

/// Who asks for a moment, and with which words.
pub type Filler = (Tongue, &'static str);

type Piece = Option<Result<Vec<i16>, SpeechError>>;

impl Words {
    /// Asked of the first of these, each with its place in the cast; the others follow where it fails. `due`: see
    /// [`Voice::speak`](crate::conversation::transport::Voice::speak).
    pub fn of(
        (text, turn): (&str, InTurn),
        (place, first): (usize, &Tongue),
        rest: VecDeque<(usize, Tongue)>,
        due: Option<Due>,
        common: &Common,
    ) -> Self {
        let (mut sound, since) = (first.speak_in(text, turn.clone()), Instant::now());
        let timings = Timings::default();
        timings.follow(&sound.timings, 0);
        Words {
            text: text.to_owned(),
            turn,
            its_turn: sound.its_turn.take(),
            timings,
            rate: sound.rate,
            must_be_heard: false,
            since,
            needed: due.is_none().then_some(since),
            due,
            filler: None,
            lead: Arc::default(),
            broke_off: Arc::default(),
            place,
            name: first.name(),
            sound,
            resampler: None,
            rest,
            heard: 0,
            came: 0,
            common: common.clone(),
        }
    }

    /// They are said to their end, if need be once more.
    pub fn must_be_heard(self, must_be_heard: bool) -> Self {
        Words { must_be_heard, ..self }
    }

    pub fn filled_by(self, filler: Option<Filler>) -> Self {
        Words { filler, ..self }
    }

    /// As it comes.
    pub fn stream(self) -> PcmStream {
        let (rate, timings) = (self.rate, self.timings.clone());
        let (lead, broke_off) = (self.lead.clone(), self.broke_off.clone());
        let chunks = stream::unfold(self, |mut words| async move { Some((words.next().await?, words)) });
        PcmStream {
            rate,
            chunks: chunks.boxed(),
            lead,
            broke_off,
            timings,
        }
    }

    async fn next(&mut self) -> Option<Vec<i16>> {
        loop {
            let piece = match self.heard {
                0 => match self.first().await? {
                    First::Sound(piece) => piece,
                    First::Filler(samples) => return Some(samples),
                },
                _ => self.sound.next().await,
            };
            self.report_detour();
            match piece? {
                Ok(piece) => {
                    self.heard += piece.len() as u64;
                    let piece = self.fit(piece);
                    self.came += piece.len() as u64;
                    return Some(piece);
                }
                Err(error) => self.take_over(error)?,
            }
        }
    }

    /// The first of the words, or a request for a moment. None: nobody says them.
    async fn first(&mut self) -> Option<First> {
        loop {
            let is_last = self.rest.is_empty();
            let filler = self.needed.filter(|_| self.filler.is_some());
            let filler = filler.map(|needed| needed + self.common.patience.filler);
            let is_asked = self.its_turn.is_none();
            let next = (!is_last && is_asked).then(|| self.since + self.common.patience.next);
            let end = self.needed.map(|needed| needed + self.common.patience.end);
            let by = [filler, next, end].into_iter().flatten().min();
            tokio::select! {
                biased;
                piece = self.sound.next() => return Some(First::Sound(piece)),
                needed = known(&mut self.due) => {
                    self.needed = Some(needed);
                    continue;
                }
                asked = come(&mut self.its_turn) => {
                    self.since = asked;
                    // Those before them have failed with it: nobody waits for it again.
                    if self.common.failed.load(Ordering::Relaxed) > self.place {
                        self.give_over(SpeechError::Timeout)?;
                    }
                    continue;
                }
                () = passed(by) => {}
            }
            let is_late = |by: Option<Instant>| by.is_some_and(|by| by <= Instant::now());
            if is_late(end) {
                self.report(SpeechError::Timeout);
                return self.break_off();
            }
            if is_late(next) {
                self.give_over(SpeechError::Timeout)?;
            } else if is_late(filler)
                && let Some(first) = self.fill().await
            {
                return Some(first);
            }
        }
    }

    /// A request for a moment, or the words, if they come first. Asked for once.
    async fn fill(&mut self) -> Option<First> {
        let (local, words) = self.filler.take()?;
        if !self.common.moments.ask() {
            return None;
        }
        tokio::select! {
            biased;
            piece = self.sound.next() => Some(First::Sound(piece)),
            filler = timeout(FILLER_WITHIN, whole(local.speak(words))) => {
                let filler = filler.ok()?.at(self.rate);
                self.lead.fetch_add(filler.samples.len() as u64, Ordering::Relaxed);
                Some(First::Filler(filler.samples.to_vec()))
            }
        }
    }

    /// After a failure: the next one says the words if hardly any of them were heard, or if they must be. Otherwise what was heard
    /// was said, and no more.
    fn take_over(&mut self, error: SpeechError) -> Option<()> {
        if self.must_be_heard || self.heard < u64::from(self.sound.rate) {
            return self.give_over(error);
        }
        self.report(error);
        self.break_off()
    }

    /// The next one says the words. None: there is nobody left.
    fn give_over(&mut self, error: SpeechError) -> Option<()> {
        self.report(error);
        let Some((place, next)) = self.rest.pop_front() else {
            return self.break_off();
        };
        (self.place, self.name) = (place, next.name());
        self.sound = next.speak_in(&self.text, self.turn.clone());
        self.timings.follow(&self.sound.timings, ms_of(self.came, self.rate));
        (self.since, self.its_turn) = (Instant::now(), self.sound.its_turn.take());
        self.heard = 0;
        if self.sound.rate == self.rate {
            self.resampler = None;
            return Some(());
        }
        match Resampler::new(self.sound.rate, self.rate) {
            Ok(resampler) => self.resampler = Some(resampler),
            // Of rates that are none nothing comes.
            Err(_) => return self.break_off(),
        }
        Some(())
    }

    /// Nothing more comes, and that was not all.
    fn break_off<T>(&self) -> Option<T> {
        self.broke_off.store(true, Ordering::Relaxed);
        None
    }

    /// Who speaks had to go another way.
    fn report_detour(&self) {
        if let Some((way, error)) = self.sound.detour() {
            count(way, error);
            tracing::warn!(way, %error, "a speech provider is asked another way");
            self.note("voice_detour", way, error);
        }
    }

    fn report(&self, error: SpeechError) {
        let provider = self.name;
        count(provider, error);
        // Behind this machine's voice, which is the last, there is nobody. What others of the same provider have told is known.
        let is_known =
            !self.rest.is_empty() && self.common.failed.fetch_max(self.place + 1, Ordering::Relaxed) > self.place;
        if is_known {
            return;
        }
        tracing::warn!(provider, %error, "a speech provider failed");
        self.note("voice_failed", provider, error);
    }

    fn note(&self, kind: &'static str, who: &str, error: SpeechError) {
        (self.common.tell)(Command::Note {
            kind,
            detail: format!("{who}: {error}"),
        });
    }

    fn fit(&mut self, piece: Vec<i16>) -> Vec<i16> {
        match &mut self.resampler {
            None => piece,
            Some(resampler) => resampler.resample(&piece),
        }
    }
}

fn count(provider: &'static str, error: SpeechError) {
    let name = error.name();
    metrics::counter!("callboard_speech_failures_total", "provider" => provider, "error" => name).increment(1);
}

/// When it has been asked for. Never resolves if that is known already.
async fn come(its_turn: &mut Option<ItsTurn>) -> Instant {
    let Some(comes) = its_turn.clone() else {
        return pending().await;
    };
    let asked = comes.await;
    *its_turn = None;
    asked
}

/// From when on nothing else is heard. Never resolves if something always is, or if that is known already.
async fn known(due: &mut Option<Due>) -> Instant {
    let told = match due {
        Some(due) => due.await,
        None => pending().await,
    };
    *due = None;
    match told {
        Ok(needed) => needed,
        Err(_) => pending().await,
    }
}

async fn passed(by: Option<Instant>) {
    match by {
        // What stands behind never comes: this is a pause.
        Some(by) => {
            let _ = timeout_at(by, pending::<()>()).await;
        }
        None => pending().await,
    }
}

enum First {
    Sound(Piece),
    Filler(Vec<i16>),
}
