//! What the service itself says in a call because the law wants it said, and what of it is still owed.
//!
//! The opening is said before the brain's first word. It counts sentence by sentence: what was talked over is said again once the other
//! side has finished, at most [`MOST_TRIES`] times, and then in its shortest form, which is said to its end whatever is said meanwhile.
//! What no voice says stays owed, and a talk in which that goes on is not held ([`Disclosures::have_failed`]). A reminder follows in a
//! long talk, and after whatever has interrupted it. Some things are said at the end alone ([`Disclosures::closing`]).
mod speech;
mod texts;

pub use speech::{Came, Sentence, Speech, joined, kinds_of};

use entities::{
    law::{DisclosureKind, Purpose},
    session::{Direction, Disclose, Model as Call},
    values::{E164, Moment},
};
use std::{fmt::Write, time::Duration};
use texts::Texts;

/// How often something is begun before it is said in its shortest form.
pub const MOST_TRIES: u32 = 3;
/// The key by which calls are opted out of that offer it, where their agent names no other.
pub const OPT_OUT_KEY: &str = "9";

/// Are there words of this BCP 47 language? A call in another must not be made where something has to be disclosed.
pub fn speaks(language: &str) -> bool {
    texts::of(language).is_some()
}

/// Does somebody say just the word that the opening offers, and nothing else? Only of calls that offer it.
pub fn is_stop(text: &str, language: &str) -> bool {
    let said = super::phrases::words(text);
    let of = |texts: &Texts| {
        let is_stop = |word: &String| texts.stops.contains(&word.as_str());
        let fits = |word: &String| is_stop(word) || texts.polite.contains(&word.as_str());
        said.iter().any(is_stop) && said.iter().all(fits)
    };
    texts::of(language).is_some_and(of) || of(texts::english())
}

/// What whoever was abandoned hears instead of silence: for whom the call was, the number, that it was telemarketing, and how to be
/// called no more. None: there are no words of that language. Source: 16 CFR 310.4(b)(4)(iii).
pub fn safe_harbour(language: &str, name: &str, number: &E164, key: Option<&str>) -> Option<String> {
    let texts = texts::of(language)?;
    let number = spelled(number);
    let way = match key {
        Some(key) => filled(texts.abandoned_key, &[("key", key_name(texts, key))]),
        None => texts.abandoned_call.to_owned(),
    };
    let name = plain(name);
    let told = filled(texts.abandoned, &[("name", name.as_str()), ("number", number.as_str())]);
    Some(format!("{told} {way}"))
}

/// What somebody wants to know of whom they talk with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asked {
    /// "Are you a robot?" It is.
    IsMachine,
    /// "Are you human?" It is not.
    IsHuman,
    Either,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Side {
    Called,
    Calls,
    Room,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    Opening,
    Reminder,
    Short,
}

/// Who speaks, and to whom.
#[derive(Clone, Debug)]
struct Speaker {
    texts: &'static Texts,
    side: Side,
    name: Option<String>,
    subject: Option<String>,
    purpose: Purpose,
    callback: Option<String>,
    /// Where people answer.
    staffed: Option<String>,
    address: Option<String>,
    /// The number that is shown.
    caller: Option<String>,
    key: Option<String>,
    /// It is told, or asked, by itself.
    is_recorded: bool,
}

/// Of one call: what is owed.
#[derive(Clone, Debug)]
pub struct Disclosures {
    speaker: Speaker,
    /// What can be said of all that is wanted.
    wanted: Vec<DisclosureKind>,
    owed: Vec<DisclosureKind>,
    /// Something is said at the end.
    closes: bool,
    form: Form,
    /// How often what is owed was begun and talked over.
    tries: u32,
    /// How often a voice broke off while it said what is owed.
    failures: u32,
    have_failed: bool,
    repeat: Option<Duration>,
    due_at: Option<Moment>,
}

