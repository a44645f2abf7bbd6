//! STOP, START and HELP: what a text that comes in asks of us. Doubt goes against us: who seems to want no more gets no more.
//!
//! STOP is heard in any wording, sentence by sentence, in whichever language: [`phrases::is_stop`] has the words, those that
//! carriers name among them. START and HELP are exact. Source: CTIA Messaging Principles (STOP, STOPALL, UNSUBSCRIBE, CANCEL,
//! END, QUIT; START, YES, UNSTOP; HELP, INFO), and FCC 47 CFR 64.1200(a)(10) ("stop", "quit", "end", "revoke", "opt out",
//! "cancel", "unsubscribe", and every reasonable wording).
use crate::conversation::phrases;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wish {
    /// Nothing more of us.
    Stop,
    /// To hear of us again.
    Start,
    Help,
}

/// Whole texts.
const START: [&str; 5] = ["start", "yes", "unstop", "opt in", "optin"];
const HELP: [&str; 2] = ["help", "info"];

/// A text is looked at no further: the longest that a phone can send.
const MAX_CHARS: usize = 1600;

/// What the text asks for, if it asks for one of these.
pub fn wish(text: &str) -> Option<Wish> {
    let text: String = text.chars().take(MAX_CHARS).collect();
    let whole = phrases::words(&text).join(" ");
    if START.contains(&whole.as_str()) {
        return Some(Wish::Start);
    }
    if HELP.contains(&whole.as_str()) {
        return Some(Wish::Help);
    }
    phrases::is_stop(&text).then_some(Wish::Stop)
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
            "please \"STOP\"",
            "I said \"stop\"!",
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
            "he wrote \"stop texting me\", and then he called",
            "Reply \"STOP\" to unsubscribe",
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
