//! A line that carries sound, a browser's or a telephone's, as a talk's transport: the agent's words go out as sound, and it
//! falls silent when the participant begins to speak. If that turns out to be nothing, it goes on where it fell silent.
//!
//! What must be heard (about consent, and the last words) is said to its end whatever the participant says; what the
//! participant has said meanwhile is an aside, which stands in the transcript and answers nothing. Whatever else the agent
//! says, or is about to say, ends when the participant surely interrupts it ([`rules::turn`]), or somebody else is to take over.
use super::{
    cue::{Cue, cue},
    side::{Browser, Side},
    speech_input::{self as input, Speaking, UNKNOWN, Unsettled, UserInput, UserInputs},
    voices::Voices,
};
use crate::{
    call::leg::Control,
    conversation::{
        latency::Stopwatch,
        moments::Moments,
        transport::{
            CallTransport, Event, Inbox, LATER, Overheard, Said, Saying, Settling, Voice, Words, is_transfer,
            is_transfer_wanted, pressed, transfer_wanted,
        },
    },
};
use adapters::{
    brain::LiveSound,
    sound::{PcmStream, Sound, TELEPHONE},
};
use entities::values::E164;
use futures_util::{
    future::{BoxFuture, FutureExt, pending, ready},
    stream::StreamExt,
};
use media::{bridge::MediaBridge, feed::Feed, playout::Played};
use runtime::clock::{Busy, Clock};
use std::{
    collections::VecDeque,
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};
use tokio::sync::mpsc;

pub struct VoiceTransport {
    clock: Clock,
    bridge: Arc<MediaBridge>,
    side: Arc<dyn Side>,
    /// Somebody else can take over.
    has_line: bool,
    pub(super) agent: Sounds,
    user: UserInputs,
    /// What was taken of that and is to be listened to.
    kept: Option<UserInput>,
    /// The key by which somebody opts out was pressed over the agent's words.
    opted_out: Option<String>,
    inbox: Inbox,
    later: VecDeque<Control>,
    /// Utterances are numbered: the last one that was listened to,
    listened: u64,
    /// and the last one that was over before words were that nobody can cut in on.
    aside: u64,
    /// Nothing is said any more but what must be heard.
    hushed: Arc<AtomicBool>,
    stopwatch: Stopwatch,
    moments: Moments,
    /// Given up while sound is played and while nothing is heard: these take their own time.
    busy: Option<Busy>,
}

/// How an agent sounds, and whether it understands what it hears.
pub struct Sounds {
    pub voices: Voices,
    pub has_ears: bool,
}

impl VoiceTransport {
    pub fn new(clock: Clock, agent: Sounds, bridge: Arc<MediaBridge>, user: UserInputs, inbox: Inbox) -> Self {
        let moments = Moments::new(Some(clock.clone()));
        let agent = Sounds {
            voices: agent.voices.in_step_with(moments.clone()),
            has_ears: agent.has_ears,
        };
        VoiceTransport {
            busy: None,
            clock,
            bridge,
            side: Arc::new(Browser),
            has_line: false,
            agent,
            user,
            kept: None,
            opted_out: None,
            inbox,
            later: VecDeque::new(),
            listened: 0,
            aside: 0,
            hushed: Arc::default(),
            stopwatch: Stopwatch::default(),
            moments,
        }
    }

    /// How soon it answers is measured by that.
    pub fn timed_by(mut self, stopwatch: Stopwatch) -> Self {
        self.stopwatch = stopwatch;
        self
    }

    /// The line is no browser's, and can do this.
    pub fn beside(mut self, side: Arc<dyn Side>) -> Self {
        self.side = side;
        self.has_line = true;
        self
    }

    /// From now on something is under way, until the agent listens.
    pub fn begin(&mut self) {
        self.busy = Some(self.clock.busy());
    }

    fn speaking(&self) -> Speaking {
        *self.user.speaking.borrow()
    }

    /// The last utterance that is answered already, or never will be. That one after it was nothing makes none of one before that.
    fn heard(&self) -> u64 {
        self.listened.max(self.aside)
    }