impl Disclosures {
    /// In the agent's language, or in English. `key`: the one by which the other side opts out.
    pub fn of(call: &Call, language: &str, key: Option<&str>) -> Self {
        let legal = call.options.legal.as_ref();
        let speaker = Speaker::of(call, language, key);
        let disclose = legal.and_then(|legal| legal.disclose.clone()).unwrap_or_default();
        let Disclose { kinds, repeat_minutes } = disclose;
        let closes = kinds.contains(&DisclosureKind::Human);
        let wanted: Vec<DisclosureKind> = kinds.into_iter().filter(|kind| speaker.can_say(*kind)).collect();
        let minutes = repeat_minutes.filter(|minutes| *minutes > 0);
        Disclosures {
            speaker,
            owed: wanted.clone(),
            wanted,
            closes,
            form: Form::Opening,
            tries: 0,
            failures: 0,
            have_failed: false,
            repeat: minutes.map(|minutes| Duration::from_secs(60 * u64::from(minutes))),
            due_at: None,
        }
    }

    /// Something has to be disclosed in this call.
    pub fn are_wanted(&self) -> bool {
        !self.wanted.is_empty()
    }

    /// What is said next; none if nothing is owed.
    pub fn next(&self) -> Option<Speech> {
        let is_last = self.tries >= MOST_TRIES;
        let form = if is_last { Form::Short } else { self.form };
        let sentences = self.speaker.sentences(&self.owed, form);
        (!sentences.is_empty()).then_some(Speech {
            sentences,
            is_whole: is_last,
        })
    }

    /// It was said, as far as it came. Answers the sentences that were heard to their end, and the others.
    pub fn said(&mut self, speech: &Speech, came: Came, now: Moment) -> (Vec<Sentence>, Vec<Sentence>) {
        let (whole, cut) = match came {
            Came::Whole => (speech.sentences.clone(), Vec::new()),
            Came::CutIn(heard) | Came::BrokeOff(heard) => speech.split(heard),
        };
        let told = kinds_of(&whole);
        self.owed.retain(|kind| !told.contains(kind));
        if matches!(came, Came::BrokeOff(_)) && !cut.is_empty() {
            // Nobody has talked over it: that is no reason to say less, or nothing.
            self.failures += 1;
            self.have_failed |= speech.is_whole || self.failures >= MOST_TRIES;
            return (whole, cut);
        }
        self.tries += 1;
        // More than that cannot be done.
        if cut.is_empty() || speech.is_whole {
            self.owed.clear();
            (self.tries, self.failures, self.form) = (0, 0, Form::Reminder);
            self.due_at = self.repeat.map(|repeat| now.plus(repeat));
        }
        (whole, cut)
    }

    /// No voice says to its end what is owed.
    pub fn have_failed(&self) -> bool {
        self.have_failed
    }

    /// The talk was interrupted: by somebody else who was to take over, or by being put on hold.
    pub fn interrupted(&mut self) {
        const REMINDED: [DisclosureKind; 3] = [DisclosureKind::Ai, DisclosureKind::Name, DisclosureKind::OptOut];
        if !self.owed.is_empty() {
            return;
        }
        let is_reminded = |kind: &DisclosureKind| REMINDED.contains(kind);
        self.owed = self.wanted.iter().copied().filter(is_reminded).collect();
        (self.tries, self.form) = (0, Form::Reminder);
    }

    /// Is the next reminder due?
    pub fn look(&mut self, now: Moment) {
        if self.due_at.is_some_and(|due_at| now >= due_at) {
            self.due_at = None;
            self.interrupted();
        }
    }

    /// What it answers who asks.
    pub fn answer(&self, asked: Asked) -> Sentence {
        let texts = self.speaker.texts;
        let truth = self.truth();
        let text = match asked {
            Asked::IsMachine => format!("{} {}", texts.yes, truth.text),
            Asked::IsHuman => format!("{} {}", texts.no, truth.text),
            Asked::Either => truth.text,
        };
        Sentence { text, ..truth }
    }

    /// What it is.
    pub fn truth(&self) -> Sentence {
        let texts = self.speaker.texts;
        self.speaker.who((texts.am_of, texts.am), None)
    }

    /// That was said and talked over: it is said again.
    pub fn owe_truth(&mut self) {
        if self.owed.is_empty() {
            self.owed = self.truth().kinds;
            (self.tries, self.form) = (0, Form::Reminder);
        }
    }

    /// What a message to a machine begins with.
    pub fn of_message(&self) -> Option<Speech> {
        if !self.are_wanted() {
            return None;
        }
        let mut sentences = self.speaker.identity(&self.wanted, Form::Opening);
        sentences.extend(
            self.speaker
                .mailbox()
                .filter(|_| self.wanted.contains(&DisclosureKind::OptOut)),
        );
        (!sentences.is_empty()).then_some(Speech {
            sentences,
            is_whole: true,
        })
    }

