//! The other side of a talk, whoever carries it: a person of the sandbox, a phone, a browser.
use super::{latency::Stopwatch, moments::Moments};
use crate::{call::leg::Control, voice::speech_input::LaterWords};
use adapters::{
    brain::{LiveSound, Speech},
    sound::Sound,
    speech::Turn,
};
use entities::{boxed, values::E164};
use futures_util::future::{BoxFuture, FutureExt, Shared, pending, ready};
use runtime::clock::Busy;
use std::{collections::VecDeque, sync::Arc};
use tokio::{
    sync::{mpsc, oneshot},
    time::Instant,
};

/// What the API wants that a transport keeps for later, while it does something else; what comes beyond waits in its inbox.
pub const LATER: usize = 16;

/// Words of the other side.
#[derive(Clone, Debug, PartialEq)]
pub struct Words {
    pub speech: Speech,
    /// How long they take.
    pub ms: u64,
    /// They began so long ago, on a transport that knows them when they have ended; `None`: they begin now.
    pub ago_ms: Option<u64>,
    /// It is heard already and still being understood; `None`: the words are there.
    pub later: Option<LaterWords>,
    /// `None`: the turn is over. `Some`: it may go on; until it is settled nothing may be heard, told or called.
    pub settling: Option<Settling>,
}

/// Whether a turn that seems to be over is over: known a little later.
#[derive(Clone, Debug)]
pub struct Settling(Shared<BoxFuture<'static, bool>>);

impl PartialEq for Settling {
    /// The same one; how it settles is not known yet.
    fn eq(&self, other: &Self) -> bool {
        self.0.ptr_eq(&other.0)
    }
}

impl Settling {
    pub fn new(is_over: impl Future<Output = bool> + Send + 'static) -> Self {
        Settling(is_over.boxed().shared())
    }

    /// `false`: it goes on, and the next words are those of all of it.
    #[boxed]
    pub async fn is_over(self) -> bool {
        self.0.await
    }
}

impl Words {
    /// They begin now, and nobody hears them.
    pub fn now(text: String) -> Self {
        Words {
            ms: spoken_ms(&text),
            speech: Speech { text, audio: None },
            ago_ms: None,
            later: None,
            settling: None,
        }
    }
}

/// What comes from the other side, or from the API.
#[derive(Clone, Debug, PartialEq)]
pub enum Event {
    Words(Words),
    /// Said while the agent said what must be heard: it stands in the transcript and answers nothing.
    Aside(Words),
    /// Keys were pressed.
    Pressed(String),
    HungUp,
    Control(Control),
}

/// What a brain is told of keys begins so.
const PRESSED: &str = "[pressed ";

/// What a brain is told of keys.
pub fn pressed(keys: &str) -> String {
    format!("{PRESSED}{keys}]")
}

/// The keys that are told so.
pub fn keys_in(text: &str) -> Option<&str> {
    text.strip_prefix(PRESSED)?.strip_suffix(']')
}

/// What was said or pressed, and is not listened to any more.
#[derive(Clone, Debug, PartialEq)]
pub enum Overheard {
    Words(Words),
    Pressed(String),
}

/// What the agent says next.
pub struct Saying<'a> {
    pub text: &'a str,
    /// A guess, for a sound that is still being made.
    pub ms: u64,
    /// None on a transport that needs none.
    pub sound: Option<Sound>,
    /// It must be heard: nobody can cut in.
    pub whole: bool,
}

/// From when on nothing is heard but a pause, if certain words are not there by then. Its sender is dropped when nobody waits for
/// them any more.
pub type Due = oneshot::Receiver<Instant>;

/// Who makes the sound of the agent's words, beside the transport that carries it.
pub trait Voice: Send + Sync {
    /// Sound comes while it is being made: the shorter the first words, the earlier they are heard.
    fn is_streamed(&self) -> bool;
    /// The sound of some words; it may still be being made. `whole`: they must be heard. `due`: something else is still being
    /// heard before them; `None`: they are waited for from now on.
    fn speak(&self, text: String, whole: bool, due: Option<Due>) -> BoxFuture<'static, Sound>;
    /// The same of a piece of an answer, asked for while something else may still be heard. Pieces of one turn follow each other in
    /// the order of these calls.
    fn speak_in(&self, _turn: &Turn, text: String, due: Due) -> BoxFuture<'static, Sound> {
        self.speak(text, false, Some(due))
    }
}

/// How far the agent's words came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Said {
    Whole,
    /// The other side cut in after so many milliseconds; its words come next.
    CutInAfter(u64),
}