    /// Nobody has said anything, or begun to, that is to be listened to.
    fn is_silent(&self) -> bool {
        let Speaking {
            begun, sure, nothing, ..
        } = self.speaking();
        sure <= self.heard() && begun <= self.heard().max(nothing)
    }

    fn is_cut_in_by(&self, number: u64) {
        self.user.cut_in.store(number, Ordering::Relaxed);
    }

    async fn play(&mut self, sound: Option<Sound>, whole: bool) -> Said {
        self.user.listens.store(false, Ordering::Relaxed);
        let heard = self.heard();
        let (mut played, feeding) = match sound {
            Some(Sound::Stream(stream)) => {
                let (feed, played) = self.bridge.play(stream.rate);
                // What is still being made is under way until its first sound is there.
                let stopwatch = self.stopwatch.clone();
                (played, feed_on(feed, stream, self.busy.take(), stopwatch).boxed())
            }
            Some(Sound::Whole(sound)) => {
                if !sound.is_empty() {
                    self.stopwatch.sound();
                }
                (self.bridge.play_whole(sound.rate, sound.samples), ready(()).boxed())
            }
            None => (self.bridge.play_whole(TELEPHONE, Vec::new()), ready(()).boxed()),
        };
        self.busy = None;
        // Only what was played is an end.
        let mut feeding = pin!(feeding.then(|()| pending::<()>()));
        let (mut is_silent, mut is_ended_by_us) = (false, false);
        let outcome = loop {
            tokio::select! {
                biased;
                outcome = &mut played => break outcome,
                () = &mut feeding => return Said::Whole,
                to = transfer_wanted(&mut self.inbox, &mut self.later), if !whole && self.has_line => {
                    self.later.push_front(Control::Transfer(to));
                    is_ended_by_us = true;
                    self.bridge.stop();
                    break played.await;
                }
                Some(keys) = self.user.opted_out.recv(), if !whole => {
                    self.opted_out = Some(keys);
                    is_ended_by_us = true;
                    self.bridge.stop();
                    break played.await;
                }
                cue = cue(&mut self.user.speaking, heard, is_silent), if !whole => match cue {
                    Cue::Stop => {
                        self.bridge.stop();
                        break played.await;
                    }
                    Cue::FallSilent => {
                        self.bridge.pause();
                        is_silent = true;
                    }
                    Cue::GoOn => {
                        self.bridge.resume();
                        is_silent = false;
                    }
                },
            }
        };
        self.busy = Some(self.clock.busy());
        if whole {
            self.aside = self.speaking().over;
        }
        match outcome {
            Ok(Played::StoppedAfter(ms)) => {
                if !is_ended_by_us {
                    self.is_cut_in_by(self.speaking().sure);
                }
                Said::CutInAfter(ms)
            }
            // Without its bridge a room has ended, and its talk ends with it.
            Ok(Played::Whole) | Err(_) => Said::Whole,
        }
    }

    async fn next(&mut self) -> Event {
        self.user.listens.store(true, Ordering::Relaxed);
        let event = self.wait().await;
        self.user.listens.store(false, Ordering::Relaxed);
        event
    }

    /// Once.
    fn take_opt_out(&mut self) -> Option<String> {
        let pressed = self.opted_out.take();
        pressed.or_else(|| self.user.opted_out.try_recv().ok())
    }

