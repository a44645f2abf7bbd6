//! One answer of the provider, from its events to what the agent does.
use super::{
    protocol::{Event, Item, Response},
    sound::Format,
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
    /// Ids of its calls that have no output yet.
    pub calls: Vec<String>,
    /// All that it ever called: some events tell of a call again.
    seen: Vec<String>,
    passed_on: usize,
    /// Each with the place of what it says in `spoken`.
    acts: VecDeque<(Option<usize>, Act)>,
    sound_bytes: usize,
    characters: usize,
    pub over: bool,
}

/// One item that is said.
#[derive(Debug)]
pub struct Spoken {
    pub id: String,
    /// Of its sound; 0: it has none.
    pub sound_ms: u64,
    sound: Vec<u8>,
    words: String,
    finished: bool,
    /// Somebody may have heard it.
    pub passed_on: bool,
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
            acts: VecDeque::new(),
            sound_bytes: 0,
            characters: 0,
            over: false,
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
                call_id: Some(id),
                name: Some(name),
                arguments,
                ..
            } => self.call(id, name, arguments),
            Event::ItemDone { item, .. } => self.item_done(item),
            Event::Done { response } => self.done(response),
            Event::ItemAdded { .. } | Event::Arguments { .. } | Event::Begun { .. } => Ok(()),
            Event::SessionCreated | Event::SessionUpdated { .. } | Event::Error { .. } | Event::Other => Ok(()),
        }
    }

    /// The next thing that the agent does, as far as is known.
    pub fn next_act(&mut self) -> Option<Act> {
        let (place, act) = self.acts.pop_front()?;
        if let Some(spoken) = place.and_then(|place| self.spoken.get_mut(place)) {
            spoken.passed_on = true;
        }
        Some(act)
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
        self.spoken.push(Spoken {
            id: item_id.to_owned(),
            sound_ms: 0,
            sound: Vec::new(),
            words: String::new(),
            finished: false,
            passed_on: false,
        });
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
        let spoken = &mut self.spoken[place];
        if spoken.finished {
            return Ok(()); // it comes too late to be said
        }
        spoken.sound.extend_from_slice(&sound);
        spoken.sound_ms = (spoken.sound.len() / self.format.bytes_per_ms()) as u64;
        Ok(())
    }

    fn words(&mut self, item_id: &str, words: &str) -> Result<(), String> {
        let Some(place) = self.at(item_id)? else { return Ok(()) };
        self.characters += words.chars().count();
        self.spoken[place].words.push_str(words);
        self.check_length()
    }

    /// One part of an item in full; it repeats what came piece by piece.
    fn all_words(&mut self, item_id: &str, words: String) -> Result<(), String> {
        let Some(place) = self.at(item_id)? else { return Ok(()) };
        let so_far = &mut self.spoken[place].words;
        if so_far.len() < words.len() {
            self.characters = self.characters - so_far.chars().count() + words.chars().count();
            *so_far = words;
        }
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
                self.call(id, name, item.arguments)
            }
            _ => Ok(()),
        }
    }

    fn finish(&mut self, place: usize) {
        let spoken = &mut self.spoken[place];
        if std::mem::replace(&mut spoken.finished, true) {
            return;
        }
        let sound = self.format.decode(&std::mem::take(&mut spoken.sound));
        let text = spoken.words.trim().to_owned();
        if text.is_empty() && sound.is_empty() {
            return;
        }
        let audio = (!sound.is_empty()).then_some(sound);
        self.acts.push_back((Some(place), Act::Say { text, audio }));
    }

    fn call(&mut self, id: String, name: String, arguments: Option<String>) -> Result<(), String> {
        if self.seen.contains(&id) {
            return Ok(());
        }
        if self.seen.len() == ITEMS_LIMIT {
            return Err(format!("its answer has more than {ITEMS_LIMIT} calls"));
        }
        self.seen.push(id.clone());
        self.calls.push(id.clone());
        if self.passed_on < CALLS_LIMIT {
            self.passed_on += 1;
            let arguments = arguments.unwrap_or_default();
            self.acts.push_back((None, Act::Call { id, name, arguments }));
        }
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
        let said = !self.acts.is_empty() || self.passed_on > 0 || is_heard;
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
