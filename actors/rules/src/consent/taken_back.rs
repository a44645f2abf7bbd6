//! What people have taken back of what they gave: nobody brings it back by recording it once more.
use entities::{
    Error, Result,
    consent::{Address, Model, Withdrawals},
    dnc::DncChannel,
    values::Moment,
};
use std::collections::{BTreeMap, HashMap};

/// Consents of one person to one seller that are looked through for what was taken back: unseen none of it is forgotten.
pub const MOST_TAKEN_BACK: usize = 10_000;

/// Who has given, and to whom, as sellers are compared.
pub type Given = (Address, String);

const HINT: &str =
    "the person has taken back since what they gave to this seller: only a consent that was given later is another one";

/// What was taken back by some people, from the sellers that were asked for.
#[derive(Clone, Debug, Default)]
pub struct TakenBack {
    /// When it was last taken back for each channel.
    last: HashMap<Given, BTreeMap<DncChannel, Moment>>,
    /// Consents that were looked at.
    seen: HashMap<Given, usize>,
}

impl TakenBack {
    /// Notes what was taken back of one consent. `false`: of that person and seller no more is looked at.
    pub fn note(&mut self, given: &Given, withdrawals: &Withdrawals) -> bool {
        let last = self.last.entry(given.clone()).or_default();
        for one in &withdrawals.0 {
            // The other channels are those of somebody with another number, or address.
            if is_reached(&given.0, one.channel) {
                let at = last.entry(one.channel).or_insert(one.at);
                *at = one.at.max(*at);
            }
        }
        let seen = self.seen.entry(given.clone()).or_default();
        *seen += 1;
        *seen < MOST_TAKEN_BACK
    }

    /// Errors: the person has taken a channel of it back, from the same seller, when it was given or later. Then it says nothing any more,
    /// however it is written down this time. Or there is more than is looked at.
    pub fn check(&self, row: &Model) -> Result<()> {
        let all: Vec<Given> = given(row).collect();
        let is_taken_back = |of: &Given| {
            let mut last = self.last.get(of).into_iter().flatten();
            last.any(|(channel, at)| row.channels.contain(*channel) && row.given_at <= *at)
        };
        if all.iter().any(is_taken_back) {
            return Err(revoked("be recorded"));
        }
        let is_full = |of: &Given| self.seen.get(of).is_some_and(|seen| *seen >= MOST_TAKEN_BACK);
        match all.iter().any(is_full) {
            false => Ok(()),
            true => Err(Error::PlanLimit(format!(
                "this person has taken back {MOST_TAKEN_BACK} consents to this seller or more, too many to look through for one that is \
                 new: delete those that the law no longer requires you to keep"
            ))),
        }
    }
}

/// What was taken back is not brought back by whoever enters it again.
pub fn check_not_revoked(known: &Model) -> Result<()> {
    match known.revoked_at {
        None => Ok(()),
        Some(_) => Err(revoked("be recorded again")),
    }
}

fn revoked(command: &'static str) -> Error {
    Error::InvalidState {
        kind: "consent",
        state: "revoked",
        command,
        hint: HINT,
    }
}

/// Whose a consent is.
pub fn people(row: &Model) -> impl Iterator<Item = Address> {
    let number = row.phone_number.clone().map(Address::Number);
    number.into_iter().chain(row.email.clone().map(Address::Email))
}

/// The same, with whom it was given to.
pub fn given(row: &Model) -> impl Iterator<Item = Given> {
    people(row).map(move |person| (person, row.seller_key.clone()))
}

fn is_reached(person: &Address, channel: DncChannel) -> bool {
    match channel {
        DncChannel::Phone | DncChannel::Sms => matches!(person, Address::Number(_)),
        DncChannel::Email => matches!(person, Address::Email(_)),
    }
}
