//! Whose voice is cloned has agreed, and a file shows it: without one a clone calls nobody.
use super::voices::{consent, form, good, live, proved, send, voice};
use crate::{
    on_both,
    world::{Api, Tenant, World, seconds},
};
use reqwest::{
    Method,
    multipart::{Form, Part},
};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

fn with(change: impl FnOnce(&mut Value)) -> String {
    let mut consent = consent();
    change(&mut consent);
    consent.to_string()
}

fn file() -> Part {
    Part::bytes(b"%PDF-1.7 signed".as_slice()).file_name("signed.pdf")
}

async fn has_evidence(world: &World, tenant: &Tenant, id: &str) -> bool {
    let db = &world.deps().db.read;
    entities::voice::has_evidence(db, tenant.id, id).await.unwrap()
}

async fn prove(api: &Api, id: &str, form: Form) -> crate::world::Answer {
    send(api, &format!("/v1/voices/{id}/consent"), form).await
}

on_both! {
    async fn a_clone_for_real_calls_comes_with_what_shows_that_its_speaker_agrees(world: &mut World) {
        let (tenant, api, _server) = live(world).await;
        let own = || form([good(), good(), good()]);
        let table = [
            ("a tick alone", own(), "consent"),
            ("no file", own().text("consent", consent().to_string()), "consent_evidence"),
            ("a file alone", own().part("consent_evidence", file()), "consent"),
            ("two files", proved(own()).part("consent_evidence", file()), "consent_evidence"),
            ("no JSON", own().text("consent", "yes").part("consent_evidence", file()), "consent"),
            ("nobody", own().text("consent", with(|it| it["speaker_name"] = " ".into())).part("consent_evidence", file()), "consent.speaker_name"),
            ("no words", own().text("consent", with(|it| it["statement"] = Value::Null)).part("consent_evidence", file()), "consent.statement"),
            ("tomorrow", own().text("consent", with(|it| it["given_at"] = "2027-03-03T13:00:00Z".into())).part("consent_evidence", file()), "consent.given_at"),
            ("a slip", own().text("consent", with(|it| it["colour"] = "red".into())).part("consent_evidence", file()), "consent.colour"),
        ];
        for (what, form, param) in table {
            let refused = send(&api, "/v1/voices/clones", form).await;
            assert_eq!(refused.error(), (422, "validation_failed", Some(param)), "{what}: {}", refused.body);
            assert_eq!((world.rows("voice_samples").await, world.recorded_files().len()), (0, 0), "{what}");
            world.advance(seconds(1)).await;
        }
        let made = send(&api, "/v1/voices/clones", proved(own())).await.ok();
        world.settle().await;
        let id = made["id"].as_str().unwrap();
        let found = voice(&api, id).await;
        assert_eq!((&found["status"], &found["samples"]), (&json!("ready"), &json!(3)));
        assert_eq!(found["sample_details"].as_array().unwrap().len(), 3, "it is not trained with the proof");
        let (kept, bytes) = (&found["consent"], b"%PDF-1.7 signed");
        assert_eq!((&kept["speaker_name"], &kept["reference"]), (&json!("Ann Bell"), &Value::Null));
        let sha256: String = Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(kept["evidence"], json!({ "file_name": "signed.pdf", "bytes": bytes.len(), "sha256": sha256 }));
        let path = format!("/v1/voices/{id}/consent_evidence");
        let answer = api.request(Method::GET, &path).send().await.unwrap();
        assert_eq!(answer.headers()["content-type"], "application/octet-stream");
        assert_eq!(answer.bytes().await.unwrap().as_ref(), bytes);
        assert!(has_evidence(world, &tenant, id).await);
        let cast = actors::call::voice::cast(world.deps(), tenant.id, id, "en").await.unwrap();
        assert_eq!(cast.first.name(), "elevenlabs", "it speaks");
        // It is not replaced by another.
        let again = prove(&api, id, Form::new().text("consent", consent().to_string()).part("consent_evidence", file())).await;
        assert_eq!(again.error(), (409, "invalid_state", None));
        assert_eq!(world.recorded_files().len(), 4);
        // It goes with the voice.
        api.delete(&format!("/v1/voices/{id}")).await.ok();
        world.settle().await;
        assert_eq!((world.rows("voice_samples").await, world.recorded_files().len()), (0, 0));
        assert_eq!(api.get(&path).await.status, 404);
    }

    async fn a_clone_of_which_only_a_tick_says_it_can_be_given_its_proof_later(world: &mut World) {
        let tenant = world.tenant().await;
        let api = &tenant.api;
        let made = send(api, "/v1/voices/clones", form([good(), good(), good()])).await.ok();
        let id = made["id"].as_str().unwrap();
        assert_eq!((&made["consent"], &made["watermark"]), (&Value::Null, &json!(false)));
        assert!(!has_evidence(world, &tenant, id).await);
        assert!(has_evidence(world, &tenant, "builtin:tones").await, "it is nobody's");
        world.settle().await;
        for (form, param) in [
            // Without any part it is not a form.
            (Form::new(), None),
            (Form::new().text("consent", consent().to_string()), Some("consent_evidence")),
            (Form::new().part("consent_evidence", file()), Some("consent")),
            (Form::new().text("name", "Ann"), Some("name")),
        ] {
            assert_eq!(prove(api, id, form).await.error(), (422, "validation_failed", param), "{param:?}");
            world.advance(seconds(1)).await;
        }
        let whole = || Form::new().text("consent", consent().to_string()).part("consent_evidence", file());
        let proved = prove(api, id, whole()).await.ok();
        assert_eq!((&proved["consent"]["statement"], &proved["samples"]), (&consent()["statement"], &json!(3)));
        assert!(has_evidence(world, &tenant, id).await);
        assert_eq!(prove(api, "builtin:tones", whole()).await.error(), (409, "invalid_state", None));
        assert_eq!(world.recorded_files().len(), 4, "what was refused has left nothing");
    }
}
