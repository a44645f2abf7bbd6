//! The person that the sandbox plays: says its lines one after each of the agent's, as its script or its number wants.
//!
//! It hears no sound. It lets the time pass that words take, by the service's clock and at `sandbox_speed`, and decides before it waits
//! when it cuts in. The sound of a model that speaks by itself comes by the provider's clock, which knows neither: said as it comes, an
//! answer would take as long as the provider takes, at any speed, and a clock that stands still would wait for it. So such an answer is
//! gathered until its length is known, and then said (`SpeechOut::deliver`).
use crate::{
    call::leg::Control,
    conversation::transport::{
        CallTransport, Event, Inbox, LATER, Said, Saying, Words, is_transfer, is_transfer_wanted, transfer_wanted,
    },
    deps::Deps,
};
use entities::{
    boxed,
    session::{SandboxOutcome, Step},
    values::E164,
};
use futures_util::future::{BoxFuture, FutureExt};
use runtime::clock::Busy;
use std::{
    collections::VecDeque,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

/// What the person says in a talk without a script.
const AGREEABLE: [&str; 3] = [
    "Hello, yes, this is me.",
    "That sounds good to me.",
    "Thank you, goodbye.",
];
const MENU: &str = "For sales press one, for everything else please hold.";
const MAILBOX: &str = "You have reached my mailbox. Please leave a message after the tone.";
const YES: &str = "Yes, that is fine.";
const NO: &str = "No, I do not want to be recorded.";

#[derive(Clone, Debug, PartialEq)]
enum Move {
    Say(String),
    Interrupt(String),
    SilenceMs(u64),
    Press(String),
    SlowFunction,
    HangUp,
}

pub struct SandboxCallee {
    deps: Deps,
    speed: f64,
    /// Given up while waiting.
    busy: Option<Busy>,
    moves: VecDeque<Move>,
    inbox: Inbox,
    /// It waits for somebody to say something: what it is told wakes it at once.
    listens: Arc<AtomicBool>,
    /// Told while it was handed over.
    later: VecDeque<Control>,
    /// It follows a script of the user's: nothing is put in.
    scripted: bool,
    refuses: bool,
}

impl SandboxCallee {
    pub fn new(deps: &Deps, speed: f64, inbox: Inbox, listens: Arc<AtomicBool>) -> Self {
        SandboxCallee {
            deps: deps.clone(),
            speed,
            busy: Some(deps.clock.busy()),
            moves: VecDeque::new(),
            inbox,
            listens,
            later: VecDeque::new(),
            scripted: false,
            refuses: false,
        }
    }

    pub fn follow(&mut self, script: &[Step]) {
        self.scripted = true;
        self.moves = script.iter().filter_map(step).collect();
    }

    pub fn play(&mut self, outcome: SandboxOutcome) {
        let say = |text: &str| Move::Say(text.to_owned());
        self.refuses = outcome == SandboxOutcome::ConsentRefused;
        self.moves = match outcome {
            SandboxOutcome::OptOut => [say("Please stop calling me.")].into(),
            SandboxOutcome::ConsentRefused => [say(NO)].into(),
            SandboxOutcome::Transfer => [say("I would like to speak to a human, please.")].into(),
            SandboxOutcome::FunctionTimeout => [
                say("Could you look that up for me?"),
                Move::SlowFunction,
                say(AGREEABLE[1]),
            ]
            .into(),
            SandboxOutcome::Voicemail => [say(MAILBOX), Move::SilenceMs(3_600_000)].into(),
            SandboxOutcome::Fax => [Move::SilenceMs(3_600_000)].into(),
            SandboxOutcome::Ivr => std::iter::once(MENU).chain(AGREEABLE).map(say).collect(),
            SandboxOutcome::Talk
            | SandboxOutcome::Busy
            | SandboxOutcome::NoAnswer
            | SandboxOutcome::Declined
            | SandboxOutcome::Failed
            | SandboxOutcome::InvalidNumber
            | SandboxOutcome::Abandoned => AGREEABLE.map(say).into(),
        };
    }

    /// So many milliseconds of the line's time.
    #[boxed]
    pub async fn wait(&mut self, ms: u64) {
        let clock = self.deps.clock.clone();
        let until = clock.now().plus(self.scaled(ms));
        let busy = self.busy.take().unwrap_or_else(|| clock.busy());
        self.busy = Some(clock.busy_until(until, busy).await);
    }

    fn scaled(&self, ms: u64) -> Duration {
        Duration::from_millis(ms).div_f64(self.speed)
    }

    /// Waits, unless something is wanted meanwhile: then how much is left.
    async fn wait_or_heed(&mut self, ms: u64) -> Option<(Control, u64)> {
        let clock = self.deps.clock.clone();
        let begins = clock.now();
        let until = begins.plus(self.scaled(ms));
        let busy = self.busy.take().unwrap_or_else(|| clock.busy());
        self.listens.store(true, Ordering::SeqCst);
        let wanted = tokio::select! {
            biased;
            Some((control, busy)) = self.inbox.recv(), if self.later.len() < LATER => {
                self.busy = busy.or_else(|| Some(clock.busy()));
                Some(control)
            }
            busy = clock.busy_until(until, busy) => {
                self.busy = Some(busy);
                None
            }
        };
        self.listens.store(false, Ordering::SeqCst);
        let passed = clock.now().since(begins).mul_f64(self.speed);
        let left = ms.saturating_sub(u64::try_from(passed.as_millis()).unwrap_or(u64::MAX));
        wanted.map(|control| (control, left))
    }

    async fn next(&mut self) -> Event {
        loop {
            let first = self.later.iter().position(is_transfer).unwrap_or(0);
            if let Some(control) = self.later.remove(first) {
                return Event::Control(control);
            }
            if let Ok((control, _)) = self.inbox.try_recv() {
                return Event::Control(control);
            }
            match self.moves.pop_front() {
                Some(Move::Say(text) | Move::Interrupt(text)) => {
                    return Event::Words(Words::now(text));
                }
                Some(Move::SilenceMs(ms)) => {
                    if let Some((control, left)) = self.wait_or_heed(ms).await {
                        self.moves.push_front(Move::SilenceMs(left));
                        return Event::Control(control);
                    }
                }
                Some(Move::Press(digits)) => {
                    self.wait(digits.len() as u64 * 200).await;
                    return Event::Pressed(digits);
                }
                Some(Move::SlowFunction) => {}
                Some(Move::HangUp) | None => return Event::HungUp,
            }
        }
    }
}

fn step(step: &Step) -> Option<Move> {
    Some(match step {
        Step::Say(text) => Move::Say(text.to_string()),
        Step::Interrupt(text) => Move::Interrupt(text.to_string()),
        Step::SilenceSeconds(seconds) => Move::SilenceMs(u64::try_from(seconds.get()).unwrap_or(0) * 1000),
        Step::Press(digits) => Move::Press(digits.to_string()),
        Step::HangUp(true) => Move::HangUp,
        Step::HangUp(false) => return None,
    })
}

impl CallTransport for SandboxCallee {
    fn real_ms(&self, ms: u64) -> u64 {
        u64::try_from(self.scaled(ms).as_millis()).unwrap_or(u64::MAX)
    }

    fn say<'a>(&'a mut self, saying: Saying<'a>) -> BoxFuture<'a, Said> {
        async move {
            let ms = saying.ms;
            if matches!(self.moves.front(), Some(Move::Interrupt(_))) {
                let played = ms * 2 / 5;
                self.wait(played).await;
                return Said::CutInAfter(played);
            }
            if saying.whole {
                self.wait(ms).await;
                return Said::Whole;
            }
            let mut left = ms;
            while let Some((control, rest)) = self.wait_or_heed(left).await {
                left = rest;
                let is_over = is_transfer(&control);
                self.later.push_back(control);
                if is_over {
                    return Said::CutInAfter(ms - left);
                }
            }
            Said::Whole
        }
        .boxed()
    }

    fn is_spoken_over(&mut self) -> bool {
        is_transfer_wanted(&mut self.inbox, &mut self.later)
    }

    fn listen(&mut self) -> BoxFuture<'_, Event> {
        self.next().boxed()
    }

    fn hear(&mut self, ms: u64) -> BoxFuture<'_, ()> {
        self.wait(ms).boxed()
    }

    fn has_keys(&self) -> bool {
        true
    }

    fn expect_consent(&mut self) {
        if !self.scripted && !self.refuses {
            self.moves.push_front(Move::Say(YES.to_owned()));
        }
    }

    fn wants_slow_function(&mut self) -> bool {
        let wants = matches!(self.moves.front(), Some(Move::SlowFunction));
        if wants {
            self.moves.pop_front();
        }
        wants
    }

    fn press(&mut self, _: &str) {}

    fn wanted(&mut self) -> BoxFuture<'_, E164> {
        transfer_wanted(&mut self.inbox, &mut self.later).boxed()
    }

    /// By the last digit of the number: 1 is busy, 2 does not answer, 4 is turned down; others take over.
    fn hand_over<'a>(&'a mut self, to: &'a E164) -> BoxFuture<'a, Result<(), String>> {
        async move {
            let (mut ms, outcome) = match to.last_digit() {
                1 => (500, Err("busy")),
                2 => (20_000, Err("nobody answered")),
                4 => (500, Err("the carrier rejected the call")),
                _ => (2_000, Ok(())),
            };
            while let Some((control, left)) = self.wait_or_heed(ms).await {
                ms = left;
                match control {
                    Control::TakeBack => return Err("nobody answered in time".into()),
                    Control::Say(_) | Control::Press(_) | Control::Transfer(_) | Control::Resume => {
                        self.later.push_back(control);
                    }
                }
            }
            outcome.map_err(str::to_owned)
        }
        .boxed()
    }

    fn dawdle(&mut self, ms: u64) -> BoxFuture<'_, Option<(E164, u64)>> {
        async move {
            let mut left = ms;
            while let Some((control, rest)) = self.wait_or_heed(left).await {
                left = rest;
                match control {
                    Control::Transfer(to) => return Some((to, left)),
                    Control::TakeBack | Control::Say(_) | Control::Press(_) | Control::Resume => {
                        self.later.push_back(control);
                    }
                }
            }
            None
        }
        .boxed()
    }
}
