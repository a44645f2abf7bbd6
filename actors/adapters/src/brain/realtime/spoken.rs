//! One item of an answer that is said: a message of the model, with its sound or in words only.
use super::{
    feed::{Feed, Listener},
    sound::Format,
};

#[derive(Debug)]
pub struct Spoken {
    pub id: String,
    format: Format,
    /// Of its sound that has come.
    bytes: usize,
    /// The first byte of a sample whose second one comes with the next piece.
    odd: Option<u8>,
    words: String,
    /// As long as its sound is passed on.
    pub feed: Option<Feed>,
    /// Its sound has begun.
    has_sound: bool,
    pub finished: bool,
    /// Somebody may have heard it.
    pub passed_on: bool,
}

impl Spoken {
    pub fn new(id: &str, format: Format) -> Self {
        Spoken {
            id: id.to_owned(),
            format,
            bytes: 0,
            odd: None,
            words: String::new(),
            feed: None,
            has_sound: false,
            finished: false,
            passed_on: false,
        }
    }

    /// Of its sound that has come, in whole milliseconds; 0: it has none.
    pub fn sound_ms(&self) -> u64 {
        (self.bytes / self.format.bytes_per_ms()) as u64
    }

    pub fn words(&self) -> &str {
        self.words.trim()
    }

    pub fn characters(&self) -> usize {
        self.words.chars().count()
    }

    pub fn add_words(&mut self, words: &str) {
        self.words.push_str(words);
        self.tell();
    }

    /// In full; what came piece by piece stands if it is longer.
    pub fn set_words(&mut self, words: String) {
        if self.words.len() < words.len() {
            self.words = words;
            self.tell();
        }
    }

    fn tell(&self) {
        if let Some(feed) = &self.feed {
            feed.tell(self.words());
        }
    }

    /// The samples that are whole by now.
    pub fn take(&mut self, sound: Vec<u8>) -> Vec<i16> {
        self.bytes += sound.len();
        let mut bytes: Vec<u8> = self.odd.take().into_iter().chain(sound).collect();
        if self.format == Format::Pcm && bytes.len() % 2 == 1 {
            self.odd = bytes.pop();
        }
        self.format.decode(&bytes).samples.to_vec()
    }

    /// Its sound begins. `None`: it has begun before.
    pub fn begin(&mut self) -> Option<Listener> {
        if std::mem::replace(&mut self.has_sound, true) {
            return None;
        }
        let (feed, listener) = Feed::new(self.format.rate());
        self.feed = Some(feed);
        self.tell();
        Some(listener)
    }

    /// Nothing more of it is passed on. What it says, if it had no sound and is not over yet.
    pub fn finish(&mut self) -> Option<String> {
        let was_finished = std::mem::replace(&mut self.finished, true);
        self.feed = None;
        let is_written = !was_finished && !self.has_sound && !self.words().is_empty();
        is_written.then(|| self.words().to_owned())
    }
}
