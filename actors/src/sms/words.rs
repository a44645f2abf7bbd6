//! STOP, START and HELP: what a text that comes in asks of us. Doubt goes against us: who seems to want no more gets no more.
//!
//! First the exact words that carriers name, in any case and with any punctuation; then, for STOP alone, a second pass for
//! people who write as they speak: sentence by sentence, for a STOP may follow a question or come before its reasons. Source: CTIA Messaging Principles (STOP, STOPALL, UNSUBSCRIBE, CANCEL, END, QUIT; START,
//! YES, UNSTOP; HELP, INFO), and FCC 47 CFR 64.1200(a)(10) ("stop", "quit", "end", "revoke", "opt out", "cancel",
//! "unsubscribe", and every reasonable wording).
use crate::talk::phrases;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wish {
    /// Nothing more of us.
    Stop,
    /// To hear of us again.
    Start,
    Help,
}

/// A whole text.
const STOP: [&str; 12] = [
    "stop",
    "stopall",
    "stop all",
    "unsubscribe",
    "cancel",
    "end",
    "quit",
    "revoke",
    "optout",
    "opt out",
    "remove",
    "unsub",
];
/// The same in other languages.
const STOP_ELSEWHERE: [&str; 26] = [
    "stopp",
    "abmelden",
    "abbestellen",
    "arret",
    "arreter",
    "desabonner",
    "desinscrire",
    "alto",
    "baja",
    "cancelar",
    "parar",
    "basta",
    "cancella",
    "disiscrivi",
    "fermare",
    "sair",
    "remover",
    "afmelden",
    "stoppen",
    "uitschrijven",
    "wypisz",
    "rezygnuje",
    "koniec",
    "dur",
    "iptal",
    "durdur",
];
const START: [&str; 5] = ["start", "yes", "unstop", "opt in", "optin"];
const HELP: [&str; 2] = ["help", "info"];

/// What politeness adds to a STOP.
const FILLERS: [&str; 37] = [
    "please",
    "pls",
    "plz",
    "now",
    "thanks",
    "thank",
    "you",
    "thx",
    "ty",
    "ok",
    "okay",
    "hi",
    "hello",
    "hey",
    "sorry",
    "kindly",
    "just",
    "immediately",
    "sir",
    "madam",
    "me",
    "it",
    "this",
    "all",
    "bitte",
    "danke",
    "svp",
    "merci",
    "por",
    "favor",
    "gracias",
    "prego",
    "grazie",
    "obrigado",
    "alstublieft",
    "prosze",
    "lutfen",
];
/// The only ones that may stand among fillers: "yes please cancel me" is one, "the end" is none.
const STOP_AMONG_FILLERS: [&str; 9] = [
    "stop",
    "stopall",
    "unsubscribe",
    "cancel",
    "quit",
    "revoke",
    "optout",
    "stopp",
    "unsub",
];
/// Where nothing but these stand beside it, a STOP is meant ("can you stop all", "STOP 2 END", "stop i said"). Beside CANCEL or
/// QUIT they prove nothing: "can I cancel" may be about a visit.
const MORE_FILLERS: [&str; 20] = [
    "can", "could", "would", "i", "we", "said", "say", "mean", "meant", "want", "to", "2", "end", "reply", "text",
    "and", "so", "no", "again", "already",
];
const STOP_AMONG_MORE: [&str; 6] = ["stop", "stopall", "unsubscribe", "optout", "stopp", "unsub"];
/// Said in the middle of more.
const PHRASES: [&str; 39] = [
    "unsubscribe me",
    "want to unsubscribe",
    "like to unsubscribe",
    "wish to unsubscribe",
    "please unsubscribe",
    "opt me out",
    "opt out",
    "want out",
    "remove me",
    "remove my number",
    "delete my number",
    "take me off",
    "take my number off",
    "stop texting",
    "stop messaging",
    "stop sending",
    "stop contacting",
    "stop writing",
    "stop bothering",
    "stop harassing",
    "stop spamming",
    "stop the messages",
    "stop the texts",
    "stop these messages",
    "stop these texts",
    "stop all messages",
    "stop this spam",
    "no more texts",
    "no more messages",
    "no more sms",
    "dont text",
    "do not text",
    "dont message",
    "do not message",
    "dont contact",
    "do not contact",
    "leave me alone",
    "lose my number",
    "revoke my consent",
];
/// Before a phrase these turn it around: "please don't stop texting me".
const NEGATIONS: [&str; 9] = [
    "dont", "not", "never", "didnt", "cant", "cannot", "wont", "wouldnt", "shouldnt",
];
/// The languages whose spoken opt-outs count as well.
const LANGUAGES: [&str; 9] = ["en", "de", "fr", "es", "it", "pt", "nl", "pl", "tr"];
/// A text is looked at no further: the longest that a phone can send.
const MAX_CHARS: usize = 1600;

/// What the text asks for, if it asks for one of these.
pub fn wish(text: &str) -> Option<Wish> {
    let text: String = text.chars().take(MAX_CHARS).collect();
    let words = phrases::words(&text);
    let whole = words.join(" ");
    let is = |list: &[&str]| list.contains(&whole.as_str());
    if is(&STOP) || is(&STOP_ELSEWHERE) {
        return Some(Wish::Stop);
    }
    if is(&START) {
        return Some(Wish::Start);
    }
    if is(&HELP) {
        return Some(Wish::Help);
    }
    let is_stop = is_polite_stop(&words)
        || has_phrase(&words)
        || sentences(&text).any(|sentence| is_stop_sentence(&sentence))
        || is_spoken_opt_out(&text);
    is_stop.then_some(Wish::Stop)
}