    async fn wait(&mut self) -> Event {
        loop {
            if let Some(keys) = self.take_opt_out() {
                self.busy = Some(self.clock.busy());
                return Event::Pressed(keys);
            }
            // Whoever takes over hears the rest, and waits for nobody.
            let wanted = self.later.iter().position(is_transfer);
            if let Some(control) = wanted.and_then(|at| self.later.remove(at)) {
                return Event::Control(control);
            }
            let is_silent = self.is_silent();
            if let Some(control) = self.later.pop_front_if(|_| is_silent) {
                return Event::Control(control);
            }
            if let Some(input) = self.kept.take() {
                self.busy = Some(self.clock.busy());
                match self.event_of(input) {
                    Some(event) => return event,
                    None => continue,
                }
            }
            self.busy = None;
            tokio::select! {
                biased;
                Some(keys) = self.user.opted_out.recv() => {
                    self.busy = Some(self.clock.busy());
                    return Event::Pressed(keys);
                }
                Some(input) = self.user.inputs.recv() => {
                    self.busy = Some(self.clock.busy());
                    if let Some(event) = self.event_of(input) {
                        return event;
                    }
                }
                // One who speaks is heard out first.
                Some((control, busy)) = self.inbox.recv(), if self.later.len() < LATER => {
                    self.later.push_back(control);
                    self.busy = busy;
                }
                else => return pending().await,
            }
        }
    }

    /// `all`: see [`CallTransport::overheard`].
    fn take_overheard(&mut self, all: bool) -> Option<Overheard> {
        if let Some(keys) = self.take_opt_out() {
            return Some(Overheard::Pressed(keys));
        }
        loop {
            let input = self.kept.take().or_else(|| self.user.inputs.try_recv().ok())?;
            let (is_answered, is_void) = match &input {
                UserInput::Aside(_) => (false, false),
                UserInput::Dtmf(_) => (true, false),
                UserInput::Speech { number, unsettled, .. } => {
                    let is_void = unsettled.as_ref().is_some_and(Unsettled::is_void);
                    (*number > self.aside || unsettled.is_some(), is_void)
                }
            };
            if is_answered && !all {
                self.kept = Some(input);
                return None;
            }
            if is_void {
                continue;
            }
            match self.event_of(input) {
                Some(Event::Words(words) | Event::Aside(words)) => {
                    return Some(Overheard::Words(Words {
                        settling: None,
                        ..words
                    }));
                }
                Some(Event::Pressed(keys)) => return Some(Overheard::Pressed(keys)),
                Some(Event::HungUp | Event::Control(_)) | None => {}
            }
        }
    }

    fn event_of(&mut self, input: UserInput) -> Option<Event> {
        let (number, mut said, later, unsettled) = match input {
            UserInput::Dtmf(keys) => return Some(Event::Pressed(keys)),
            UserInput::Aside(said) => return Some(Event::Aside(self.words(said))),
            UserInput::Speech {
                number,
                said,
                later,
                unsettled,
            } => (number, said, later, unsettled),
        };
        self.listened = self.listened.max(number);
        if said.speech.text.is_empty() {
            if number != self.user.cut_in.load(Ordering::Relaxed) {
                return None;
            }
            // The agent fell silent for it and must be asked to go on.
            UNKNOWN.clone_into(&mut said.speech.text);
        }
        let words = Words {
            later,
            settling: unsettled.map(|unsettled| Settling::new(unsettled.is_over())),
            ..self.words(said)
        };
        if number <= self.aside {
            return Some(Event::Aside(words));
        }
        self.stopwatch.answering(number);
        Some(Event::Words(words))
    }

    fn words(&self, said: input::Said) -> Words {
        let ago = self.clock.now().since(said.began);
        Words {
            ms: said.ms,
            ago_ms: Some(u64::try_from(ago.as_millis()).unwrap_or(u64::MAX)),
            speech: said.speech,
            later: None,
            settling: None,
        }
    }
}

impl Drop for VoiceTransport {
    /// The talk is over, whatever has ended it: what was said and not listened to is not lost.
    fn drop(&mut self) {
        while let Some(overheard) = self.take_overheard(true) {
            match overheard {
                Overheard::Words(words) => self.user.last_words.keep([words.speech.text.as_str()]),
                Overheard::Pressed(keys) => self.user.last_words.keep([pressed(&keys).as_str()]),
            }
        }
    }
}

