//! One answer of the provider, from its events to what the agent does.
use super::{
    feed::Listener,
    protocol::{Event, Item, Response},
    sound::Format,
    spoken::Spoken,
};
use crate::brain::Act;
use base64::{Engine, engine::general_purpose::STANDARD as BASE64};
use rules::conversation::guard;
use std::collections::VecDeque;

/// Sound of one answer.
const SOUND_LIMIT_MS: usize = 5 * 60 * 1000;
/// Characters of one answer.
const WORDS_LIMIT: usize = 8_000;
/// Calls of one answer that are passed on; further ones are answered as canceled. One more than a talk makes in a turn, so
/// that it sees that there were too many.
const CALLS_LIMIT: usize = guard::MAX_CALLS_A_TURN + 1;
/// Items of one answer, calls among them.
const ITEMS_LIMIT: usize = 64;

/// What has come of one answer.
#[derive(Debug)]
pub struct Answer {
    format: Format,
    /// Its id, as soon as it is known.
    pub id: Option<String>,
    pub spoken: Vec<Spoken>,
    /// Items that were given up to be cut to what was heard. Providers tell of them again when the answer ends: nothing comes of it.
    settled: Vec<String>,
    /// Its calls that have no output yet.
    pub calls: Vec<Called>,
    /// All that it ever called: some events tell of a call again.
    seen: Vec<String>,
    passed_on: usize,
    waiting: VecDeque<Wanted>,
    /// Samples to be played, and the place of what they say in `spoken`.
    to_play: VecDeque<(usize, Vec<i16>)>,
    sound_bytes: usize,
    characters: usize,
    pub over: bool,
    /// Nobody listens to it any more.
    is_dropped: bool,
    /// What it answers was never said: all of it is to be removed.
    pub is_retracted: bool,
}

/// A call, and the item that it is.
#[derive(Debug)]
pub struct Called {
    pub id: String,
    /// Empty: not known yet.
    item_id: String,
}

/// What the agent does next; with the place of what it says in `spoken`.
#[derive(Debug)]
enum Wanted {
    Say(usize, String),
    Speak(usize, Listener),
    Call {
        id: String,
        name: String,
        arguments: String,
    },
}

impl Answer {
    pub fn new(format: Format) -> Self {
        Answer {
            format,
            id: None,
            spoken: Vec::new(),
            settled: Vec::new(),
            calls: Vec::new(),
            seen: Vec::new(),
            passed_on: 0,
            waiting: VecDeque::new(),
            to_play: VecDeque::new(),
            sound_bytes: 0,
            characters: 0,
            over: false,
            is_dropped: false,
            is_retracted: false,
        }
    }

    /// Is that event about another answer? The first id that comes is this one's.
    pub fn is_foreign(&self, event: &Event) -> bool {
        matches!((&self.id, event.response()), (Some(own), Some(id)) if own != id)
    }

    /// Fails when the answer breaks the protocol or a limit, or when it failed itself and nothing of it was said.
    pub fn hear(&mut self, event: Event) -> Result<(), String> {
        if self.id.is_none() {
            self.id = event.response().map(str::to_owned);
        }
        match event {
            Event::ItemAdded { item, .. } if item.kind == "message" => self.at(&item.id).map(drop),
            Event::Sound(delta) => self.sound(&delta.item_id, &delta.delta),
            Event::Words(delta) => self.words(&delta.item_id, &delta.delta),
            Event::AllWords {
                item_id, transcript, ..
            } => self.all_words(&item_id, transcript.unwrap_or_default()),
            Event::Arguments {
                item_id,
                call_id: Some(id),
                name: Some(name),
                arguments,
                ..
            } => self.call(Called { id, item_id }, name, arguments),
            Event::ItemDone { item, .. } => self.item_done(item),
            Event::Done { response } => self.done(response),
            Event::ItemAdded { .. } | Event::Arguments { .. } | Event::Begun { .. } => Ok(()),
            Event::SessionCreated | Event::SessionUpdated { .. } | Event::Committed { .. } => Ok(()),
            Event::InputDelta { .. } | Event::InputWords { .. } | Event::InputFailed { .. } => Ok(()),
            Event::Error { .. } | Event::Other => Ok(()),
        }
    }