pub trait CallTransport: Send {
    /// What measures how soon the other side is answered, on a transport that carries sound.
    fn stopwatch(&self) -> Stopwatch {
        Stopwatch::default()
    }
    /// Who else asks for a moment, on a transport whose voice does so by itself: the talk keeps its distance from it.
    fn moments(&self) -> Option<Moments> {
        None
    }
    /// How long something really takes that takes so long at the pace of people: the sandbox can hurry.
    fn real_ms(&self, ms: u64) -> u64 {
        ms
    }
    /// Who speaks, on a transport that carries sound.
    fn voice(&self) -> Option<Arc<dyn Voice>> {
        None
    }
    /// The other side has begun to speak since it was last listened to: whatever the agent wanted to say is late.
    fn is_spoken_over(&mut self) -> bool {
        false
    }
    /// What ends the words that are being said, from beside them, for good: what is said after that must be heard.
    fn hush(&self) -> Box<dyn Fn() + Send> {
        Box::new(|| {})
    }
    /// What ends the words that are being said, from beside them; what is said after that is heard as before. Nothing on a transport
    /// that knows all words before they are said.
    fn stop(&self) -> Box<dyn Fn() + Send> {
        Box::new(|| {})
    }
    /// What was said and is not listened to yet, the first of it, if it is there. `all`: nothing is listened to any more, keys
    /// neither; else only what answers nothing, and nothing behind what is to be answered. The key by which somebody opts out comes
    /// before all that, wherever it was pressed.
    fn overheard(&mut self, _all: bool) -> Option<Overheard> {
        None
    }
    /// From now on speech is wanted as soon as it is over, by somebody who hears by himself; its words may follow.
    fn take_sound_first(&mut self) {}
    /// From now on speech goes there while it is spoken, too; where it cannot, it comes whole with its words.
    fn lead_sound_to(&mut self, _listener: mpsc::Sender<LiveSound>) {}
    /// Yes and no can be answered by keys.
    fn has_keys(&self) -> bool {
        false
    }
    /// Words are understood; else only that something was said.
    fn has_ears(&self) -> bool {
        true
    }
    fn say<'a>(&'a mut self, saying: Saying<'a>) -> BoxFuture<'a, Said>;
    /// Waits for the other side, for as long as it takes.
    fn listen(&mut self) -> BoxFuture<'_, Event>;
    /// The other side's words take their time, unless they have been heard when they are known.
    fn hear(&mut self, _ms: u64) -> BoxFuture<'_, ()> {
        ready(()).boxed()
    }
    /// A question of yes or no about being recorded comes next.
    fn expect_consent(&mut self) {}
    /// The sandbox wants a function to be called that takes longer than it may. Said once.
    fn wants_slow_function(&mut self) -> bool {
        false
    }
    /// Keys that the agent presses, where somebody can hear them.
    fn press(&mut self, _digits: &str) {}
    /// Somebody else is to take over, by the API: resolves when that is wanted, whatever the transport is doing. May be dropped.
    fn wanted(&mut self) -> BoxFuture<'_, E164>;
    /// Calls somebody else to take over; `Err`: why nobody did.
    fn hand_over<'a>(&'a mut self, to: &'a E164) -> BoxFuture<'a, Result<(), String>>;
    /// Waits as a function would that takes too long; or until somebody else is to take over: who, and how much is left.
    fn dawdle(&mut self, ms: u64) -> BoxFuture<'_, Option<(E164, u64)>>;
}

/// What is told comes by this, with a sign that something is under way, where the transport waits.
pub type Inbox = mpsc::Receiver<(Control, Option<Busy>)>;

/// Somebody else is to take over: what was to be said before would only keep them waiting.
pub fn is_transfer(control: &Control) -> bool {
    matches!(control, Control::Transfer(_))
}

/// Is somebody else to take over by now? All else that is told is kept for later.
pub fn is_transfer_wanted(inbox: &mut Inbox, later: &mut VecDeque<Control>) -> bool {
    while later.len() < LATER
        && let Ok((control, _)) = inbox.try_recv()
    {
        later.push_back(control);
    }
    later.iter().any(is_transfer)
}

/// Resolves when somebody else is to take over; all else that is told is kept for later.
#[boxed]
pub async fn transfer_wanted(inbox: &mut Inbox, later: &mut VecDeque<Control>) -> E164 {
    loop {
        if let Some(at) = later.iter().position(is_transfer)
            && let Some(Control::Transfer(to)) = later.remove(at)
        {
            return to;
        }
        if later.len() >= LATER {
            return pending().await;
        }
        match inbox.recv().await {
            Some((control, _)) => later.push_back(control),
            None => return pending().await,
        }
    }
}

/// Speaking takes this long per character, and no utterance less than `SHORTEST_MS`.
const MS_PER_CHARACTER: u64 = 55;

const SHORTEST_MS: u64 = 600;

/// How long it takes to say this.
pub fn spoken_ms(text: &str) -> u64 {
    (text.chars().count() as u64 * MS_PER_CHARACTER).max(SHORTEST_MS)
}
