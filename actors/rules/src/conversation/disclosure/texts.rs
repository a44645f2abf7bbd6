//! The words of the service's own sentences, in nine languages.
mod de;
mod en;
mod es;
mod fr;
mod it;
mod nl;
mod pl;
mod pt;
mod tr;

use entities::law::Purpose;

/// `{name}`, `{subject}`, `{stop}`, `{key}`, `{number}` and `{address}` are filled in.
#[derive(Debug)]
pub struct Texts {
    /// How somebody says that it is enough, as the sentences tell.
    pub stop: &'static str,
    /// Others that mean it, and words that may stand beside: folded.
    pub stops: &'static [&'static str],
    pub polite: &'static [&'static str],
    /// Of a call that we make.
    pub calling_of_about: &'static str,
    pub calling_of: &'static str,
    pub calling_about: &'static str,
    pub calling: &'static str,
    /// Of one that comes in, and in a room.
    pub speaking_of: &'static str,
    pub speaking: &'static str,
    /// In a long talk.
    pub reminder_of: &'static str,
    pub reminder: &'static str,
    /// Who is asked; it follows `yes` or `no`.
    pub am_of: &'static str,
    pub am: &'static str,
    pub yes: &'static str,
    pub no: &'static str,
    pub short_of: &'static str,
    pub short: &'static str,
    /// Of a call that names no subject, in the order of [`Purpose`].
    pub purposes: [&'static str; 6],
    /// `offer_key` or `offer`, then `called` or, in a room, `contacted`.
    pub offer_key: &'static str,
    pub offer: &'static str,
    pub called: &'static str,
    pub contacted: &'static str,
    pub short_offer_key: &'static str,
    pub short_offer: &'static str,
    pub transcribed: &'static str,
    pub callback: &'static str,
    pub address: &'static str,
    pub cloned_voice: &'static str,
    /// At the end of a call, or of a message: what has spoken; then where people answer.
    pub closing: &'static str,
    pub human: &'static str,
    /// How to opt out, for whoever listens to a mailbox.
    pub mailbox: &'static str,
    /// Of a call that was abandoned; then `abandoned_key` or `abandoned_call`.
    pub abandoned: &'static str,
    pub abandoned_key: &'static str,
    pub abandoned_call: &'static str,
    /// The keys `*` and `#`.
    pub star: &'static str,
    pub hash: &'static str,
}

impl Texts {
    pub fn purpose(&self, purpose: Purpose) -> &'static str {
        let [marketing, service, debt, research, charity_political, emergency] = self.purposes;
        match purpose {
            Purpose::Marketing => marketing,
            Purpose::Service => service,
            // Whoever picks up need not be who owes it.
            Purpose::Debt => debt,
            Purpose::Research => research,
            Purpose::CharityPolitical => charity_political,
            Purpose::Emergency => emergency,
        }
    }
}

/// Of a BCP 47 language.
pub fn of(language: &str) -> Option<&'static Texts> {
    let subtag = language.split(['-', '_']).next().unwrap_or_default();
    let primary = subtag.trim().to_ascii_lowercase();
    ALL.iter().find(|(code, _)| *code == primary).map(|(_, texts)| texts)
}

/// Where there are none of a language.
pub fn english() -> &'static Texts {
    let [(_, english), ..] = &ALL;
    english
}

/// By language.
#[cfg(test)]
pub fn all() -> impl Iterator<Item = &'static (&'static str, Texts)> {
    ALL.iter()
}

static ALL: [(&str, Texts); 9] = [
    ("en", en::TEXTS),
    ("de", de::TEXTS),
    ("fr", fr::TEXTS),
    ("es", es::TEXTS),
    ("it", it::TEXTS),
    ("pt", pt::TEXTS),
    ("nl", nl::TEXTS),
    ("pl", pl::TEXTS),
    ("tr", tr::TEXTS),
];