    /// The next thing that the agent does, as far as is known.
    pub fn next_act(&mut self) -> Option<Act> {
        let wanted = self.waiting.pop_front()?;
        if let Wanted::Say(place, _) | Wanted::Speak(place, _) = &wanted
            && let Some(spoken) = self.spoken.get_mut(*place)
        {
            spoken.passed_on = true;
        }
        Some(match wanted {
            Wanted::Say(_, text) => Act::Say { text, audio: None },
            Wanted::Speak(_, listener) => listener.act(),
            Wanted::Call { id, name, arguments } => Act::Call { id, name, arguments },
        })
    }

    /// Hands over the sound that has come. Waits while its listener is far behind.
    pub async fn play(&mut self) {
        while let Some((place, samples)) = self.to_play.pop_front() {
            let Some(spoken) = self.spoken.get_mut(place) else {
                continue;
            };
            let is_heard = match &spoken.feed {
                Some(feed) => feed.push(&samples).await,
                None => false,
            };
            if !is_heard {
                spoken.feed = None;
            }
        }
    }

    /// Nobody listens any more: what was passed on ends where it is. What still comes is only noted.
    pub fn fall_silent(&mut self) {
        self.is_dropped = true;
        self.waiting.clear();
        self.to_play.clear();
        for spoken in &mut self.spoken {
            spoken.feed = None;
        }
    }

    /// Ids of all its items that are known, which are given up to be removed.
    pub fn give_up(&mut self) -> Vec<String> {
        let mut items: Vec<String> = self.spoken.drain(..).map(|spoken| spoken.id).collect();
        items.append(&mut self.settled);
        let (known, unknown): (Vec<_>, Vec<_>) = self.calls.drain(..).partition(|call| !call.item_id.is_empty());
        self.calls = unknown; // they are answered as canceled
        items.extend(known.into_iter().map(|call| call.item_id));
        items.retain(|item| !item.is_empty());
        items
    }

    /// Gives up what somebody may have heard, so that it can be cut to what was heard.
    pub fn settle(&mut self) -> Vec<Spoken> {
        let spoken = std::mem::take(&mut self.spoken);
        let (heard, unheard): (Vec<_>, Vec<_>) = spoken.into_iter().partition(|spoken| spoken.passed_on);
        self.settled.extend(heard.iter().map(|spoken| spoken.id.clone()));
        self.spoken = unheard; // whoever asks next removes these
        heard
    }

    /// The place of an item; `None`: it is settled.
    fn at(&mut self, item_id: &str) -> Result<Option<usize>, String> {
        if self.settled.iter().any(|settled| settled == item_id) {
            return Ok(None);
        }
        if let Some(known) = self.spoken.iter().position(|spoken| spoken.id == item_id) {
            return Ok(Some(known));
        }
        if self.spoken.len() + self.settled.len() == ITEMS_LIMIT {
            return Err(format!("its answer has more than {ITEMS_LIMIT} items"));
        }
        self.spoken.push(Spoken::new(item_id, self.format));
        Ok(Some(self.spoken.len() - 1))
    }

    fn sound(&mut self, item_id: &str, base64: &str) -> Result<(), String> {
        let Some(place) = self.at(item_id)? else { return Ok(()) };
        let sound = BASE64
            .decode(base64)
            .map_err(|_| "its audio is not base64".to_owned())?;
        self.sound_bytes += sound.len();
        if self.sound_bytes > SOUND_LIMIT_MS * self.format.bytes_per_ms() {
            return Err("its answer has more than 5 minutes of sound".into());
        }
        if self.spoken[place].finished {
            return Ok(()); // it comes too late to be said
        }
        let samples = self.spoken[place].take(sound);
        if self.is_dropped || samples.is_empty() {
            return Ok(());
        }
        if let Some(listener) = self.spoken[place].begin() {
            // One after the other: whoever plays them would wait for the end of the first, and the second for him.
            let others = self.spoken.iter_mut().enumerate();
            for (_, other) in others.filter(|(other, spoken)| *other != place && spoken.feed.is_some()) {
                other.finish();
            }
            self.waiting.push_back(Wanted::Speak(place, listener));
        }
        self.to_play.push_back((place, samples));
        Ok(())
    }

