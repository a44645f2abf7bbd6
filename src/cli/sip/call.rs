//! The call of `callboard sip check --call`: whether it may be placed, and what became of it, in words.
use crate::{error::CannotStart, settings::Settings};
use actors::{
    reach,
    switchboard::trial::{Before, Outcome, RINGS_FOR, STOPS_WITHIN, Trial},
};
use adapters::{
    outbound::Outbound,
    recording::voice::Speaker,
    sound::Pcm,
    trunk::{advice, ping::Pong},
};
use entities::{
    db::Db,
    session::Quality,
    sip_trunk::Model,
    tenant,
    values::{Country, E164},
};
use media::answering::Verdict;
use rules::{
    delivery::failure::Failure,
    session::{
        command::Refusal,
        sip_answer::SipAnswer,
        sip_outcome::{names_a_limit, outcome},
    },
};
use sip::digest::Credentials;

type Judgement = (bool, String, Option<&'static str>);

/// What whoever picks up hears.
const WORDS: &str = "This is a test call from Callboard. Goodbye.";
const LANGUAGE: &str = "en";

/// The call, if it may be placed.
pub(super) async fn plan(
    (settings, db): (&Settings, &Db),
    trunk: &Model,
    (from, to): (Option<String>, String),
    (outbound, credentials): (Outbound, Option<Credentials>),
) -> Result<Trial, CannotStart> {
    let Some(options) = settings.sip()? else {
        return Err(CannotStart(
            "--call: set `sip_bind` (CALLBOARD_SIP_BIND) first, and the ports for sound: without them no call is placed".into(),
        ));
    };
    let home = tenant::country(&db.read, trunk.tenant_id).await?;
    let to = number("--call", &to, home)?;
    let from = from.map(|from| number("--from", &from, home)).transpose()?;
    let from = reach::check_trial(&db.read, &settings.limits()?, trunk, from, &to).await?;
    let voice = settings.voice()?;
    let words = voice.speak_live(WORDS, LANGUAGE, Speaker::Agent).await;
    Ok(Trial {
        options,
        outbound,
        trunk: trunk.clone(),
        credentials,
        home,
        from,
        to,
        words: Pcm::new(voice.rate(), words),
    })
}

fn number(option: &str, text: &str, home: Country) -> Result<E164, CannotStart> {
    E164::parse(text, home).map_err(|why| CannotStart(format!("{option}: {why}")))
}

/// Can anything be sent there? An OPTIONS that nobody answers says nothing of calls.
pub(super) fn is_reached(outcome: &Result<Pong, Failure>) -> bool {
    match outcome {
        Ok(_) | Err(Failure::Timeout | Failure::BadAnswer(_)) => true,
        Err(Failure::BlockedTarget(_) | Failure::Dns(_) | Failure::Connect(_) | Failure::Tls(_)) => false,
    }
}

/// Is it well, what is said of it, and what is to be done?
pub(super) fn judged(became: &Outcome, has_password: bool) -> Judgement {
    match became {
        Outcome::PickedUp {
            after,
            by,
            sound,
            they_hung_up,
        } => {
            let end = if *they_hung_up { "; they hung up" } else { "" };
            let said = format!(
                "picked up after {} ms by {}; {}{end}",
                after.as_millis(),
                who(*by),
                heard(*sound)
            );
            // In less than a second nobody can tell whether any comes.
            let is_well = sound.is_some() || *they_hung_up && by.is_none();
            (is_well, said, (!is_well).then_some(NO_SOUND))
        }
        Outcome::Unusable(why) => (
            false,
            format!("picked up, and its sound cannot be used: {why}"),
            Some("check `codecs` and `srtp`, and what the peer offers"),
        ),
        Outcome::Refused { answer, rang } => refused(answer, *rang, has_password),
        Outcome::RangOut { rang: true } => (
            true,
            format!("nobody picked up within {} s", RINGS_FOR.as_secs()),
            Some("the trunk works; the number rings"),
        ),
        Outcome::RangOut { rang: false } => (
            false,
            format!(
                "the peer took the call, and nothing rang within {} s",
                RINGS_FOR.as_secs()
            ),
            Some("the peer finds no way to the number: ask whoever runs it; `number_format` may be another"),
        ),
        Outcome::NoAnswer => (
            false,
            "no answer to the call".into(),
            Some(
                "the peer may not know our address and drop calls from it (enter it at the carrier), take calls at another \
                 address or `transport`, or a firewall drops them",
            ),
        ),
        Outcome::NotSent(why) => (
            false,
            format!("nothing could be sent: {why}"),
            Some("nobody listens there: check the port and `transport`, and a firewall between"),
        ),
        Outcome::Stopped { before, is_over } => (false, stopped(*before, *is_over), None),
    }
}

fn stopped(before: Before, is_over: bool) -> String {
    let (what, still) = match before {
        Before::Placed => return "stopped before it was placed".into(),
        Before::PickedUp => ("stopped before anybody picked up: cancelled", "the phone may ring on"),
        Before::HungUp => ("stopped after the pick-up: hung up", "the call may stand"),
    };
    match is_over {
        true => what.into(),
        false => format!(
            "{what}, which the peer did not confirm within {} s: {still} until it gives up",
            STOPS_WITHIN.as_secs()
        ),
    }
}

const NO_SOUND: &str = "their sound does not arrive: open CALLBOARD_RTP_PORTS (UDP) in the firewall, set CALLBOARD_SIP_ADDRESS behind a \
                        NAT, and switch off SIP ALG in the router; or they sent none";

fn refused(answer: &SipAnswer, rang: bool, has_password: bool) -> Judgement {
    let refusal = outcome(answer, rang).refusal;
    // It came through, to whoever did not want it.
    let is_well = matches!(refusal, Refusal::Busy | Refusal::NoAnswer | Refusal::Declined);
    let advice = match refusal {
        // What the telephone network says is nearer than the peer's code.
        Refusal::Busy => advice::of_call(486, has_password, false),
        Refusal::NoAnswer => advice::of_call(480, has_password, false),
        Refusal::InvalidNumber(_) => advice::of_call(404, has_password, false),
        Refusal::Blocked(_) => advice::of_call(608, has_password, false),
        Refusal::Declined
        | Refusal::Rejected(_)
        | Refusal::Unreachable(_)
        | Refusal::Congested
        | Refusal::NotPlaced => advice::of_call(answer.code, has_password, names_a_limit(&answer.reason)),
    };
    let rings = if rang { "rang, then " } else { "" };
    (is_well, format!("{rings}{answer}"), Some(advice))
}

fn who(by: Option<Verdict>) -> &'static str {
    match by {
        Some(Verdict::Human) => "a person",
        Some(Verdict::Machine) => "a machine",
        Some(Verdict::Fax) => "a fax machine",
        Some(Verdict::Unknown) => "somebody or something that said nothing clear",
        None => "somebody, too briefly to tell who",
    }
}