/// The words of each sentence.
fn sentences(text: &str) -> impl Iterator<Item = Vec<String>> {
    const ENDS: [char; 11] = ['.', '!', '?', '…', ';', '\n', '\r', '。', '！', '？', '¡'];
    text.split(ENDS).map(phrases::words).filter(|words| !words.is_empty())
}

/// Among other sentences: the exact word, or a STOP and what may stand beside it.
fn is_stop_sentence(words: &[String]) -> bool {
    let whole = words.join(" ");
    STOP.contains(&whole.as_str()) || STOP_ELSEWHERE.contains(&whole.as_str()) || is_spoken_stop(words)
}

fn is_spoken_stop(words: &[String]) -> bool {
    let is_stop = |word: &String| STOP_AMONG_MORE.contains(&word.as_str());
    let may_stand_beside = |word: &String| FILLERS.contains(&word.as_str()) || MORE_FILLERS.contains(&word.as_str());
    words.iter().any(is_stop) && words.iter().all(|word| is_stop(word) || may_stand_beside(word))
}

/// Nothing but a STOP and politeness.
fn is_polite_stop(words: &[String]) -> bool {
    let mut rest = words.iter().filter(|word| !FILLERS.contains(&word.as_str())).peekable();
    rest.peek().is_some() && rest.all(|word| STOP_AMONG_FILLERS.contains(&word.as_str()))
}

fn has_phrase(words: &[String]) -> bool {
    PHRASES.iter().any(|phrase| {
        let phrase: Vec<&str> = phrase.split(' ').collect();
        words.windows(phrase.len()).enumerate().any(|(at, window)| {
            let negated = words[at.saturating_sub(3)..at]
                .iter()
                .any(|word| NEGATIONS.contains(&word.as_str()));
            !negated && window.iter().zip(&phrase).all(|(word, wanted)| word == wanted)
        })
    })
}

/// "Don't call me again", as it would be heard in a call.
fn is_spoken_opt_out(text: &str) -> bool {
    LANGUAGES
        .iter()
        .any(|language| phrases::is_opt_out(text, language, &[]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_exact_words_in_any_dress() {
        for text in [
            "STOP",
            "stop",
            "Stop.",
            " stop! ",
            "\"STOP\"",
            "STOPALL",
            "Stop all",
            "UNSUBSCRIBE",
            "cancel",
            "END",
            "Quit",
            "REVOKE",
            "OPTOUT",
            "opt-out",
            "Opt out",
            "ARRÊT",
            "Stopp!",
            "baja",
            "ALTO",
        ] {
            assert_eq!(wish(text), Some(Wish::Stop), "{text}");
        }
        for text in ["START", "yes", "Unstop", "YES!"] {
            assert_eq!(wish(text), Some(Wish::Start), "{text}");
        }
        for text in ["HELP", "info", "Help?", "INFO."] {
            assert_eq!(wish(text), Some(Wish::Help), "{text}");
        }
    }

    #[test]
    fn as_people_write() {
        for text in [
            "stop please",
            "Please stop",
            "pls STOP now!!",
            "Stop. Stop. STOP",
            "please unsubscribe me",
            "Unsubscribe me from this",
            "I want to unsubscribe",
            "stop texting me",
            "Please stop sending me these",
            "take me off your list",
            "Remove me!",
            "remove my number",
            "opt me out",
            "No more texts please",
            "don't text me",
            "Do not contact me again",
            "leave me alone",
            "Don't call me again",
            "cancel please",
            "I would like to opt out",
            "Rufen Sie mich nicht mehr an",
            "STOP thank you",
            "who is this? STOP",
            "Who is this?\nstop",
            "I don't know you. Unsubscribe!",
            "wrong number. please stop",
            "stop please i said",
            "I said stop",
            "can you stop all",
            "could you please stop",
            "STOP 2 END",
            "stop to end",
            "I want you to stop",
            "Stop. I mean it",
            "STOP! I never signed up for this.",
            "No. Stop it now. Thanks",
            "Wer ist da? STOPP",
            "Who are you? Cancel.",
        ] {
            assert_eq!(wish(text), Some(Wish::Stop), "{text}");
        }
    }

    #[test]
    fn what_only_sounds_like_it() {
        for text in [
            "",
            "stop by at 5",
            "don't stop now",
            "do not stop",
            "we will stop at the shop",
            "Hello! We will stop at the shop. See you",
            "Is it far? Stop by at 5.",
            "Where are you? At the bus stop.",
            "It is over. The end.",
            "Can I cancel?",
            "I can't make it. I want to cancel my visit.",
            "Great. Don't stop now. We like it",
            "Next stop? Rome",
            "non-stop to Paris. Ok",
            "I'll stop by tomorrow",
            "can you stop at the shop?",
            "I can't stop laughing",
            "the bus stop is here",
            "the end of the month is fine",
            "In the end we will come",
            "quitting time is 5",
            "can I cancel my appointment on Friday?",
            "please don't stop texting me",
            "do not unsubscribe me",
            "I never want to unsubscribe me",
            "yes please",
            "Yes, at noon",
            "start at 9?",
            "help me find the door",
            "how do I get there",
            "send me the info please",
            "thanks",
            "ok",
            "👍",
        ] {
            assert_eq!(wish(text), None, "{text}");
        }
    }
}