    /// The last words, where we end the talk. Nobody can ask anything after them, so they are said to their end.
    pub fn closing(&self) -> Option<Speech> {
        self.closes.then(|| Speech {
            sentences: self.speaker.closing(),
            is_whole: true,
        })
    }
}

impl Speaker {
    fn of(call: &Call, language: &str, key: Option<&str>) -> Self {
        let legal = call.options.legal.as_ref();
        let spoken = legal.map(|legal| &legal.legal);
        let side = match (call.room_id, call.direction) {
            (Some(_), _) => Side::Room,
            (None, Direction::Inbound) => Side::Calls,
            (None, Direction::Outbound) => Side::Called,
        };
        Speaker {
            texts: texts::of(language).unwrap_or_else(texts::english),
            side,
            name: legal.and_then(|legal| legal.spoken_name()).map(plain),
            // Whoever picks up need not be who owes it.
            subject: spoken
                .filter(|legal| legal.purpose != Purpose::Debt)
                .and_then(|legal| legal.subject.as_deref())
                .map(plain),
            purpose: spoken.map(|legal| legal.purpose).unwrap_or_default(),
            callback: legal.and_then(|legal| legal.callback.as_ref()).map(spelled),
            staffed: legal.and_then(|legal| legal.staffed.as_ref()).map(spelled),
            address: legal.and_then(|legal| legal.address.as_deref()).map(plain),
            caller: call.from_number.as_ref().filter(|_| side == Side::Called).map(spelled),
            key: key.map(str::to_owned),
            is_recorded: call.options.recording.is_some(),
        }
    }

    fn can_say(&self, kind: DisclosureKind) -> bool {
        match kind {
            DisclosureKind::Ai | DisclosureKind::OptOut | DisclosureKind::ClonedVoice => true,
            DisclosureKind::Name => self.name.is_some(),
            // Whoever calls knows why.
            DisclosureKind::Purpose => self.side == Side::Called,
            DisclosureKind::Recording => !self.is_recorded,
            DisclosureKind::Callback => self.callback.is_some(),
            DisclosureKind::Address => self.address.is_some(),
            // At the end, and not before.
            DisclosureKind::Human => false,
        }
    }

    fn sentences(&self, owed: &[DisclosureKind], form: Form) -> Vec<Sentence> {
        let texts = self.texts;
        let mut sentences = self.identity(owed, form);
        let number = self.callback.as_deref().unwrap_or_default();
        let address = self.address.as_deref().unwrap_or_default();
        for kind in [
            // Source: 47 CFR 64.1200(b)(3), within two seconds of the name.
            DisclosureKind::OptOut,
            DisclosureKind::ClonedVoice,
            DisclosureKind::Recording,
            DisclosureKind::Callback,
            DisclosureKind::Address,
        ] {
            if !owed.contains(&kind) {
                continue;
            }
            let text = match kind {
                DisclosureKind::ClonedVoice => texts.cloned_voice.to_owned(),
                DisclosureKind::Recording => texts.transcribed.to_owned(),
                DisclosureKind::Callback => filled(texts.callback, &[("number", number)]),
                DisclosureKind::Address => filled(texts.address, &[("address", address)]),
                DisclosureKind::OptOut => self.offer(form),
                DisclosureKind::Ai | DisclosureKind::Name | DisclosureKind::Purpose | DisclosureKind::Human => continue,
            };
            let kinds = vec![kind];
            sentences.push(Sentence { kinds, text });
        }
        sentences
    }

    /// Who speaks, and about what: a machine says that it is one whenever it says its name.
    fn identity(&self, owed: &[DisclosureKind], form: Form) -> Vec<Sentence> {
        let (texts, mut sentences) = (self.texts, Vec::new());
        let is_about = owed.contains(&DisclosureKind::Purpose) && self.side == Side::Called;
        let subject = self.subject.as_deref().filter(|_| is_about && form == Form::Opening);
        let is_named = owed.contains(&DisclosureKind::Ai) || owed.contains(&DisclosureKind::Name);
        if is_named || subject.is_some() {
            let (of, without) = match (form, self.side, subject) {
                (Form::Short, ..) => (texts.short_of, texts.short),
                (Form::Reminder, ..) => (texts.reminder_of, texts.reminder),
                (Form::Opening, Side::Called, Some(_)) => (texts.calling_of_about, texts.calling_about),
                (Form::Opening, Side::Called, None) => (texts.calling_of, texts.calling),
                (Form::Opening, Side::Calls | Side::Room, _) => (texts.speaking_of, texts.speaking),
            };
            sentences.push(self.who((of, without), subject));
        }
        if is_about && subject.is_none() {
            let text = match &self.subject {
                // In few words it is what it is about, and nothing else.
                Some(subject) => ended(subject),
                None => texts.purpose(self.purpose).to_owned(),
            };
            let kinds = vec![DisclosureKind::Purpose];
            sentences.push(Sentence { kinds, text });
        }
        sentences
    }

