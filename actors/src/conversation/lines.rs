//! What the agent says next: the texts of an answer become utterances, each a line of the transcript, and their sound is asked for
//! before it is needed.
//!
//! Where a voice speaks while it is still being made, an utterance is asked for in pieces: the first of an answer is a clause, if
//! it is long enough to be spoken by itself, so that something is heard early. A clause that the brain hands over by itself and the
//! sentence that follows are one utterance. Where sound is made at once there is nothing to gain, and nothing is cut.
use super::{
    ahead::{Ahead, Piece},
    line::Line,
    parts::Parts,
    transport::Voice,
};
use adapters::sound::{Pcm, PcmStream, Sound};
use futures_util::future::pending;
use rules::conversation::{
    guard,
    pieces::{self, Pieces},
};
use std::{collections::VecDeque, convert::Infallible, sync::Arc};
use tokio::sync::{mpsc, watch};

/// Utterances that wait; the brain is not asked for more meanwhile.
const ROOM: usize = 4;
/// The same of a brain that speaks by itself: it must be asked for more while it is heard. What is beyond is not said.
const MOST: usize = 64;
/// Characters of the pieces after the first, at least: short sentences are asked for together.
const SHORTEST: usize = 80;

/// Of one answer.
pub struct Lines {
    /// None on a transport that needs no sound.
    ahead: Option<Ahead>,
    queue: VecDeque<Line>,
    /// The first piece has been said.
    is_begun: bool,
    open: Option<Open>,
    /// A clause that waits for its sentence, where nothing is gained by saying it early.
    held: Option<String>,
}

/// A clause whose sentence follows.
struct Open {
    parts: Parts,
    more: mpsc::UnboundedSender<Piece>,
    words: watch::Sender<String>,
}

impl Lines {
    pub fn new(voice: Option<Arc<dyn Voice>>) -> Self {
        Lines {
            ahead: voice.map(Ahead::new),
            queue: VecDeque::new(),
            is_begun: false,
            open: None,
            held: None,
        }
    }

    pub fn has_room(&self) -> bool {
        self.queue.len() < ROOM
    }

    /// Nothing waits to be said.
    pub fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    /// The next text of the answer. `audio`: its sound, if the brain speaks by itself.
    pub fn say(&mut self, text: &str, audio: Option<Pcm>) {
        let text = guard::clean(text.trim(), guard::MAX_WORDS);
        if text.is_empty() {
            return;
        }
        let is_first = !std::mem::replace(&mut self.is_begun, true);
        if let Some(audio) = audio {
            self.close();
            self.push(Line::of(&text, Some(Sound::Whole(audio))));
            return;
        }
        if let (Some(open), Some(ahead)) = (self.open.take(), &mut self.ahead) {
            let text = after(&open.parts.text(), &text);
            open.parts.add(&text);
            open.words.send_replace(open.parts.text());
            // Nobody may hear it any more.
            let _ = open.more.send(ahead.ask(&text));
            return;
        }
        let text = match self.held.take() {
            Some(held) => format!("{held}{}", after(&held, &text)),
            None => text,
        };
        self.utter(text, is_first);
    }

    fn utter(&mut self, text: String, is_first: bool) {
        let is_open = is_first && pieces::is_clause(&text);
        let Some(ahead) = &mut self.ahead else {
            if is_open {
                self.held = Some(text);
            } else {
                self.push(Line::of(&text, None));
            }
            return;
        };
        if !ahead.is_streamed() && is_open {
            self.held = Some(text);
            return;
        }
        let texts = if ahead.is_streamed() {
            cut(&text, is_first)
        } else {
            vec![text]
        };
        let (parts, (more, follow)) = (Parts::default(), mpsc::unbounded_channel());
        let mut first = None;
        for text in &texts {
            parts.add(text);
            let piece = ahead.ask(text);
            match &first {
                None => first = Some(piece),
                // Its other end is here.
                Some(_) => drop(more.send(piece)),
            }
        }
        let Some(first) = first else { return };
        let (words, known) = watch::channel(parts.text());
        self.open = is_open.then(|| Open {
            parts: parts.clone(),
            more,
            words,
        });
        self.push(Line::coming(parts, (first, follow), is_open.then_some(known)));
    }

    /// What the brain says by itself, as it comes.
    pub fn speak(&mut self, sound: PcmStream, words: watch::Receiver<String>) {
        self.close();
        self.is_begun = true;
        self.push(Line::live(sound, words));
    }

    /// No text of this answer follows the last one.
    pub fn close(&mut self) {
        self.open = None;
        if let Some(held) = self.held.take() {
            self.utter_held(&held);
        }
    }

    /// No text follows at all.
    pub fn finish(&mut self) {
        self.close();
        if let Some(ahead) = &mut self.ahead {
            ahead.finish();
        }
    }

    fn utter_held(&mut self, text: &str) {
        let line = match &mut self.ahead {
            None => Line::of(text, None),
            Some(ahead) => {
                let pieces = (ahead.ask(text), mpsc::unbounded_channel().1);
                Line::coming(Parts::of(text), pieces, None)
            }
        };
        self.push(line);
    }

    fn push(&mut self, line: Line) {
        if self.queue.len() < MOST {
            self.queue.push_back(line);
        }
    }

    /// Makes sound ahead. May be dropped and called again.
    pub async fn run(&mut self) -> Infallible {
        match &mut self.ahead {
            Some(ahead) => ahead.run().await,
            None => pending().await,
        }
    }

    /// The next one, as soon as it can begin: nothing else is being heard. May be dropped and called again.
    pub async fn next(&mut self) -> Line {
        let Some(head) = self.queue.front_mut() else {
            match self.run().await {}
        };
        head.need();
        let ahead = async {
            match &mut self.ahead {
                Some(ahead) => ahead.run().await,
                None => pending().await,
            }
        };
        tokio::select! {
            biased;
            () = head.arrive() => {}
            never = ahead => match never {},
        }
        match self.queue.pop_front() {
            Some(line) => line,
            None => pending().await,
        }
    }
}

/// A text as it follows another one: with a space, where its script has any.
fn after(before: &str, text: &str) -> String {
    match before.ends_with(|last: char| last.is_ascii() || !is_wide(last)) {
        true => format!(" {text}"),
        false => text.to_owned(),
    }
}

/// Punctuation of scripts without spaces.
fn is_wide(letter: char) -> bool {
    matches!(u32::from(letter), 0x3000..=0x303F | 0xFF00..=0xFF65)
}

/// A text in the pieces in which its sound is asked for, with the space between them.
fn cut(text: &str, is_first: bool) -> Vec<String> {
    let mut pieces = if is_first {
        Pieces::clause_first()
    } else {
        Pieces::default()
    };
    pieces.push(text);
    let mut texts: Vec<String> = Vec::new();
    loop {
        let Some(piece) = pieces.next().or_else(|| pieces.finish()) else {
            return texts;
        };
        let is_behind_the_first = texts.len() > usize::from(is_first);
        match texts.last_mut() {
            Some(last) if is_behind_the_first && last.chars().count() < SHORTEST => last.push_str(&piece),
            _ => texts.push(piece),
        }
    }
}
