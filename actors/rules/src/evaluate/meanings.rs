//! What common codes mean, whatever their description says.
use crate::conversation::phrases;
use std::{collections::HashMap, sync::LazyLock};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Meaning {
    Interested,
    NotInterested,
    Callback,
    WrongNumber,
    DoNotCall,
    Appointment,
    Sale,
    Voicemail,
    NoAnswer,
    HungUp,
    Transferred,
    Neutral,
}

use Meaning::*;

/// Codes and labels, their words without what parts them.
const NAMES: [(Meaning, &str); 12] = [
    (
        Interested,
        "interested hotlead warmlead positive qualified interessiert",
    ),
    (
        NotInterested,
        "notinterested nointerest uninterested declined refused rejected negative keininteresse",
    ),
    (
        Callback,
        "callback callbacklater calllater callagain followup reschedule rescheduled busy ruckruf",
    ),
    (WrongNumber, "wrongnumber wrongperson wrongcontact falschenummer"),
    (
        DoNotCall,
        "donotcall dnc optout optedout unsubscribe unsubscribed removeme",
    ),
    (
        Appointment,
        "appointment appointmentbooked booked bookedappointment booking meetingbooked meeting scheduled demo demobooked termin",
    ),
    (
        Sale,
        "sale sold bought purchase purchased order ordered closed won closedwon converted",
    ),
    (
        Voicemail,
        "voicemail answeringmachine machine mailbox leftmessage leftvoicemail",
    ),
    (
        NoAnswer,
        "noanswer unanswered unreachable notreached noresponse silence",
    ),
    (HungUp, "hungup hangup disconnected callerhungup dropped"),
    (Transferred, "transferred transfer handedover escalated human handoff"),
    (
        Neutral,
        "other unknown neutral none undecided unclear misc unclassified na sonstiges completed",
    ),
];

/// `[meaning]`, then a phrase per line.
const PHRASES: &str = include_str!("meanings.txt");

static SAID_FOR: LazyLock<HashMap<Meaning, Vec<&'static str>>> = LazyLock::new(|| {
    let mut phrases: HashMap<Meaning, Vec<&'static str>> = HashMap::new();
    let mut meaning = Neutral;
    for line in PHRASES
        .lines()
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
    {
        match line.strip_prefix('[').and_then(|line| line.strip_suffix(']')) {
            Some(name) => meaning = of(name).unwrap_or(Neutral),
            None => phrases.entry(meaning).or_default().push(line),
        }
    }
    phrases
});

/// Above every shared word: these were said in so many words. What binds by law comes first.
const SAID: u32 = 40;
const FIRM: u32 = 50;
const LAW: u32 = 100;
const SILENCE: u32 = 30;

/// The meaning of a code or a label, if it is a common one.
pub fn of(name: &str) -> Option<Meaning> {
    let plain = phrases::words(&name.replace(['_', '-'], " ")).concat();
    let known = |names: &str| names.split(' ').any(|name| name == plain);
    NAMES
        .iter()
        .find(|(_, names)| known(names))
        .map(|(meaning, _)| *meaning)
}

/// Whether a code stands for "nothing in particular".
pub fn is_neutral(code: &str) -> bool {
    of(code) == Some(Neutral)
}

/// What a turn of the callee means.
pub fn heard(text: &str, language: &str) -> Vec<Meaning> {
    let plain = format!(" {} ", phrases::words(text).join(" "));
    let said = |phrases: &[&str]| phrases.iter().any(|phrase| plain.contains(&format!(" {phrase} ")));
    let mut meanings: Vec<Meaning> = SAID_FOR
        .iter()
        .filter(|(_, phrases)| said(phrases))
        .map(|(meaning, _)| *meaning)
        .collect();
    if phrases::wants_human(text, language) {
        meanings.push(Transferred);
    }
    if phrases::is_opt_out(text, language, &[]) {
        // Somebody who wants no call at all wants none another time.
        meanings.retain(|meaning| !matches!(meaning, Callback | Interested));
        meanings.extend([DoNotCall, NotInterested]);
    }
    if meanings.contains(&NotInterested) {
        // "Not interested" says "interested" too.
        meanings.retain(|meaning| !matches!(meaning, Interested | Appointment));
    }
    meanings
}

impl Meaning {
    /// How much a talk speaks for it, and the turn that does. `heard`: the turns of the callee, by place, and what they mean.
    pub fn weigh(self, heard: &[(usize, Vec<Meaning>)], is_silent: bool) -> (u32, Option<usize>) {
        if is_silent {
            return (if self == NoAnswer { SILENCE } else { 0 }, None);
        }
        let weight = match self {
            DoNotCall => LAW,
            WrongNumber | Voicemail | Sale | Appointment => FIRM,
            Interested | NotInterested | Callback | NoAnswer | HungUp | Transferred | Neutral => SAID,
        };
        // What came later counts more: people change their minds.
        let last = heard.iter().rev().find(|(_, meanings)| meanings.contains(&self));
        last.map_or((0, None), |(at, _)| {
            (weight + u32::try_from(*at).unwrap_or(0).min(20), Some(*at))
        })
    }
}