    /// `of`: with a name.
    fn who(&self, (of, without): (&str, &str), subject: Option<&str>) -> Sentence {
        let mut kinds = vec![DisclosureKind::Ai];
        let about = ("subject", subject.unwrap_or_default());
        let text = match self.name.as_deref() {
            Some(name) => {
                kinds.push(DisclosureKind::Name);
                filled(of, &[("name", name), about])
            }
            None => filled(without, &[about]),
        };
        kinds.extend(subject.map(|_| DisclosureKind::Purpose));
        Sentence { kinds, text }
    }

    fn offer(&self, form: Form) -> String {
        let texts = self.texts;
        let then = if self.side == Side::Room {
            texts.contacted
        } else {
            texts.called
        };
        let key = self.key.as_deref().map(|key| key_name(texts, key));
        let text = match (form, key) {
            (Form::Short, Some(_)) => texts.short_offer_key.to_owned(),
            (Form::Short, None) => texts.short_offer.to_owned(),
            (Form::Opening | Form::Reminder, Some(_)) => format!("{}{then}", texts.offer_key),
            (Form::Opening | Form::Reminder, None) => format!("{}{then}", texts.offer),
        };
        filled(&text, &[("stop", texts.stop), ("key", key.unwrap_or_default())])
    }

    /// A machine presses no key: who hears the message later calls.
    fn mailbox(&self) -> Option<Sentence> {
        let number = self.callback.as_deref().or(self.caller.as_deref())?;
        Some(Sentence {
            kinds: vec![DisclosureKind::OptOut],
            text: filled(self.texts.mailbox, &[("number", number)]),
        })
    }

    /// What has spoken; and where people answer, if that is known.
    fn closing(&self) -> Vec<Sentence> {
        let texts = self.texts;
        let was = Sentence {
            kinds: vec![DisclosureKind::Ai],
            text: texts.closing.to_owned(),
        };
        let human = self.staffed.as_deref().map(|number| Sentence {
            kinds: vec![DisclosureKind::Human],
            text: filled(texts.human, &[("number", number)]),
        });
        std::iter::once(was).chain(human).collect()
    }
}

/// Each `{name}` becomes its value, once: a value that looks like one stays.
fn filled(text: &str, values: &[(&str, &str)]) -> String {
    let mut whole = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('{') {
        whole.push_str(before);
        let Some((name, after)) = after.split_once('}') else {
            whole.push('{');
            rest = after;
            continue;
        };
        match values.iter().find(|(known, _)| *known == name) {
            Some((_, value)) => {
                // "Acme Inc." ends with its own full stop.
                let value = if after.starts_with('.') {
                    value.trim_end_matches('.')
                } else {
                    value
                };
                whole.push_str(value);
            }
            None => {
                let _ = write!(whole, "{{{name}}}");
            }
        }
        rest = after;
    }
    whole.push_str(rest);
    whole
}

/// On one line.
fn plain(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn ended(text: &str) -> String {
    if text.ends_with(['.', '!', '?']) {
        text.to_owned()
    } else {
        format!("{text}.")
    }
}

/// Digit by digit, or a voice takes it for billions.
fn spelled(number: &E164) -> String {
    let number = number.to_string();
    let digits: Vec<String> = number.trim_start_matches('+').chars().map(String::from).collect();
    format!("+{}", digits.join(" "))
}

fn key_name<'a>(texts: &'static Texts, key: &'a str) -> &'a str {
    match key {
        "*" => texts.star,
        "#" => texts.hash,
        key => key,
    }
}

#[cfg(test)]
#[path = "disclosure_tests.rs"]
mod tests;