/// To its end, or until nobody hears it any more: then the rest is called off.
async fn feed_on(mut feed: Feed, mut stream: PcmStream, mut busy: Option<Busy>, stopwatch: Stopwatch) {
    let mut came = 0;
    while let Some(samples) = stream.chunks.next().await {
        busy = None;
        // Who asks for a moment before the words says none of them.
        let lead = stream.lead.load(Ordering::Relaxed).saturating_sub(came);
        let lead = usize::try_from(lead).map_or(samples.len(), |lead| lead.min(samples.len()));
        came += samples.len() as u64;
        feed.lead(lead);
        if samples.len() > lead {
            stopwatch.sound();
        }
        if !feed.push_all(&samples).await {
            return;
        }
    }
    drop(busy);
    feed.finish();
}

impl CallTransport for VoiceTransport {
    fn stopwatch(&self) -> Stopwatch {
        self.stopwatch.clone()
    }

    fn moments(&self) -> Option<Moments> {
        Some(self.moments.clone())
    }

    fn voice(&self) -> Option<Arc<dyn Voice>> {
        let voices = self.agent.voices.clone();
        Some(Arc::new(voices.timed_by(self.stopwatch.clone())))
    }

    fn is_spoken_over(&mut self) -> bool {
        // For one that may be nothing it falls silent when it has begun.
        let Speaking { sure, .. } = self.speaking();
        let is_spoken_over = sure > self.heard();
        if is_spoken_over {
            self.is_cut_in_by(sure);
        }
        is_spoken_over
            || self.hushed.load(Ordering::Relaxed)
            || self.has_line && is_transfer_wanted(&mut self.inbox, &mut self.later)
    }

    fn overheard(&mut self, all: bool) -> Option<Overheard> {
        self.take_overheard(all)
    }

    fn hush(&self) -> Box<dyn Fn() + Send> {
        let (hushed, bridge) = (self.hushed.clone(), self.bridge.clone());
        Box::new(move || {
            hushed.store(true, Ordering::Relaxed);
            bridge.stop();
        })
    }

    fn stop(&self) -> Box<dyn Fn() + Send> {
        let bridge = self.bridge.clone();
        Box::new(move || bridge.stop())
    }

    fn take_sound_first(&mut self) {
        self.user.sound_first.store(true, Ordering::Relaxed);
    }

    fn lead_sound_to(&mut self, listener: mpsc::Sender<LiveSound>) {
        self.user.live.lead_to(listener);
    }

    fn has_keys(&self) -> bool {
        true
    }

    fn has_ears(&self) -> bool {
        self.agent.has_ears
    }

    fn say<'a>(&'a mut self, saying: Saying<'a>) -> BoxFuture<'a, Said> {
        self.user.last_words.after(saying.text);
        self.play(saying.sound, saying.whole).boxed()
    }

    fn listen(&mut self) -> BoxFuture<'_, Event> {
        self.next().boxed()
    }

    fn wanted(&mut self) -> BoxFuture<'_, E164> {
        transfer_wanted(&mut self.inbox, &mut self.later).boxed()
    }

    fn press(&mut self, digits: &str) {
        self.side.press(digits);
    }

    fn hand_over<'a>(&'a mut self, to: &'a E164) -> BoxFuture<'a, Result<(), String>> {
        async move {
            // It rings in real time, whatever the clock says.
            self.busy = None;
            let side = self.side.clone();
            let mut taking_over = side.hand_over(to);
            let outcome = loop {
                tokio::select! {
                    biased;
                    outcome = &mut taking_over => break outcome,
                    Some((control, _)) = self.inbox.recv(), if self.later.len() < LATER => match control {
                        Control::TakeBack => break Err("nobody answered in time".to_owned()),
                        Control::Say(_) | Control::Press(_) | Control::Transfer(_) | Control::Resume => {
                            self.later.push_back(control);
                        }
                    },
                }
            };
            self.busy = Some(self.clock.busy());
            outcome
        }
        .boxed()
    }

    fn dawdle(&mut self, ms: u64) -> BoxFuture<'_, Option<(E164, u64)>> {
        async move {
            let clock = self.clock.clone();
            self.busy = None;
            self.busy = Some(clock.sleep(Duration::from_millis(ms)).await);
            None
        }
        .boxed()
    }
}

#[cfg(test)]
#[path = "transport_tests.rs"]
mod tests;
