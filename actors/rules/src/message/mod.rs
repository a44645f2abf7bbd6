//! What SMS and e-mails have in common: their life, what keeps one from being handed over, and what its faults mean.
pub mod machine;
pub mod outgoing;

/// All words of an e-mail, as their digest is made: subject, text and HTML as they were ordered, parted by line feeds; empty, where there
/// is none. What is put in or under them when it is made stands elsewhere: its link follows from its id, who sells from the facts.
pub fn words_of_mail(subject: &str, text: Option<&str>, html: Option<&str>) -> String {
    [subject, text.unwrap_or_default(), html.unwrap_or_default()].join("\n")
}

/// Characters of the longest SMS.
pub const MAX_SMS: usize = 1_600;

/// The lines of an address, as they are put into a message.
pub fn lines_of(address: &str) -> Vec<String> {
    let lines = address.lines().map(str::trim).filter(|line| !line.is_empty());
    lines.map(str::to_owned).collect()
}

/// Do these lines stand in a message already, in their order, whatever is between them? Not as parts of longer words.
pub fn are_said(words: &str, lines: impl IntoIterator<Item = impl AsRef<str>>) -> bool {
    let mut rest = words;
    for line in lines {
        match behind(rest, line.as_ref()) {
            Some(after) => rest = after,
            None => return false,
        }
    }
    true
}

/// What follows the first place where that line stands by itself.
fn behind<'a>(words: &'a str, line: &str) -> Option<&'a str> {
    let is_one_word = |ends: Option<char>, begins: Option<char>| {
        let both = ends.zip(begins);
        both.is_some_and(|(ends, begins)| ends.is_alphanumeric() && begins.is_alphanumeric())
    };
    words.match_indices(line).find_map(|(at, _)| {
        let (before, found) = words.split_at(at);
        let after = found.strip_prefix(line)?;
        let is_part = is_one_word(before.chars().next_back(), line.chars().next())
            || is_one_word(line.chars().next_back(), after.chars().next());
        (!is_part).then_some(after)
    })
}

/// The code of a message that waits again because its hours were over, or the law no longer allowed it, when it was to be handed over.
pub const TOO_LATE: &str = "too_late";

/// The code of one that waits again because it was not known whether the intent to send it stood.
pub const UNDECIDED: &str = "not_decided_in_time";

/// The code of one that could not be made.
pub const INVALID_MESSAGE: &str = "invalid_message";

/// Failures after which nobody is written to again: it may have arrived, or never will, or is not wanted.
pub fn is_final(code: &str) -> bool {
    const FINAL: [&str; 7] = [
        "unknown_outcome",
        "invalid_number",
        "recipient_opted_out",
        "recipient_on_dnc",
        "compliance_blocked",
        "canceled",
        INVALID_MESSAGE,
    ];
    FINAL.contains(&code)
}

/// Why it is not sent at all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MessageRejectReason {
    /// The recipient is on the do-not-call list.
    Dnc,
    /// There is no provider any more.
    NotConfigured,
    /// Its campaign was canceled, or has ended.
    CampaignOver,
    /// Its campaign's hours are over.
    TooLate,
    /// A rule of the law does not allow it.
    Law,
    /// The number that it was to come from has been claimed for live use by another workspace.
    Sender,
}

/// Why it is not sent now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Block {
    /// The prepaid credits do not cover it.
    Credits,
    /// The operator has suspended the workspace.
    Suspension,
    /// Its campaign is paused.
    Pause,
    /// A rule of the law does not allow it yet.
    Law,
}

/// A failure, for the message's `error`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    pub code: &'static str,
    pub message: String,
}

impl Fault {
    pub fn new(code: &'static str, message: impl Into<String>) -> Self {
        let message: String = message.into();
        Fault {
            code,
            message: message.chars().filter(|char| !char.is_control()).take(500).collect(),
        }
    }
}

/// The code of that failure; a report may still correct it.
pub const UNKNOWN_OUTCOME: &str = "unknown_outcome";

/// The recipient has told the provider to let nothing through.
pub const OPTED_OUT: &str = "recipient_opted_out";
