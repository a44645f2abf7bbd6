//! What the service says for the law in a live call: who speaks, over whoever talks over it; the way out; the truth. Proved from the
//! recording, by a recogniser that is neither ours nor told what comes, and from the record of the attempt.
use super::{
    exchange::has,
    stage::{CALLEE, OURS, Stage, end, merged},
};
use crate::{
    on_the_phone,
    world::{
        chat_server::{self, ChatServer},
        phone::{
            pause,
            pjsip::Pjsip,
            sound::{SENTENCE, Sound, YES},
        },
        real_speech::{RealSpeech, SELLER, SELLER_HEARD},
        realtime_server::{self, RealtimeServer, Turn},
        transcription_server::{self, TranscriptionServer},
    },
};
use adapters::sound::Pcm;
use entities::values::Moment;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    time::{SystemTime, UNIX_EPOCH},
};

const TOLL_FREE: &str = "+18005550199";
/// The agent's own first words, and others of the model's.
const FIRST: &str = "Wednesday at ten is free.";
const MORE: &str = "Friday at four is free.";
const CLAIM: &str = "I am a real person.";
const OFFER: &str = "Say stop or press 9 at any time and you will not be called again.";
const OFFER_HEARD: &str = "say stop or press nine at any time and you will not be called again";
const TRUTH: &str = "not a human being";
const ROBOT: &str = "Are you a robot?";

/// With the rules of calling as they come with the service.
fn under_the_law(stage: &mut Stage, voice: &str, more: &[(&'static str, &str)]) {
    // Where its voice is found.
    let path = std::env::var("PATH").unwrap();
    let law = [("CALLBOARD_LAW_FILE", ""), ("CALLBOARD_VOICE", voice), ("PATH", &path)];
    stage.restart_with(&[&law[..], more].concat());
}

/// All that a lawful call needs: a registered name, a person who has agreed, a number that answers, and an agent; answers the agent.
async fn line(stage: &Stage, telephone: &Pjsip, agent: Value) -> Value {
    let identity = json!({ "registered_name": SELLER, "callback_number": TOLL_FREE, "toll_free_number": TOLL_FREE });
    let patch = stage
        .api
        .client
        .patch(format!("{}/v1/compliance/identity", stage.api.url));
    let kept = patch.bearer_auth(&stage.api.key).json(&identity).send().await.unwrap();
    assert!(kept.status().is_success(), "{}", kept.text().await.unwrap());
    stage.api.post("/v1/consents", consent()).await;
    let trunk = stage.trunk(telephone.port, json!({})).await;
    let usual = json!({ "language": "en-US", "first_message": FIRST });
    let agent = stage.agent(merged(usual, agent)).await;
    stage.number(OURS, &trunk, json!({ "agent_id": agent["id"] })).await;
    agent
}

/// Given a minute ago.
fn consent() -> Value {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis();
    let given_at = Moment::from_millis(i64::try_from(now).unwrap() - 60_000).to_string();
    json!({
        "phone_number": CALLEE,
        "seller": SELLER,
        "channels": ["phone"],
        "purposes": ["marketing", "service"],
        "tier": "express_written",
        "covers_automated_voice": true,
        "method": "web form",
        "request_copy": format!("I agree to be called by {SELLER}, also with an artificial voice."),
        "not_a_condition_of_purchase": true,
        "given_at": given_at,
    })
}

fn recorded() -> Value {
    json!({ "enabled": true, "consent": "notice", "channels": "dual" })
}

/// Waits until the agent has said that so often, the last time perhaps not to its end.
const OPENING: &str = "This is the AI";

async fn has_said(stage: &Stage, id: &str, words: &str, times: usize) {
    let so = |transcript: &Value| said(transcript, words) >= times;
    stage.api.until(&format!("/v1/sessions/{id}/transcript.json"), so).await;
}

/// In how many turns of the agent the words stand.
fn said(transcript: &Value, words: &str) -> usize {
    let says_it = |turn: &&Value| {
        turn["role"] == "agent" && turn["content"].as_str().is_some_and(|content| content.contains(words))
    };
    let turns = transcript["turns"].as_array().into_iter().flatten();
    turns.filter(says_it).count()
}

async fn transcript(stage: &Stage, id: &str) -> String {
    stage
        .api
        .get(&format!("/v1/sessions/{id}/transcript.json"))
        .await
        .to_string()
}

/// What the recogniser hears of our side, each time that something is said.
async fn heard(stage: &Stage, speech: &RealSpeech, ended: &Value) -> Vec<String> {
    let [ours, _] = stage.recording(ended).await;
    speech.transcribe(&Pcm::new(ours.rate, ours.samples))
}

/// Nothing of it was said.
fn assert_unheard(heard: &str) {
    for words in [
        "real person",
        "silver river",
        "monday",
        "say hello",
        "technical problem",
    ] {
        assert!(!heard.contains(words), "{words}: {heard}");
    }
}

async fn proof(stage: &Stage, id: &str) -> Value {
    let proof = stage.api.get(&format!("/v1/compliance/attempts/{id}")).await;
    assert_eq!(proof["attempt"]["is_observed"], false, "the law binds it: {proof:#}");
    proof
}

/// What the row of that kind says.
fn record<'a>(proof: &'a Value, kind: &str) -> &'a Value {
    let rows = proof["records"].as_array().unwrap();
    let found = rows.iter().find(|row| row["kind"] == kind);
    &found.unwrap_or_else(|| panic!("no {kind}: {proof:#}"))["record"]
}