fn heard(sound: Option<Quality>) -> String {
    match sound {
        Some(quality) => format!("their sound came ({quality})"),
        None => "no sound came".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn picked_up(by: Option<Verdict>, sound: Option<Quality>) -> Outcome {
        Outcome::PickedUp {
            after: Duration::from_millis(2_140),
            by,
            sound,
            they_hung_up: false,
        }
    }

    fn refused_with(code: u16, reason: &str) -> Outcome {
        let reason = reason.to_owned();
        let answer = SipAnswer {
            code,
            reason,
            ..SipAnswer::default()
        };
        Outcome::Refused { answer, rang: true }
    }

    #[test]
    #[rustfmt::skip]
    fn what_became_of_the_call_is_said_with_what_it_means() {
        let clear = Quality::of((0, 400), 2, None);
        for (became, is_well, said, advice) in [
            (picked_up(Some(Verdict::Human), Some(clear)), true, "picked up after 2140 ms by a person; their sound came (loss 0 %, jitter 2 ms)", ""),
            (picked_up(Some(Verdict::Unknown), None), false, "picked up after 2140 ms by somebody or something that said nothing clear; no sound came", "CALLBOARD_RTP_PORTS"),
            (refused_with(486, "Busy Here"), true, "rang, then 486 Busy Here", "the number is busy"),
            (refused_with(603, "Decline"), true, "rang, then 603 Decline", "turned down"),
            (refused_with(404, "Not Found"), false, "rang, then 404 Not Found", "`number_format`"),
            (refused_with(407, "Login"), false, "rang, then 407 Login", "wants a password"),
            (Outcome::RangOut { rang: true }, true, "nobody picked up within 30 s", "the trunk works"),
            (Outcome::RangOut { rang: false }, false, "the peer took the call, and nothing rang within 30 s", "no way to the number"),
            (Outcome::NoAnswer, false, "no answer to the call", "may not know our address"),
            (Outcome::Stopped { before: Before::PickedUp, is_over: true }, false, "stopped before anybody picked up: cancelled", ""),
            (Outcome::Stopped { before: Before::HungUp, is_over: false }, false, "stopped after the pick-up: hung up, which the peer did not confirm within 2 s: the call may stand until it gives up", ""),
        ] {
            let found = judged(&became, false);
            assert_eq!((found.0, found.1.as_str()), (is_well, said));
            let told = found.2.unwrap_or_default();
            assert_eq!(told.is_empty(), advice.is_empty(), "{said}: {told}");
            assert!(told.contains(advice), "{said}: {told}");
        }
    }
}
