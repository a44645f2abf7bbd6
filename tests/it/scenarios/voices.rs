//! Voices: clones from their samples to their end, with the sandbox and with a provider that speaks ElevenLabs' protocol.
use crate::{
    on_both,
    world::{
        Answer, Api, Tenant, World, minutes, seconds,
        speech_server::{self, SpeechServer},
        voice_server::{Adding, VoiceServer},
    },
};
use entities::values::{Env, Scopes};
use reqwest::{
    Method,
    multipart::{Form, Part},
};
use serde_json::{Value, json};

/// A key that must not be seen anywhere.
const KEY: &str = "xi-never-shown-4711";

/// A WAV file: 440 Hz of that amplitude, cut off at full scale.
fn sound(seconds: u32, amplitude: f32) -> Vec<u8> {
    let mut file = std::io::Cursor::new(Vec::new());
    let spec = hound::WavSpec {
        channels: 1,
        sample_rate: 8_000,
        bits_per_sample: 16,
        sample_format: hound::SampleFormat::Int,
    };
    let mut writer = hound::WavWriter::new(&mut file, spec).unwrap();
    for n in 0..seconds * 8_000 {
        let level = amplitude * (n as f32 * 440.0 * std::f32::consts::TAU / 8_000.0).sin() * 32_768.0;
        writer.write_sample(level.clamp(-32_768.0, 32_767.0) as i16).unwrap();
    }
    writer.finalize().unwrap();
    file.into_inner()
}

/// A sample that a voice can be made of.
pub fn good() -> Vec<u8> {
    sound(31, 0.1)
}

fn samples(form: Form, files: impl IntoIterator<Item = Vec<u8>>) -> Form {
    let numbered = files.into_iter().enumerate();
    numbered.fold(form, |form, (n, file)| {
        form.part("samples", Part::bytes(file).file_name(format!("take {n}.wav")))
    })
}

pub(super) fn form(files: impl IntoIterator<Item = Vec<u8>>) -> Form {
    let form = Form::new()
        .text("name", "Ann")
        .text("consent_attested", "true")
        .text("language", "en-GB");
    samples(form, files)
}

/// What shows that the speaker has agreed.
pub(super) fn consent() -> Value {
    json!({ "speaker_name": "Ann Bell", "given_at": "2027-02-01T09:00:00Z", "statement": "I agree that my voice is cloned." })
}

/// With what a live key has to give.
pub(super) fn proved(form: Form) -> Form {
    let file = Part::bytes(b"%PDF-1.7 signed".as_slice()).file_name("../signed.pdf");
    form.text("consent", consent().to_string())
        .part("consent_evidence", file)
}

pub(super) async fn send(api: &Api, path: &str, form: Form) -> Answer {
    api.send(api.request(Method::POST, path).multipart(form)).await
}

/// Clones a voice from these files; answers its id.
pub async fn clone(api: &Api, files: impl IntoIterator<Item = Vec<u8>>) -> String {
    let form = match api.key.starts_with("vk_live_") {
        true => proved(form(files)),
        false => form(files),
    };
    let answer = send(api, "/v1/voices/clones", form).await;
    assert_eq!(answer.status.as_u16(), 202, "{}", answer.body);
    answer.body["id"].as_str().unwrap().to_owned()
}

pub(super) async fn voice(api: &Api, id: &str) -> Value {
    api.get(&format!("/v1/voices/{id}")).await.ok()
}

/// Every event of that key's env about voices: type and data.
async fn told(api: &Api) -> Vec<(String, Value)> {
    let page = api.get("/v1/events?order=asc&limit=100").await.ok();
    let events = page["data"].as_array().unwrap().iter();
    let own = events.filter_map(|event| {
        let name = event["type"].as_str().unwrap().strip_prefix("voice_clone.")?;
        Some((name.to_owned(), event["data"].clone()))
    });
    own.collect()
}

async fn told_types(api: &Api) -> Vec<String> {
    told(api).await.into_iter().map(|(name, _)| name).collect()
}

