//! Who is written to, and how often: what is promised to the person who reads it.
use super::{
    books::{Message, Send},
    check::Evidence,
    dialing::ran_at,
    facts::{Facts, by},
};
use std::collections::HashMap;

/// I7, of messages: one request for an intent at most, and none without; a message is handed over again only when the provider
/// has said each time before that it did not take it. Its intents are numbered as they came, and go where it goes. A contact
/// gets no message while another is on its way, and no more of them than attempts.
pub fn sent_at_most_once(_: &Evidence, facts: &Facts<'_>) -> Vec<String> {
    let mut found = Vec::new();
    let sends = by(&facts.sends, |send| Some(send.message));
    for message in &facts.messages {
        intents(
            message,
            sends.get(message.id).map_or(&[][..], Vec::as_slice),
            &mut found,
        );
    }
    // A code that proves a number is a message of which nothing is kept but its intent.
    for send in facts.sends.iter().filter(|send| send.campaign.is_some()) {
        if facts.message(send.message).is_none() {
            found.push(format!("an intent of message {}, which does not exist", send.message));
        }
    }
    for (message, asked) in by(&facts.asked, |asked| Some(asked.message)) {
        let intents = sends.get(message).map_or(0, Vec::len);
        if asked.len() > intents {
            let requests = asked.len();
            found.push(format!(
                "message {message} was handed over {requests} times by {intents} intents"
            ));
        }
        let (_, before) = asked.split_last().unwrap_or((&asked[0], &[]));
        if before.iter().any(|asked| !asked.not_taken) {
            found.push(format!(
                "message {message} was handed over again, and may have been taken"
            ));
        }
    }
    for (contact, messages) in by(&facts.messages, |message| message.contact) {
        let most = facts.contact(contact).map_or(0, |contact| contact.max_attempts);
        let attempts = messages.len();
        if attempts > most {
            found.push(format!(
                "contact {contact} was written to {attempts} times, at most {most} are allowed"
            ));
        }
        if messages.iter().filter(|message| !message.is_over()).count() > 1 {
            found.push(format!("contact {contact} has two messages on their way"));
        }
    }
    found
}

fn intents(message: &Message<'_>, sends: &[&Send<'_>], found: &mut Vec<String>) {
    let id = message.id;
    let mut in_order = sends.to_vec();
    in_order.sort_by_key(|send| send.seq);
    let numbers: Vec<_> = in_order.iter().map(|send| send.n).collect();
    if numbers != (1..=message.attempts).collect::<Vec<_>>() {
        let attempts = message.attempts;
        found.push(format!(
            "message {id} has {attempts} attempts, and the intents {numbers:?}"
        ));
    }
    let goes = (message.tenant, message.env, message.address, message.campaign);
    if sends
        .iter()
        .any(|send| (send.tenant, send.env, send.address, send.campaign) != goes)
    {
        found.push(format!("message {id}: an intent goes to somebody else"));
    }
}

/// I9: "DNC (always): no SMS or mail with intent_seq s to n of tenant t while dnc(t,n).added_seq < s <= removed_seq".
pub fn do_not_write(_: &Evidence, facts: &Facts<'_>) -> Vec<String> {
    let numbers = by(&facts.dnc, |entry| {
        Some((entry.tenant, entry.env, entry.number.filter(|_| entry.sms)?))
    });
    let mails = by(&facts.dnc, |entry| Some((entry.tenant, entry.env, entry.email?)));
    let mut found = Vec::new();
    for send in &facts.sends {
        let list = if send.channel == "sms" { &numbers } else { &mails };
        let entries = list.get(&(send.tenant, send.env, send.address)).into_iter().flatten();
        for entry in entries {
            let stood = entry.added_seq < send.seq && entry.removed_seq.is_none_or(|removed| send.seq <= removed);
            if stood {
                found.push(format!(
                    "message {}, intent {}: {} was on the do-not-call list since {}",
                    send.message, send.seq, send.address, entry.added_seq
                ));
            }
        }
    }
    found
}

/// I21, of messages: a campaign writes to nobody while it does not run.
pub fn pauses_are_kept(_: &Evidence, facts: &Facts<'_>) -> Vec<String> {
    let campaigns: HashMap<&str, _> = facts.campaigns.iter().map(|campaign| (campaign.id, campaign)).collect();
    let mut found = Vec::new();
    for send in &facts.sends {
        let Some(campaign) = send.campaign else { continue };
        if !campaigns
            .get(campaign)
            .is_some_and(|campaign| ran_at(&campaign.moves, send.seq))
        {
            let (message, n, seq) = (send.message, send.n, send.seq);
            found.push(format!(
                "message {message}, intent {n} at {seq}: its campaign {campaign} did not run"
            ));
        }
    }
    found
}

/// How long a message may be overdue, in milliseconds.
const SLACK: i64 = 60_000;

/// I19, of messages: what is not over has a time at which it is looked at, and that has not passed.
pub fn no_message_is_stuck(evidence: &Evidence, facts: &Facts<'_>) -> Vec<String> {
    if !evidence.settled {
        return Vec::new();
    }
    let mut found = Vec::new();
    for message in facts.messages.iter().filter(|message| !message.is_over()) {
        let (id, phase) = (message.id, message.phase);
        match message.wake_at {
            None => found.push(format!("message {id} is {phase}, and nothing is to be done about it")),
            Some(at) if evidence.taken_at.is_some_and(|now| at + SLACK < now) => {
                found.push(format!("message {id} is {phase}, and long overdue"));
            }
            Some(_) => {}
        }
    }
    found
}
