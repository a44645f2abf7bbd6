//! What a consent is good for.
use crate::law::facts::ConsentFact;
use entities::{
    consent::{Model, seller_key},
    dnc::DncChannel,
    ids::ConsentId,
    law::{ConsentTier, Purpose},
    values::Moment,
};
use std::cmp::Reverse;

/// What somebody is to be reached for.
#[derive(Clone, Copy, Debug)]
pub struct Wanted<'a> {
    /// None: nobody knows for whom, and no consent covers that.
    pub seller: Option<&'a str>,
    pub purpose: Purpose,
    pub channel: DncChannel,
    /// The one that was named: no other counts.
    pub named: Option<ConsentId>,
    /// The contract that is being fulfilled, where one was named: a consent by another contract does not count.
    pub contract_ref: Option<&'a str>,
    /// By the clock that shows more.
    pub at: Moment,
}

/// Those that cover it, best first: to machines' voices before others for calls, then the stronger one, then the newer one. Which of them a
/// law takes is its own question.
pub fn covering<'a>(consents: &'a [Model], wanted: &Wanted<'_>) -> Vec<&'a Model> {
    let Some(seller) = wanted.seller.map(seller_key) else {
        return Vec::new();
    };
    let covers = |consent: &&Model| {
        consent.seller_key == seller
            && consent.purposes.0.contains(&wanted.purpose)
            && consent.stands(wanted.channel, wanted.at)
            && consent.given_at <= wanted.at
            && wanted.named.is_none_or(|named| consent.id == named)
            && (consent.tier != ConsentTier::ExistingContract
                || wanted
                    .contract_ref
                    .is_none_or(|named| consent.contract_ref.as_deref() == Some(named)))
    };
    let mut found: Vec<&Model> = consents.iter().filter(covers).collect();
    let speaks = wanted.channel == DncChannel::Phone;
    found.sort_by_key(|consent| {
        let is_for_machines = speaks && consent.covers_automated_voice;
        Reverse((is_for_machines, strength(consent.tier), consent.given_at, consent.id))
    });
    found
}

/// The best of those that cover it.
pub fn best<'a>(consents: &'a [Model], wanted: &Wanted<'_>) -> Option<&'a Model> {
    covering(consents, wanted).first().copied()
}

fn strength(tier: ConsentTier) -> u8 {
    match tier {
        ConsentTier::ExistingContract => 0,
        ConsentTier::Express => 1,
        ConsentTier::ExpressWritten => 2,
        ConsentTier::OptInDouble => 3,
    }
}

/// As a law's rules are asked with it, and as the record of an attempt keeps it.
pub fn fact(consent: &Model) -> ConsentFact {
    ConsentFact {
        id: consent.id,
        tier: consent.tier,
        seller: consent.seller.clone(),
        purposes: consent.purposes.0.clone(),
        channels: consent.standing().0,
        covers_automated_voice: consent.covers_automated_voice,
        given_at: consent.given_at,
        expires_at: consent.expires_at,
        contract_ref: consent.contract_ref.clone(),
    }
}

#[cfg(test)]
#[path = "standing_tests.rs"]
mod tests;