/// What was told of each disclosure: its kinds, and whether it was cut off.
fn told(outcome: &Value) -> Vec<(String, bool)> {
    let all = outcome["disclosures"]
        .as_array()
        .unwrap_or_else(|| panic!("{outcome:#}"));
    let kinds = |said: &Value| {
        let kinds = said["kinds"].as_array().unwrap().iter();
        kinds.map(|kind| kind.as_str().unwrap()).collect::<Vec<_>>().join(" ")
    };
    all.iter()
        .map(|said| (kinds(said), said["is_cut_off"] == true))
        .collect()
}

fn sha256(text: &str) -> String {
    Sha256::digest(text).iter().map(|byte| format!("{byte:02x}")).collect()
}

async fn is_listed(stage: &Stage) -> bool {
    let checked = stage
        .api
        .get(&format!("/v1/dnc/check?phone_number=%2B{}", &CALLEE[1..]))
        .await;
    checked["listed"] == true
}

/// Moments of the entries of that kind.
fn moments(timeline: &[Value], kind: &str) -> Vec<Moment> {
    let of_it = timeline.iter().filter(|entry| entry["kind"] == kind);
    of_it
        .map(|entry| Moment::parse(entry["at"].as_str().unwrap()).unwrap())
        .collect()
}

/// For want of an agent, or of its words in time.
fn assert_abandoned(ended: &Value) {
    let why = ended["abandoned"].as_str();
    assert!(
        why.is_some_and(|why| ["late_sound", "no_brain"].contains(&why)),
        "{ended}"
    );
}

/// The kinds of those that were heard to their end.
fn told_whole(outcome: &Value) -> Vec<String> {
    let all = told(outcome).into_iter().filter(|(_, is_cut_off)| !is_cut_off);
    all.map(|(kinds, _)| kinds).collect()
}

/// Else nobody would know that the recogniser hears what must not be said.
#[test]
fn what_must_not_be_said_would_be_understood() {
    let Some(speech) = RealSpeech::find() else { return };
    for (said, expected) in [
        (CLAIM, "i am a real person"),
        ("Monday at four is taken.", "monday at four is taken"),
        (
            "This is the AI assistant of Silver River Garden Furniture Company.",
            "silver river garden furniture company",
        ),
        (
            "I am sorry, there is a technical problem. Goodbye.",
            "there is a technical problem",
        ),
    ] {
        let heard = speech.transcribe(&speech.say(said)).join(" ");
        assert!(heard.contains(expected), "{said}: {heard}");
    }
}

