//! What the specification says to the letter, where it is easily missed.
use super::{
    rooms,
    the_call::{agent, call, session, told},
};
use crate::{
    on_both,
    world::{Tenant, World, minutes, seconds},
};
use actors::session::caller_id;
use entities::values::{Env, Scopes};
use serde_json::{Value, json};

on_both! {
    async fn a_call_always_says_who_speaks_and_who_calls(world: &mut World) {
        let tenant = world.tenant().await;
        let (sandbox, voice) = (json!("+15001000000"), json!("builtin:tones"));
        let ann = agent(&tenant, json!({ "transfer": { "number": "+15002000010" } })).await;
        let room = rooms::create(&tenant, &ann, json!({ "expires_in_seconds": 60 })).await;
        assert_eq!(room["voice_id"], voice);
        // One that is handed over, one that waits for its time, and a campaign's, tried twice.
        let ids = [call(&tenant, &ann, "+15002345677", json!({})).await, call(&tenant, &ann, "+15002345680", json!({ "scheduled_at": "2027-03-02T13:01:00Z" })).await];
        let retry = json!({ "max_attempts": 2, "min_gap_minutes": 0 });
        tenant.run_campaign(&["+15002345699"], json!({ "agent_id": ann, "retry": retry })).await;
        world.advance(minutes(3)).await;
        let created = told(&tenant, "session.created").await;
        assert_eq!(created.len(), 5, "{created:?}");
        for told in &created {
            let of_room = told["session_id"] == room["session_id"];
            assert_eq!((&told["voice_id"], &told["from_number"]), (&voice, if of_room { &Value::Null } else { &sandbox }), "{told}");
            let read = session(&tenant, told["session_id"].as_str().unwrap()).await;
            assert_eq!((&read["voice_id"], &read["from_number"], &read["to_number"]), (&told["voice_id"], &told["from_number"], &told["to_number"]));
        }
        let handed_over = &told(&tenant, "session.transfer_initiated").await[0];
        assert_eq!((handed_over["session_id"].as_str(), &handed_over["from_number"]), (Some(&*ids[0]), &sandbox));

        // A number of its own comes first, and what is asked for before that.
        tenant.api.post("/v1/numbers", json!({ "phone_number": "+12025550123", "agent_id": ann })).await.ok();
        let own = call(&tenant, &ann, "+15002345710", json!({})).await;
        let asked = call(&tenant, &ann, "+15002345720", json!({ "from_number": "+12025550140", "voice_id": "builtin:tones" })).await;
        let came_in = tenant.api.post("/v1/_sandbox/inbound_calls", json!({ "to_number": "+12025550123", "from_number": "+15005550001" })).await.ok();
        for (id, from_number) in [(own.as_str(), "+12025550123"), (&asked, "+12025550140"), (came_in["id"].as_str().unwrap(), "+15005550001")] {
            let read = session(&tenant, id).await;
            assert_eq!((&read["voice_id"], &read["from_number"]), (&voice, &json!(from_number)), "{read}");
        }
        world.advance(minutes(2)).await;
    }

    async fn an_unknown_voice_is_refused_everywhere(world: &mut World) {
        let tenant = world.tenant().await;
        let api = &tenant.api;
        let ann = agent(&tenant, json!({ "voice_id": "builtin:tones" })).await;
        let draft = api.post("/v1/campaigns", json!({ "name": "x", "agent_id": ann, "voice_id": "builtin:tones" })).await.ok();
        let campaign = format!("/v1/campaigns/{}", draft["id"].as_str().unwrap());
        let people = json!([{ "phone_number": "+15002345600" }]);
        for voice in ["whatever", "marin", "builtin:espeak-ng-de", "0197c5c1-0d5e-7cc0-9d3c-0a1b2c3d4e5f"] {
            let answers = [
                api.post("/v1/agents", json!({ "name": "x", "prompt": "x", "voice_id": voice })).await,
                api.patch(&format!("/v1/agents/{ann}"), json!({ "voice_id": voice })).await,
                api.post("/v1/sessions", json!({ "agent_id": ann, "to_number": "+15002345600", "voice_id": voice })).await,
                api.post("/v1/rooms", json!({ "agent_id": ann, "voice_id": voice })).await,
                api.post("/v1/campaigns", json!({ "name": "x", "agent_id": ann, "voice_id": voice })).await,
                api.patch(&campaign, json!({ "voice_id": voice })).await,
                api.post("/v1/campaigns/run", json!({ "name": "x", "agent_id": ann, "voice_id": voice, "contacts": people })).await,
            ];
            for (n, answer) in answers.iter().enumerate() {
                assert_eq!(answer.error(), (422, "validation_failed", Some("voice_id")), "{voice}, the {n}th");
            }
        }
        assert_eq!(tenant.event_types().await, ["campaign.created"]);
        assert_eq!(tenant.campaign(draft["id"].as_str().unwrap()).await["voice_id"], "builtin:tones");
    }

    /// The operator takes the provider away: what has its voice says so where it is chosen, and calls are made all the same.
    async fn a_voice_that_is_gone_keeps_nobody_from_being_called(world: &mut World) {
        world.change_settings(&[("realtime_url", json!("ws://127.0.0.1:9/")), ("realtime_voices", json!("eve, marin"))]).await;
        let tenant = world.tenant().await;
        let api = &tenant.api;
        let listed = api.get("/v1/voices?type=provider&order=asc").await.ok();
        let names: Vec<&str> = listed["data"].as_array().unwrap().iter().map(|voice| voice["id"].as_str().unwrap()).collect();
        assert_eq!(names, ["eve", "marin"]);
        let ann = agent(&tenant, json!({ "voice_id": "eve" })).await;
        let draft = api.post("/v1/campaigns", json!({ "name": "x", "agent_id": ann, "voice_id": "eve" })).await.ok();
        let campaign = format!("/v1/campaigns/{}", draft["id"].as_str().unwrap());
        api.post(&format!("{campaign}/contacts"), json!({ "contacts": [{ "phone_number": "+15002345600" }] })).await.ok();
        let spoken = call(&tenant, &ann, "+15002345710", json!({})).await;
        assert_eq!(session(&tenant, &spoken).await["voice_id"], "eve");
        world.advance(minutes(2)).await;
        world.change_settings(&[("realtime_url", json!(""))]).await;

        assert_eq!(api.post(&format!("{campaign}/start"), json!({})).await.error().2, Some("voice_id"));
        assert_eq!(api.post(&format!("{campaign}/duplicate"), json!({})).await.error().2, Some("voice_id"));
        api.patch(&format!("/v1/agents/{ann}"), json!({ "prompt": "Be brief." })).await.ok();
        let spoken = call(&tenant, &ann, "+15002345720", json!({})).await;
        assert_eq!(session(&tenant, &spoken).await["voice_id"], "builtin:tones");
        api.patch(&campaign, json!({ "voice_id": null })).await.ok();
        api.post(&format!("{campaign}/start"), json!({})).await.ok();
        world.advance(minutes(2)).await;
        assert!(told(&tenant, "session.created").await.iter().skip(1).all(|created| created["voice_id"] == "builtin:tones"));
    }

    async fn a_live_call_shows_a_number_with_a_trunk(world: &mut World) {
        let (tenant, stranger) = (world.tenant().await, world.tenant().await);
        let owner = (tenant.id, Env::Live);
        let of_call = async |asked: Option<&str>| {
            let asked = asked.map(|number| number.parse().unwrap());
            let found = caller_id::of_call(&world.deps().db.read, owner, asked).await;
            found.map(|number| number.to_string()).map_err(|error| error.to_string())
        };
        let number = async |tenant: &Tenant, number: &str, trunk: &Value| {
            tenant.api.post("/v1/numbers", json!({ "phone_number": number, "trunk_id": trunk })).await.ok()["id"].as_str().unwrap().to_owned()
        };
        let trunk = json!({ "name": "Carrier", "host": "sip.example.com" });
        let (own, theirs) = (tenant.api.post("/v1/sip_trunks", trunk.clone()).await.ok(), stranger.api.post("/v1/sip_trunks", trunk).await.ok());
        number(&tenant, "+12025550123", &Value::Null).await;
        world.claim_number(tenant.id, "+12025550123").await;
        number(&stranger, "+12025550199", &theirs["id"]).await;
        assert!(of_call(None).await.unwrap_err().contains("from_number"));
        let first = number(&tenant, "+12025550124", &own["id"]).await;
        number(&tenant, "+12025550125", &own["id"]).await;
        assert!(of_call(Some("+12025550125")).await.unwrap_err().contains("verified"), "anybody may say that it is theirs");
        for claimed in ["+12025550124", "+12025550125"] {
            world.claim_number(tenant.id, claimed).await;
        }
        assert_eq!(of_call(None).await.unwrap(), "+12025550124");
        assert_eq!(of_call(Some("+12025550125")).await.unwrap(), "+12025550125");
        for other in ["+12025550123", "+12025550199", "+15001000000"] {
            assert!(of_call(Some(other)).await.unwrap_err().contains("from_number"), "{other}");
        }
        tenant.api.delete(&format!("/v1/numbers/{first}")).await;
        assert_eq!(of_call(None).await.unwrap(), "+12025550125");

        // A campaign says so when it is made.
        let live = world.api(tenant.id, Env::Live, Scopes::all()).await;
        let draft = |number: &str| json!({ "name": "x", "from_numbers": [number] });
        let refused = live.post("/v1/campaigns", draft("+12025550123")).await;
        assert_eq!(refused.error(), (422, "validation_failed", Some("from_numbers")));
        live.post("/v1/campaigns", draft("+12025550125")).await.ok();
        assert_eq!(tenant.api.post("/v1/campaigns", draft("+12025550123")).await.status, 201, "the sandbox shows any");
    }

    /// Who was being called when the service stopped in order is called again after its start, once, as the same attempt.
    async fn a_planned_restart_spends_no_attempt(world: &mut World) {
        let tenant = world.tenant().await;
        let ann = tenant.agent().await;
        let own = call(&tenant, &ann, "+15002345700", json!({})).await;
        let id = tenant.run_campaign(&["+15002345600", "+15002345602"], json!({ "agent_id": ann })).await;
        let capped = tenant.run_campaign(&["+15002345610"], json!({ "agent_id": ann, "caps": { "per_number_24h": 1 } })).await;
        world.advance(seconds(1)).await;
        let sessions = async |tenant: &Tenant| tenant.api.get("/v1/sessions?order=asc").await.ok()["data"].as_array().unwrap().clone();
        let calls = sessions(&tenant).await;
        assert!(calls.len() == 4 && calls.iter().all(|call| call["phase"] == "dialing"), "everybody is being called: {calls:?}");
        world.restart_in_order().await;
        world.advance(seconds(1)).await;

        let contacts = async |campaign: &str| tenant.api.get(&format!("/v1/campaigns/{campaign}/contacts?order=asc")).await.ok()["data"].as_array().unwrap().clone();
        for contact in contacts(&id).await {
            assert_eq!((contact["status"].as_str(), contact["attempts"].as_i64()), (Some("dispatched"), Some(1)), "{contact}");
        }
        // The phone has rung: the call counts for whoever limits those.
        let contact = &contacts(&capped).await[0];
        assert_eq!((contact["status"].as_str(), contact["wait_reason"].as_str(), contact["attempts"].as_i64()), (Some("waiting"), Some("cap"), Some(0)), "{contact}");
        world.advance(minutes(3)).await;
        assert_eq!(session(&tenant, &own).await["end_reason"], "canceled", "a call of nobody's list is its program's affair");
        let of_campaign: Vec<Value> = sessions(&tenant).await.into_iter().filter(|call| call["campaign_id"] == *id).collect();
        let how: Vec<_> = of_campaign.iter().map(|call| (call["attempt"].as_i64().unwrap(), call["status"].as_str().unwrap(), call["end_reason"].as_str().unwrap())).collect();
        assert_eq!(how[..2], [(1, "failed", "canceled"); 2], "{how:?}");
        let mut again = how[2..].to_vec();
        again.sort_unstable();
        assert_eq!(again, [(1, "completed", "completed"), (1, "no_answer", "no_answer")]);
        let ends: Vec<(String, usize)> = ["dispatched", "completed", "failed"].map(|end| format!("campaign.contact_{end}")).into_iter().zip([4, 1, 1]).collect();
        for (kind, count) in ends {
            let told = told(&tenant, &kind).await;
            assert_eq!(told.iter().filter(|told| told["campaign_id"] == *id).count(), count, "{kind}");
        }
        let completed = &told(&tenant, "campaign.completed").await[0];
        assert_eq!(["total_contacts", "completed_sessions", "failed_sessions"].map(|count| completed[count].as_i64()), [Some(2), Some(1), Some(3)]);

        world.leap(minutes(24 * 60)).await;
        assert_eq!(contacts(&capped).await[0]["status"], "completed");
    }
}
