//! What keys and words decide on a telephone: consent, and who has picked up.
use super::stage::{CALLEE, HELLO, OURS, Stage, end};
use crate::{
    on_the_phone,
    world::{
        phone::sound::Sound,
        transcription_server::{Answer, TranscriptionServer},
    },
};
use serde_json::{Value, json};
use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

const MENU: &str = "Thank you for calling Northwind. For sales, press one. For support, press two.";
const MAILBOX: &str = "You have reached Ann Smith. Please leave a message after the tone.";

on_the_phone! {
    /// 47. Consent by key, where nobody understands words: 1 is a yes, 2 is a no.
    async fn consent_is_given_and_refused_by_key(stage: &mut Stage) needs [Pjsip] {
        let mut telephone = stage.telephone(json!({}), json!({})).await;
        let trunk = stage.trunk(telephone.port, json!({})).await;
        stage.number(OURS, &trunk, json!({})).await;
        // Short: it is said in tones, and keys count from its end on.
        let recording = json!({ "enabled": true, "consent": "verbal", "consent_message": "May I?" });
        let agent = stage.agent(json!({ "recording": recording })).await;
        for (keys, consent, reason) in [("1", "granted", "completed"), ("2", "refused", "consent_refused")] {
            let id = stage.call(&agent, CALLEE, json!({})).await;
            stage.is(&id, "in_progress").await;
            assert_eq!(stage.session(&id).await["consent"], "pending");
            telephone.tell(json!({ "do": "dtmf", "digits": keys }));
            let path = format!("/v1/sessions/{id}");
            stage.api.until(&path, |session| session["consent"] == consent).await;
            if consent == "granted" {
                stage.hang_up(&id).await;
            }
            let ended = stage.ended(&id).await;
            assert_eq!(end(&ended), ("completed", reason), "{ended}");
            let recordings = stage.api.get(&format!("{path}/recordings")).await;
            let recorded = recordings["data"].as_array().unwrap().len();
            assert_eq!(recorded, usize::from(consent == "granted"), "{recordings}");
            let timeline = stage.timeline(&id).await;
            let pressed = timeline.iter().filter(|entry| entry["kind"] == "keys_pressed").count();
            assert_eq!(pressed, keys.len(), "{timeline:?}");
        }
    }

    /// 48. An opt-out by key, while the agent still speaks: the number is on the list.
    async fn somebody_opts_out_by_key(stage: &mut Stage) needs [Pjsip] {
        let mut telephone = stage.telephone(json!({}), json!({})).await;
        let trunk = stage.trunk(telephone.port, json!({})).await;
        stage.number(OURS, &trunk, json!({})).await;
        let agent = stage.agent(json!({ "opt_out": { "key": "9" } })).await;
        let id = stage.call(&agent, CALLEE, json!({})).await;
        stage.is(&id, "in_progress").await;
        telephone.tell(json!({ "do": "dtmf", "digits": "9" }));
        assert_eq!(end(&stage.ended(&id).await), ("completed", "opt_out"));
        let listed = stage.api.get(&format!("/v1/dnc/check?phone_number=%2B{}", &CALLEE[1..])).await;
        assert_eq!(listed["listed"], true, "{listed}");
    }

    /// The same while it is still judged who has picked up: nobody has said a word.
    async fn somebody_opts_out_by_key_before_the_talk(stage: &mut Stage) needs [Pjsip] {
        let mut telephone = stage.telephone(json!({}), json!({})).await;
        let trunk = stage.trunk(telephone.port, json!({})).await;
        stage.number(OURS, &trunk, json!({})).await;
        let agent = stage.agent(json!({ "opt_out": { "key": "9" } })).await;
        let id = stage.call(&agent, CALLEE, json!({ "voicemail": { "detection": "auto", "action": "hangup" } })).await;
        telephone.is("CONFIRMED").await;
        stage.api.until(&format!("/v1/sessions/{id}"), |session| !session["picked_up_at"].is_null()).await;
        telephone.tell(json!({ "do": "dtmf", "digits": "9" }));
        let ended = stage.ended(&id).await;
        assert_eq!(end(&ended), ("completed", "opt_out"), "{ended}");
        let listed = stage.api.get(&format!("/v1/dnc/check?phone_number=%2B{}", &CALLEE[1..])).await;
        assert_eq!(listed["listed"], true, "{listed}");
    }

    /// 52. By their words: a menu, to which the agent talks, and a mailbox. They sound alike, and as long as a machine.
    async fn a_menu_and_a_mailbox_are_told_by_their_words(stage: &mut Stage) needs [Pjsip] {
        let is_mailbox: Arc<AtomicBool> = Arc::default();
        let which = is_mailbox.clone();
        let server = TranscriptionServer::start_with(move |_, _| {
            let words = if which.load(Ordering::SeqCst) { MAILBOX } else { MENU };
            Answer::Words(words.to_owned())
        })
        .await;
        stage.restart_with(&[("CALLBOARD_TRANSCRIPTION_URL", &server.url())]);
        let greeting = Sound::silence(200).then(Sound::greeting()).then(Sound::silence(20_000));
        let says = stage.recorded("says.wav", &greeting);
        let telephone = stage.telephone(json!({ "play": says }), json!({})).await;
        let agent = stage.line(telephone.port).await;
        let detects = || json!({ "voicemail": { "detection": "auto", "action": "hangup" } });
        let id = stage.call(&agent, CALLEE, detects()).await;
        let answered = stage.api.until(&format!("/v1/sessions/{id}"), |session| !session["answered_by"].is_null()).await;
        assert_eq!((&answered["answered_by"], &answered["status"]), (&json!("ivr"), &json!("in_progress")), "{answered}");
        let says_hello = |transcript: &Value| {
            let mut turns = transcript["turns"].as_array().into_iter().flatten();
            turns.any(|turn| turn["role"] == "agent" && turn["content"].as_str().is_some_and(|said| HELLO.starts_with(said)))
        };
        stage.api.until(&format!("/v1/sessions/{id}/transcript.json"), says_hello).await;
        stage.hang_up(&id).await;
        assert_eq!(end(&stage.ended(&id).await), ("completed", "completed"));
        is_mailbox.store(true, Ordering::SeqCst);
        let id = stage.call(&agent, CALLEE, detects()).await;
        let ended = stage.ended(&id).await;
        assert_eq!((end(&ended), &ended["answered_by"]), (("voicemail", "voicemail"), &json!("voicemail")), "{ended}");
    }
}