on_the_phone! {
    /// L4. Somebody talks over the sentence that a machine speaks, for whom, and how to hear no more: it is said again, whole, and before
    /// the agent's own first word.
    async fn who_talks_over_it_hears_again_who_speaks(stage: &mut Stage) needs [Pjsip] {
        let Some(speech) = RealSpeech::find() else { return };
        under_the_law(stage, "espeak-ng", &[]);
        let says = stage.recorded("says.wav", &Sound::of_mu_law(SENTENCE).then(Sound::silence(1_000)));
        let mut telephone = stage.telephone(json!({}), json!({})).await;
        let agent = line(stage, &telephone, json!({ "recording": recorded() })).await;
        let id = stage.call(&agent, CALLEE, json!({ "purpose": "service" })).await;
        has_said(stage, &id, OPENING, 1).await;
        // Its name is not said yet.
        pause(1_200).await;
        telephone.tell(json!({ "do": "play", "file": says }));
        has_said(stage, &id, FIRST, 1).await;
        // All of that is heard.
        pause(4_000).await;
        stage.hang_up(&id).await;
        let ended = stage.ended(&id).await;
        assert_eq!(end(&ended), ("completed", "completed"), "{ended}");

        let heard = heard(stage, &speech, &ended).await;
        assert!(heard[0].starts_with("this is the a. i.") && !heard[0].contains("services"), "it was cut off: {heard:?}");
        let all = heard.join(" ");
        let again = format!("this is the a. i. assistant of {SELLER_HEARD} {OFFER_HEARD} this call is recorded wednesday at ten is free");
        assert!(all.ends_with(&again), "{heard:?}");
        assert_eq!(all.matches("wednesday").count(), 1, "{heard:?}");
        assert_unheard(&all);

        let proof = proof(stage, &id).await;
        let outcome = record(&proof, "outcome");
        let told = told(outcome);
        let opening = |is_cut_off| ("ai name opt_out".to_owned(), is_cut_off);
        let (before, last) = told.split_at(told.len() - 2);
        assert_eq!(last, [opening(false), ("recording".to_owned(), false)], "{outcome:#}");
        assert!(!before.is_empty() && before.iter().all(|said| *said == opening(true)), "{outcome:#}");
        let whole = &outcome["disclosures"][before.len()];
        assert_eq!(whole["text_sha256"], sha256(&format!("This is the AI assistant of {SELLER}. {OFFER}")));
        let [began, ended] = ["started_ms", "completed_ms"].map(|name| whole[name].as_i64().unwrap());
        assert!(ended - began > 5_000, "{whole}");
        assert!(outcome["first_words_ms"].as_i64().unwrap() >= ended, "{outcome:#}");
        let cut = &outcome["disclosures"][0];
        assert!(cut["completed_ms"].as_i64().unwrap() < began, "nobody is spoken over: {outcome:#}");
    }

    /// L3. The key that the sentence names, pressed in the middle of it.
    async fn who_presses_the_key_over_it_is_called_no_more(stage: &mut Stage) needs [Pjsip] {
        under_the_law(stage, "tones", &[]);
        let mut telephone = stage.telephone(json!({}), json!({})).await;
        let agent = line(stage, &telephone, json!({})).await;
        let id = stage.call(&agent, CALLEE, json!({ "purpose": "service" })).await;
        has_said(stage, &id, OPENING, 1).await;
        telephone.tell(json!({ "do": "dtmf", "digits": "9" }));
        let ended = stage.ended(&id).await;
        assert_eq!(end(&ended), ("completed", "opt_out"), "{ended}");
        assert!(is_listed(stage).await);
        let proof = proof(stage, &id).await;
        let outcome = record(&proof, "outcome");
        assert_eq!(told(outcome), [("ai name opt_out".to_owned(), true)], "{outcome:#}");
        assert!(outcome["opted_out_at"].is_string(), "{outcome:#}");
        let opt_out = record(&proof, "opt_out");
        assert_eq!((&opt_out["how"], &opt_out["session_id"]), (&json!("opt_out_voice"), &json!(id)), "{opt_out:#}");
        let timeline = stage.timeline(&id).await;
        assert!(timeline.iter().any(|entry| entry["kind"] == "keys_pressed" && entry["detail"] == "9"), "{timeline:#?}");
        let transcript = transcript(stage, &id).await;
        assert!(!transcript.contains(FIRST), "the agent has not begun: {transcript}");
        let (status, code) = stage.api.call(&agent["id"], CALLEE).await;
        assert_eq!((status, code.as_str()), (409, Some("recipient_on_dnc")));
    }

    /// L4. A model that says it is human is corrected before it is heard, and whoever asks is answered by the service.
    async fn no_model_says_that_it_is_human(stage: &mut Stage) needs [Pjsip] {
        let Some(speech) = RealSpeech::find() else { return };
        let is_robot: Arc<AtomicBool> = Arc::default();
        let asks = is_robot.clone();
        let ears = TranscriptionServer::start_with(move |_, _| {
            let question = if asks.load(Relaxed) { ROBOT } else { "What is your name?" };
            transcription_server::Answer::Words(question.to_owned())
        })
        .await;
        // To the second question it is told what the service has answered, and contradicts.
        let chat = ChatServer::start_with(|request, _| {
            let last = request["messages"].as_array().and_then(|all| all.last());
            let is_asked = last.and_then(|message| message["content"].as_str()).is_some_and(|content| content.contains(ROBOT));
            chat_server::Answer::Words(if is_asked { format!("No. {MORE}") } else { CLAIM.to_owned() })
        })
        .await;
        under_the_law(stage, "espeak-ng", &[("CALLBOARD_TRANSCRIPTION_URL", &ears.url()), ("CALLBOARD_CHAT_URL", &chat.url())]);
        let says = stage.recorded("says.wav", &Sound::of_mu_law(YES).then(Sound::silence(1_000)));
        let mut telephone = stage.telephone(json!({}), json!({})).await;
        let agent = line(stage, &telephone, json!({ "recording": recorded(), "brain": { "mode": "chat" } })).await;
        let id = stage.call(&agent, CALLEE, json!({ "purpose": "service" })).await;
        has_said(stage, &id, FIRST, 1).await;
        pause(4_000).await;
        telephone.tell(json!({ "do": "play", "file": says }));
        has_said(stage, &id, TRUTH, 1).await;
        pause(8_000).await;
        is_robot.store(true, Relaxed);
        telephone.tell(json!({ "do": "play", "file": says }));
        has_said(stage, &id, MORE, 1).await;
        pause(4_000).await;
        telephone.tell(json!({ "do": "hang_up" }));
        let ended = stage.ended(&id).await;
        assert_eq!(end(&ended), ("completed", "completed"), "{ended}");

        let all = heard(stage, &speech, &ended).await.join(" ");
        let truth = format!("i am the a. i. assistant of {SELLER_HEARD} not a human being");
        assert!(all.ends_with(&format!("wednesday at ten is free {truth} yes {truth} friday at four is free")), "{all}");
        assert_unheard(&all);
        let transcript = transcript(stage, &id).await;
        assert!(!transcript.contains("real person") && transcript.contains(&format!("Yes. I am the AI assistant of {SELLER}")), "{transcript}");
        let timeline = stage.timeline(&id).await;
        for (kind, detail) in [("claim_replaced", CLAIM), ("asked_if_ai", ROBOT)] {
            let noted = timeline.iter().any(|entry| entry["kind"] == kind && entry["detail"] == detail);
            assert!(noted, "{kind}: {timeline:#?}");
        }
        // What it has answered last stands in its history as it was heard.
        let asked = chat.requests();
        assert!(!asked.last().unwrap().to_string().contains("real person"), "{asked:#?}");
    }

    /// L5. Whoever thinks for the agent does not answer any more: what stands ready is heard two seconds after the greeting, the call
    /// counts as abandoned, and the person is left alone from then on where the law says so.
    async fn who_is_left_alone_hears_what_stands_ready(stage: &mut Stage) needs [Pjsip] {
        let Some(speech) = RealSpeech::find() else { return };
        let chat = ChatServer::start().await;
        chat.answer_models(chat_server::Answer::Hang);
        under_the_law(stage, "espeak-ng", &[("CALLBOARD_CHAT_URL", &chat.url())]);
        let greets = Sound::silence(300).then(Sound::of_mu_law(YES)).then(Sound::silence(40_000));
        let says = stage.recorded("says.wav", &greets);
        let telephone = stage.telephone(json!({ "play": says }), json!({})).await;
        let mut agent = json!({ "recording": recorded(), "brain": { "mode": "chat" } });
        // The key that is named is the agent's own.
        agent["opt_out"] = json!({ "key": "5" });
        let agent = line(stage, &telephone, agent).await;
        let detects = || json!({ "voicemail": { "detection": "auto", "action": "hangup" } });
        let id = stage.call(&agent, CALLEE, detects()).await;
        let ended = stage.ended(&id).await;
        assert_eq!(ended["end_reason"], "provider_error", "{ended}");
        let waited = ended["first_sound_ms"].as_i64().unwrap_or_else(|| panic!("nothing was heard: {ended}"));
        // A machine that runs other tests at once is late by itself.
        assert!(waited < 4_000, "{waited} ms");
        assert_abandoned(&ended);
        let all = heard(stage, &speech, &ended).await.join(" ");
        let number = "plus one eight zero zero five five five zero one nine nine";
        assert_eq!(all, format!("this was a telemarketing call by {SELLER_HEARD} {number} press five to be called no more"));
        let first = proof(stage, &id).await;
        let outcome = record(&first, "outcome");
        assert_eq!((&outcome["abandoned"], &outcome["safe_harbour_played"]), (&ended["abandoned"], &json!(true)), "{outcome:#}");
        assert_eq!(outcome["disclosures"], Value::Null, "nobody has introduced an agent that is not there");

        chat.answer_models(chat_server::Answer::Whole(json!({ "object": "list", "data": [] })));
        // Where other tests run at once the agent may be late by itself, and its call is given up as well: then it calls once more.
        let mut id = String::new();
        for _ in 0..5 {
            id = stage.call(&agent, CALLEE, detects()).await;
            let so = |transcript: &Value| transcript["state"] == "final" || said(transcript, OPENING) > 0;
            let path = format!("/v1/sessions/{id}/transcript.json");
            if said(&stage.api.until(&path, so).await, OPENING) > 0 {
                break;
            }
        }
        has_said(stage, &id, OPENING, 1).await;
        stage.hang_up(&id).await;
        stage.ended(&id).await;
        let next = proof(stage, &id).await;
        let rests = &record(&next, "attempt")["facts"]["rests"];
        assert_eq!(rests[0]["cause"], "abandoned", "{next:#}");
    }

    /// L5. The service has said who speaks, and then the agent has nothing to say.
    async fn an_agent_that_is_silent_behind_the_opening_is_given_up(stage: &mut Stage) needs [Pjsip] {
        let model = RealtimeServer::start_with(|_: &Turn, _| realtime_server::Answer::Ignore);
        under_the_law(stage, "tones", &[("CALLBOARD_REALTIME_URL", &model.url)]);
        let mut telephone = stage.telephone(json!({}), json!({})).await;
        let mut agent = json!({ "brain": { "mode": "realtime" } });
        agent["opt_out"] = json!({ "key": "5" });
        let agent = line(stage, &telephone, agent).await;
        let id = stage.call(&agent, CALLEE, json!({})).await;
        stage.api.until(&format!("/v1/sessions/{id}/timeline"), has("safe_harbour")).await;
        telephone.tell(json!({ "do": "dtmf", "digits": "5" }));
        let ended = stage.ended(&id).await;
        assert_abandoned(&ended);
        assert!(is_listed(stage).await, "the key that the message names");
        let timeline = stage.timeline(&id).await;
        let (told, left) = (moments(&timeline, "disclosed"), moments(&timeline, "safe_harbour"));
        let silent_ms = left[0].since(*told.last().unwrap()).as_millis();
        assert!((3_500..9_000).contains(&silent_ms), "{silent_ms} ms: {timeline:#?}");
        let proof = proof(stage, &id).await;
        let outcome = record(&proof, "outcome");
        assert_eq!((&outcome["abandoned"], &outcome["safe_harbour_played"]), (&ended["abandoned"], &json!(true)), "{outcome:#}");
        assert_eq!(told_whole(outcome), ["ai name opt_out callback"], "{outcome:#}");
    }
}