async fn bytes(api: &Api, path: &str, body: Value) -> (u16, Vec<u8>) {
    let response = api.request(Method::POST, path).json(&body).send().await.unwrap();
    (response.status().as_u16(), response.bytes().await.unwrap().to_vec())
}

/// A live key, and a voice provider.
pub(super) async fn live(world: &mut World) -> (Tenant, Api, VoiceServer) {
    let server = VoiceServer::start();
    world.change_setting("voice_provider_api_key", json!(KEY)).await;
    world.change_setting("voice_provider_url", json!(server.url)).await;
    let tenant = world.tenant().await;
    let api = world.api(tenant.id, Env::Live, Scopes::all()).await;
    (tenant, api, server)
}

on_both! {
    async fn a_clone_from_its_samples_to_its_end(world: &mut World) {
        let tenant = world.tenant().await;
        let api = &tenant.api;
        let answer = send(api, "/v1/voices/clones", form([good(), good(), good()])).await;
        assert_eq!((answer.status.as_u16(), answer.body["status"].as_str()), (202, Some("pending")));
        let id = answer.body["id"].as_str().unwrap().to_owned();
        world.settle().await;

        let events = told(api).await;
        let expected = [("training_started", json!({ "voice_id": id, "name": "Ann", "samples": 3 })), ("training_succeeded", json!({ "voice_id": id, "name": "Ann", "ready_at": "2027-03-02T13:00:00.000Z" }))];
        assert_eq!(events, expected.map(|(name, data)| (name.to_owned(), data)));
        let found = voice(api, &id).await;
        for (field, value) in [("type", json!("cloned")), ("provider", json!("sandbox")), ("language", json!("en-GB")), ("status", json!("ready")), ("samples", json!(3)), ("error_code", Value::Null)] {
            assert_eq!(found[field], value, "{field}");
        }
        let details = found["sample_details"].as_array().unwrap();
        assert_eq!((details.len(), details[0]["duration_seconds"].as_f64(), details[0]["format"].as_str()), (3, Some(31.0), Some("wav")));
        let sealed = world.recorded_files();
        assert_eq!(sealed.len(), 3);
        assert!(sealed.iter().all(|path| !std::fs::read(path).unwrap().windows(4).any(|part| part == b"RIFF")), "sealed at rest");
        let renamed = api.patch(&format!("/v1/voices/{id}"), json!({ "name": "Bea", "language": null })).await.ok();
        assert_eq!((renamed["name"].as_str(), &renamed["language"]), (Some("Bea"), &Value::Null));
        let (status, wav) = bytes(api, &format!("/v1/voices/{id}/preview"), json!({ "text": "Hello there." })).await;
        assert!(status == 200 && wav.starts_with(b"RIFF") && wav.len() > 8_000, "{status}");

        // In a call the service's own voice speaks for it.
        let agent = json!({ "name": "Speaker", "prompt": "x", "voice_id": id, "recording": { "enabled": true } });
        let agent = api.post("/v1/agents", agent).await.ok()["id"].as_str().unwrap().to_owned();
        let call = api.post("/v1/sessions", json!({ "to_number": "+15002345600", "agent_id": agent })).await.ok();
        assert_eq!(call["voice_id"], json!(id));
        world.advance(minutes(2)).await;
        let call = api.get(&format!("/v1/sessions/{}", call["id"].as_str().unwrap())).await.ok();
        assert_eq!((call["status"].as_str(), call["recording_id"].is_string()), (Some("completed"), true));

        let path = format!("/v1/voices/{id}");
        api.post("/v1/campaigns", json!({ "name": "Spring", "voice_id": id })).await.ok();
        let refused = api.delete(&path).await;
        assert_eq!(refused.error(), (409, "in_use", None));
        let message = refused.body["error"]["message"].as_str().unwrap();
        assert!(message.contains("agent `Speaker`") && message.contains("campaign `Spring`"), "{message}");
        api.patch(&format!("/v1/agents/{agent}"), json!({ "voice_id": null })).await.ok();
        let campaign = api.get("/v1/campaigns").await.ok()["data"][0]["id"].as_str().unwrap().to_owned();
        api.patch(&format!("/v1/campaigns/{campaign}"), json!({ "voice_id": null })).await.ok();
        assert_eq!(api.delete(&path).await.status, 204);
        world.settle().await;
        assert_eq!(api.get(&path).await.error(), (404, "not_found", None));
        assert_eq!(world.recorded_files().len(), 1, "the call's recording is left, no sample");
        assert_eq!(world.rows("voice_samples").await, 0);
        assert_eq!(told(api).await.len(), 2);
    }

    async fn faults_of_samples_end_the_training(world: &mut World) {
        let tenant = world.tenant().await;
        let table = [
            ("none", vec![], "insufficient_samples"),
            ("two", vec![good(), good()], "insufficient_samples"),
            ("one short", vec![good(), sound(29, 0.1), good()], "sample_too_short"),
            ("one quiet", vec![good(), good(), sound(31, 0.003)], "sample_too_quiet"),
            ("one silent", vec![sound(31, 0.0), good(), good()], "sample_too_quiet"),
            ("one cut off", vec![good(), good(), sound(31, 4.0)], "sample_clipped"),
            ("one text", vec![b"Once upon a time".to_vec(), good(), good()], "sample_unreadable"),
            ("one empty", vec![Vec::new(), good(), good()], "sample_unreadable"),
            ("the first fault counts", vec![good(), sound(2, 0.1), sound(31, 0.0)], "sample_too_short"),
        ];
        for (what, files, code) in table {
            let count = files.len();
            let id = clone(&tenant.api, files).await;
            world.settle().await;
            let found = voice(&tenant.api, &id).await;
            assert_eq!((found["status"].as_str(), found["error_code"].as_str()), (Some("failed"), Some(code)), "{what}");
            let events = told(&tenant.api).await;
            let [(started, begun), (failed, end)] = &events[events.len() - 2..] else { panic!("{events:?}") };
            assert_eq!((started.as_str(), begun["samples"].as_u64()), ("training_started", Some(count as u64)), "{what}");
            assert_eq!((failed.as_str(), end["error_code"].as_str()), ("training_failed", Some(code)), "{what}");
            assert_eq!(end.as_object().unwrap().keys().collect::<Vec<_>>(), ["voice_id", "name", "error_code", "error_message"]);
            world.advance(seconds(1)).await;
        }
        let short = &told(&tenant.api).await[5].1["error_message"];
        assert_eq!(short, "the sample `take 1.wav` has 29.0 s; at least 30 s are needed");
    }

    async fn more_samples_mend_a_failed_training(world: &mut World) {
        let tenant = world.tenant().await;
        let api = &tenant.api;
        let id = clone(api, [good(), sound(2, 0.1)]).await;
        world.settle().await;
        let path = format!("/v1/voices/{id}");
        assert_eq!(send(api, &format!("{path}/samples"), Form::new()).await.error().0, 422);
        let added = send(api, &format!("{path}/samples"), samples(Form::new(), [good(), good()])).await.ok();
        assert_eq!((added["samples"].as_u64(), added["status"].as_str()), (Some(4), Some("failed")), "nothing begins by itself");
        let trained = api.post(&format!("{path}/train"), json!({})).await;
        assert_eq!((trained.status.as_u16(), trained.body["status"].as_str()), (202, Some("training")));
        world.settle().await;
        assert_eq!(told_types(api).await, ["training_started", "training_failed", "training_started", "training_succeeded"]);
        let found = voice(api, &id).await;
        assert_eq!((found["status"].as_str(), &found["error_code"]), (Some("ready"), &Value::Null));
        let faults: Vec<_> = found["sample_details"].as_array().unwrap().iter().map(|sample| sample["fault"].clone()).collect();
        assert_eq!(faults, [Value::Null, json!("sample_too_short"), Value::Null, Value::Null], "the short one is left out");
        for action in ["train", "samples"] {
            let refused = if action == "train" { api.post(&format!("{path}/train"), json!({})).await } else { send(api, &format!("{path}/samples"), samples(Form::new(), [good()])).await };
            assert_eq!(refused.error(), (409, "invalid_state", None), "{action} of a ready one");
        }
        assert_eq!(world.rows("voice_samples").await, 4);
    }

    async fn a_bad_form_names_its_field_and_leaves_nothing(world: &mut World) {
        let tenant = world.tenant().await;
        let api = &tenant.api;
        let named = || Form::new().text("name", "Ann");
        let long = vec![0_u8; 25 * 1024 * 1024 + 1];
        let table = vec![
            ("no name", Form::new().text("consent_attested", "true"), 422, "validation_failed", Some("name")),
            ("no consent", samples(named(), [good()]), 422, "validation_failed", Some("consent_attested")),
            ("no", named().text("consent_attested", "false"), 422, "validation_failed", Some("consent_attested")),
            ("an empty name", Form::new().text("name", " ").text("consent_attested", "true"), 422, "validation_failed", Some("name")),
            ("a name of 101", Form::new().text("name", "x".repeat(101)).text("consent_attested", "true"), 422, "validation_failed", Some("name")),
            ("two names", named().text("name", "Bea"), 422, "validation_failed", Some("name")),
            ("no language", form([]).text("nmae", "x"), 422, "validation_failed", Some("nmae")),
            ("a language", named().text("consent_attested", "true").text("language", "English, please"), 422, "validation_failed", Some("language")),
            ("a file elsewhere", form([good()]).part("files", Part::bytes(good()).file_name("x.wav")), 422, "validation_failed", Some("files")),
            ("a long text", named().text("consent_attested", "true".repeat(2_000)), 422, "validation_failed", Some("consent_attested")),
            ("26 files", form((0..26).map(|_| vec![1])), 422, "validation_failed", Some("samples")),
            ("a file of 25 MiB and a byte", form([good(), long, good()]), 413, "payload_too_large", Some("samples")),
        ];
        for (what, form, status, code, param) in table {
            let refused = send(api, "/v1/voices/clones", form).await;
            assert_eq!(refused.error(), (status, code, param), "{what}: {}", refused.body);
            world.advance(seconds(1)).await;
        }
        let json = api.post("/v1/voices/clones", json!({ "name": "Ann" })).await;
        assert_eq!(json.error(), (415, "unsupported_media_type", None));
        let cut_off = api.request(Method::POST, "/v1/voices/clones").header("content-type", "multipart/form-data; boundary=x").body("--x\r\nContent-Disposition: form-data; name=\"samples\"; filename=\"a\"\r\n\r\nabc");
        assert_eq!(api.send(cut_off).await.error().0, 422);
        assert_eq!(api.get("/v1/voices?type=cloned").await.ok()["data"], json!([]));
        assert_eq!((world.rows("voice_samples").await, world.recorded_files().len()), (0, 0));
        assert!(told(api).await.is_empty());
    }

    /// What a crash in the middle of an upload leaves behind is found and erased.
    async fn an_upload_that_was_cut_off_is_cleared_away(world: &mut World) {
        let tenant = world.tenant().await;
        let nobody = world.deps().ids.next();
        let id = world.deps().ids.next();
        actors::voice_clone::samples::put(world.deps(), (tenant.id, nobody), (id, 0), "a.wav".into(), good()).await.unwrap();
        world.restart().await;
        world.advance(minutes(50)).await;
        assert_eq!(world.rows("voice_samples").await, 1, "it may still be under way");
        world.advance(minutes(11)).await;
        assert_eq!((world.rows("voice_samples").await, world.recorded_files().len()), (0, 0));
    }

    async fn a_repeated_form_has_one_effect(world: &mut World) {
        let tenant = world.tenant().await;
        let api = &tenant.api;
        let post = async |path: &str, key: &str, form: Form| {
            api.send(api.request(Method::POST, path).header("Idempotency-Key", key).multipart(form)).await
        };
        let first = post("/v1/voices/clones", "k1", form([good(), sound(2, 0.1)])).await;
        world.settle().await;
        // The same form with another boundary.
        let again = post("/v1/voices/clones", "k1", form([good(), sound(2, 0.1)])).await;
        assert_eq!((again.status.as_u16(), &again.body), (202, &first.body));
        assert_eq!(again.headers["idempotent-replayed"], "true");
        let other = post("/v1/voices/clones", "k1", form([good(), sound(3, 0.1)])).await;
        assert_eq!(other.error(), (422, "idempotency_key_reused", Some("Idempotency-Key")));
        let path = format!("/v1/voices/{}/samples", first.body["id"].as_str().unwrap());
        for _ in 0..2 {
            assert_eq!(post(&path, "k2", samples(Form::new(), [good()])).await.ok()["samples"], 3);
        }
        // A refused form gives its key back.
        let too_large = || samples(Form::new(), [vec![0; 25 * 1024 * 1024 + 1]]);
        assert_eq!(post(&path, "k3", too_large()).await.status, 413);
        assert_eq!(post(&path, "k3", samples(Form::new(), [good()])).await.ok()["samples"], 4);
        world.restart().await;
        assert_eq!(post(&path, "k2", samples(Form::new(), [good()])).await.ok()["samples"], 3, "the stored answer");
        assert_eq!(api.get("/v1/voices?type=cloned").await.ok()["data"].as_array().unwrap().len(), 1);
        let preview = api.request(Method::POST, "/v1/voices/builtin:tones/preview").header("Idempotency-Key", "k4");
        assert_eq!(preview.json(&json!({ "text": "Hello." })).send().await.unwrap().status(), 200);
    }

    async fn a_plan_without_clones_says_so(world: &mut World) {
        use sea_orm::ConnectionTrait;
        let tenant = world.tenant().await;
        world.deps().db.write.execute_unprepared("UPDATE tenants SET voice_clones = FALSE").await.unwrap();
        clone(&tenant.api, [good(), good(), good()]).await;
        world.settle().await;
        let events = told(&tenant.api).await;
        assert_eq!((events.len(), events[1].1["error_code"].as_str()), (2, Some("voice_clone_disabled_on_plan")));
    }

    async fn a_live_clone_is_made_and_erased_by_the_provider(world: &mut World) {
        let tenant = world.tenant().await;
        let without = world.api(tenant.id, Env::Live, Scopes::all()).await;
        assert_eq!(send(&without, "/v1/voices/clones", form([good()])).await.error(), (501, "not_configured", None));
        let (tenant, api, server) = live(world).await;
        let id = clone(&api, [good(), sound(2, 0.1), good(), sound(40, 0.1)]).await;
        world.settle().await;
        let asked = server.asked();
        assert_eq!((asked.len(), asked[0].name.as_str()), (1, "Ann"));
        let lengths = [("sample-1.wav".to_owned(), good().len()), ("sample-3.wav".to_owned(), good().len()), ("sample-4.wav".to_owned(), sound(40, 0.1).len())];
        assert_eq!(asked[0].files, lengths, "without the short one, and whole");
        assert_eq!(asked[0].labels, json!({ "callboard_voice": id, "callboard_run": "1" }));
        assert_eq!(told_types(&api).await, ["training_started", "training_succeeded"]);
        assert!(told(&tenant.api).await.is_empty(), "its events go to the env in which it was made");
        let found = voice(&tenant.api, &id).await;
        assert_eq!((found["provider"].as_str(), found["status"].as_str()), (Some("elevenlabs"), Some("ready")), "both envs have it");
        let (status, wav) = bytes(&api, &format!("/v1/voices/{id}/preview"), json!({ "text": "Hello." })).await;
        assert_eq!((status, &wav[..4], wav.len()), (200, &b"RIFF"[..], 16_044));
        let cast = actors::call::voice::cast(world.deps(), tenant.id, &id, "en").await.unwrap();
        assert_eq!(cast.first.name(), "elevenlabs", "in talks as well");

        server.get_stuck(true);
        assert_eq!(api.delete(&format!("/v1/voices/{id}")).await.status, 204);
        world.settle().await;
        assert_eq!((server.voices().len(), world.recorded_files().len()), (1, 5), "tried, in vain");
        world.restart().await;
        server.get_stuck(false);
        world.advance(minutes(2)).await;
        assert_eq!((server.voices().len(), world.recorded_files().len()), (0, 0), "tried again");
        assert_eq!(world.rows("voice_samples").await, 0);
        assert_eq!(server.keys(), [KEY]);
    }

    async fn the_provider_says_no(world: &mut World) {
        let (_, api, server) = live(world).await;
        server.answer_with(Adding::Refuse(422, format!("the key {KEY} may not\nclone")));
        let id = clone(&api, [good(), good(), good()]).await;
        world.settle().await;
        let found = voice(&api, &id).await;
        assert_eq!((found["status"].as_str(), found["error_code"].as_str()), (Some("failed"), Some("provider_error")));
        assert_eq!(found["error_message"], "the voice provider answered 422: the key [key] may not clone");
        server.answer_with(Adding::Make);
        api.post(&format!("/v1/voices/{id}/train"), json!({})).await.ok();
        world.settle().await;
        assert_eq!(told_types(&api).await, ["training_started", "training_failed", "training_started", "training_succeeded"]);
        assert_eq!(server.asked()[1].labels["callboard_run"], "2");
    }

    /// The provider is asked once for a run, whatever becomes of us; and what it has made is found again.
    async fn a_crash_while_the_provider_works_asks_it_no_second_time(world: &mut World) {
        let (_, api, server) = live(world).await;
        server.answer_with(Adding::MakeAndHang);
        let made = clone(&api, [good(), good(), good()]).await;
        server.arrived(1).await;
        world.restart().await;
        world.advance(seconds(1)).await;
        assert_eq!(voice(&api, &made).await["status"], "ready");
        assert_eq!(told_types(&api).await, ["training_started", "training_succeeded"]);

        server.answer_with(Adding::Hang);
        let lost = clone(&api, [good(), good(), good()]).await;
        server.arrived(2).await;
        world.restart().await;
        world.advance(seconds(1)).await;
        let found = voice(&api, &lost).await;
        assert_eq!((found["status"].as_str(), found["error_code"].as_str()), (Some("failed"), Some("provider_error")));

        let late = clone(&api, [good(), good(), good()]).await;
        server.arrived(3).await;
        world.clock.set(world.clock.now().plus(minutes(11)));
        world.restart().await;
        world.advance(seconds(1)).await;
        assert_eq!(voice(&api, &late).await["error_code"], "timed_out", "its time was over when the service came back");
        world.advance(minutes(30)).await;
        assert_eq!(server.asked().len(), 3, "once for each run");
        assert_eq!(server.voices(), ["voice-1"]);
        let types = told_types(&api).await;
        assert_eq!(types.iter().filter(|name| *name == "training_started").count(), 3);
        assert_eq!(types.len(), 6, "one end each");
        server.answer_with(Adding::Make);
        api.post(&format!("/v1/voices/{late}/train"), json!({})).await.ok();
        world.settle().await;
        assert_eq!((voice(&api, &late).await["status"].as_str(), server.asked().len()), (Some("ready"), 4));
    }

    async fn a_provider_that_hangs_is_given_up_and_what_it_made_is_erased(world: &mut World) {
        let (_, api, server) = live(world).await;
        world.change_setting("voice_training_timeout_seconds", json!(10)).await;
        server.answer_with(Adding::MakeAndHang);
        let id = clone(&api, [good(), good(), good()]).await;
        world.settle().await;
        assert_eq!(voice(&api, &id).await["error_code"], "timed_out");
        assert_eq!((server.asked().len(), server.voices().len()), (1, 1));
        world.advance(minutes(6)).await;
        assert_eq!(server.voices().len(), 0);
        assert_eq!(told_types(&api).await, ["training_started", "training_failed"]);
    }

    async fn a_failed_commit_changes_nothing_for_the_user(world: &mut World) {
        let (_, api, server) = live(world).await;
        for commits in 1..4 {
            let id = clone(&api, [good(), good(), good()]).await;
            world.fail_next_commits(commits);
            world.advance(minutes(3)).await;
            assert_eq!(voice(&api, &id).await["status"], "ready", "{commits}");
        }
        assert_eq!((server.asked().len(), told(&api).await.len()), (3, 6));
    }

    async fn a_voice_id_is_a_ready_clone_or_a_voice_that_is_there(world: &mut World) {
        let (tenant, stranger) = (world.tenant().await, world.tenant().await);
        let api = &tenant.api;
        let failed = clone(api, [good()]).await;
        let theirs = clone(&stranger.api, [good(), good(), good()]).await;
        world.settle().await;
        let agent = tenant.agent().await;
        for id in [&failed, &theirs] {
            for (path, body) in [
                ("/v1/agents", json!({ "name": "x", "prompt": "x", "voice_id": id })),
                ("/v1/campaigns", json!({ "name": "x", "voice_id": id })),
                ("/v1/sessions", json!({ "agent_id": agent, "to_number": "+15002345600", "voice_id": id })),
            ] {
                assert_eq!(api.post(path, body).await.error(), (422, "validation_failed", Some("voice_id")), "{path}");
            }
            let patched = api.patch(&format!("/v1/agents/{agent}"), json!({ "voice_id": id })).await;
            assert_eq!(patched.error(), (422, "validation_failed", Some("voice_id")));
            assert_eq!(api.post(&format!("/v1/voices/{id}/preview"), json!({ "text": "x" })).await.status.as_u16(), if *id == failed { 409 } else { 404 });
        }
        api.patch(&format!("/v1/agents/{agent}"), json!({ "voice_id": "builtin:tones" })).await.ok();
        for path in [format!("/v1/voices/{theirs}"), format!("/v1/voices/{theirs}/train"), format!("/v1/voices/{theirs}/samples")] {
            let answer = if path.ends_with("train") { api.post(&path, json!({})).await } else if path.ends_with("samples") { send(api, &path, samples(Form::new(), [good()])).await } else { api.delete(&path).await };
            assert_eq!(answer.error(), (404, "not_found", None), "{path}");
        }
        assert_eq!(voice(&stranger.api, &theirs).await["samples"], 3);
    }

    async fn a_speech_providers_voices_are_chosen_and_heard(world: &mut World) {
        let server = SpeechServer::start_with(|asked, _| match asked.body["voice"].as_str() {
            Some("af_bella") => speech_server::Answer::samples(&[700; 2_400], 1_001),
            _ => speech_server::Answer::status(402, KEY),
        })
        .await;
        let url = format!("{}/v1", server.url());
        world.change_settings(&[
            ("speech_provider", json!("openai")),
            ("speech_url", json!(url)),
            ("speech_api_key", json!(KEY)),
            ("speech_voices", json!("bella=af_bella, poor")),
        ]).await;
        let tenant = world.tenant().await;
        let api = &tenant.api;
        let listed = api.get("/v1/voices?type=provider&order=asc").await.ok();
        let told: Vec<_> = listed["data"].as_array().unwrap().iter().map(|voice| (&voice["id"], &voice["provider"])).collect();
        assert_eq!(told, [(&json!("bella"), &json!("openai")), (&json!("poor"), &json!("openai"))]);
        let agent = |voice: &str| json!({ "name": "x", "prompt": "x", "voice_id": voice });
        api.post("/v1/agents", agent("poor")).await.ok();
        assert_eq!(api.post("/v1/agents", agent("af_bella")).await.error(), (422, "validation_failed", Some("voice_id")));
        let (status, wav) = bytes(api, "/v1/voices/bella/preview", json!({ "text": "**Hello!** 🎉" })).await;
        assert_eq!(status, 200);
        let wav = hound::WavReader::new(&wav[..]).unwrap();
        assert_eq!((wav.spec().sample_rate, wav.len()), (24_000, 2_400));
        assert_eq!(server.asked()[0].body["input"], "Hello!");
        let failed = api.post("/v1/voices/poor/preview", json!({ "text": "Hello!" })).await;
        assert_eq!(failed.error(), (503, "unavailable", None));
        assert!(!failed.body.to_string().contains(KEY));
        let cast = actors::call::voice::cast(world.deps(), tenant.id, "poor", "en").await.unwrap();
        assert_eq!((cast.first.name(), cast.local.name()), ("openai", "tones"));
    }

    async fn voices_are_listed_in_pages(world: &mut World) {
        let tenant = world.tenant().await;
        let api = &tenant.api;
        let ids = async |path: &str| -> Vec<String> {
            let page = api.get(path).await.ok();
            page["data"].as_array().unwrap().iter().map(|voice| voice["id"].as_str().unwrap().to_owned()).collect()
        };
        assert_eq!(ids("/v1/voices").await, ["builtin:tones"], "tests speak in tones");
        world.change_setting("realtime_url", json!("ws://127.0.0.1:9/v1/realtime")).await;
        let mut clones = Vec::new();
        for _ in 0..3 {
            clones.push(clone(api, [good()]).await);
            world.advance(seconds(1)).await;
        }
        let all = ids("/v1/voices?order=asc").await;
        assert_eq!((all.len(), &all[0][..], &all[11..]), (14, "builtin:tones", &clones[..]));
        for order in ["asc", "desc"] {
            let (mut read, mut cursor) = (Vec::new(), String::new());
            loop {
                let page = api.get(&format!("/v1/voices?limit=2&order={order}{cursor}")).await.ok();
                read.extend(page["data"].as_array().unwrap().iter().map(|voice| voice["id"].as_str().unwrap().to_owned()));
                let Some(next) = page["next_cursor"].as_str() else { break };
                cursor = format!("&cursor={next}");
            }
            if order == "desc" {
                read.reverse();
            }
            assert_eq!(read, all, "{order}");
        }
        assert_eq!(ids("/v1/voices?type=cloned&order=asc").await, clones);
        assert_eq!(ids("/v1/voices?type=provider").await.len(), 10);
        assert_eq!(ids("/v1/voices?status=failed").await.len(), 3);
        assert_eq!(api.get("/v1/voices?type=opera").await.error(), (422, "validation_failed", Some("type")));
        let (status, wav) = bytes(api, "/v1/voices/builtin:tones/preview", json!({ "text": "One two three." })).await;
        assert!(status == 200 && wav.starts_with(b"RIFF"));
        assert_eq!(api.post("/v1/voices/marin/preview", json!({ "text": "x" })).await.error(), (501, "not_configured", None));
        assert_eq!(api.post("/v1/voices/builtin:tones/preview", json!({ "text": "x".repeat(501) })).await.error(), (422, "validation_failed", Some("text")));
        assert_eq!(api.get("/v1/voices/builtin:tones").await.ok()["type"], "builtin");
        assert_eq!(api.get("/v1/voices/builtin:opera").await.error(), (404, "not_found", None));
        assert_eq!(api.delete("/v1/voices/builtin:tones").await.error(), (409, "invalid_state", None));
        assert_eq!(api.patch("/v1/voices/builtin:tones", json!({ "name": "x" })).await.error(), (409, "invalid_state", None));
        // What is spoken is limited by its length.
        let mut limited = false;
        for _ in 0..25 {
            limited |= bytes(api, "/v1/voices/builtin:tones/preview", json!({ "text": "la ".repeat(160) })).await.0 == 429;
        }
        assert!(limited);
    }
}