    fn words(&mut self, item_id: &str, words: &str) -> Result<(), String> {
        let Some(place) = self.at(item_id)? else { return Ok(()) };
        self.characters += words.chars().count();
        self.check_length()?;
        self.spoken[place].add_words(words);
        Ok(())
    }

    /// One part of an item in full; it repeats what came piece by piece.
    fn all_words(&mut self, item_id: &str, words: String) -> Result<(), String> {
        let Some(place) = self.at(item_id)? else { return Ok(()) };
        let spoken = &mut self.spoken[place];
        let before = spoken.characters();
        spoken.set_words(words);
        self.characters = self.characters - before + spoken.characters();
        self.check_length()
    }

    fn check_length(&self) -> Result<(), String> {
        if self.characters > WORDS_LIMIT {
            return Err(format!("its answer is longer than {WORDS_LIMIT} characters"));
        }
        Ok(())
    }

    fn item_done(&mut self, item: Item) -> Result<(), String> {
        match item.kind.as_str() {
            "message" => {
                self.all_words(&item.id, item.words())?;
                if let Some(place) = self.at(&item.id)? {
                    self.finish(place);
                }
                Ok(())
            }
            // One that was cut off asks for nothing.
            "function_call" if item.status.as_deref() != Some("incomplete") => {
                let (Some(id), Some(name)) = (item.call_id, item.name) else {
                    return Err("it called a function without saying which".into());
                };
                let item_id = item.id;
                self.call(Called { id, item_id }, name, item.arguments)
            }
            _ => Ok(()),
        }
    }

    fn finish(&mut self, place: usize) {
        if let Some(text) = self.spoken[place].finish() {
            self.waiting.push_back(Wanted::Say(place, text));
        }
    }

    fn call(&mut self, call: Called, name: String, arguments: Option<String>) -> Result<(), String> {
        if self.seen.contains(&call.id) {
            let known = self.calls.iter_mut().find(|known| known.id == call.id);
            if let Some(known) = known.filter(|known| known.item_id.is_empty()) {
                known.item_id = call.item_id;
            }
            return Ok(());
        }
        if self.seen.len() == ITEMS_LIMIT {
            return Err(format!("its answer has more than {ITEMS_LIMIT} calls"));
        }
        self.seen.push(call.id.clone());
        if self.passed_on < CALLS_LIMIT {
            self.passed_on += 1;
            let (id, arguments) = (call.id.clone(), arguments.unwrap_or_default());
            self.waiting.push_back(Wanted::Call { id, name, arguments });
        }
        self.calls.push(call);
        Ok(())
    }

    fn done(&mut self, response: Response) -> Result<(), String> {
        self.over = true;
        for item in response.output.into_iter().flatten() {
            self.item_done(item)?;
        }
        for place in 0..self.spoken.len() {
            self.finish(place);
        }
        let is_heard = !self.settled.is_empty() || self.spoken.iter().any(|spoken| spoken.passed_on);
        let said = !self.waiting.is_empty() || self.passed_on > 0 || is_heard;
        match response.status.as_deref() {
            Some(status @ ("failed" | "cancelled" | "incomplete")) if !said => {
                let details = response.status_details.as_ref();
                let error = details
                    .and_then(|details| details.error.as_ref())
                    .map(|error| error.words());
                let reason = error.or_else(|| details.and_then(|details| details.reason.as_deref()));
                Err(format!(
                    "its answer is {status}: {}",
                    reason.unwrap_or("no reason given")
                ))
            }
            _ => Ok(()),
        }
    }
}
