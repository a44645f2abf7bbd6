//! Numbers that prove whose they are, so that test keys may call them.
use crate::{
    on_both,
    world::{Api, Tenant, World, minutes, seconds},
};
use actors::leases::Of;
use entities::values::{Env, Scopes};
use futures_util::future::join_all;
use serde_json::{Value, json};
use std::sync::{Arc, Mutex};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpListener,
};

const NUMBER: &str = "+12025550140";

async fn ask(api: &Api) -> Value {
    api.post("/v1/verified_numbers", json!({ "phone_number": NUMBER }))
        .await
        .ok()
}

fn path(row: &Value) -> String {
    format!("/v1/verified_numbers/{}", row["id"].as_str().unwrap())
}

/// Another code than this one.
fn wrong(code: &Value) -> Value {
    let code: u32 = code.as_str().unwrap().parse().unwrap();
    json!({ "code": format!("{:06}", (code + 1) % 1_000_000) })
}

async fn call(tenant: &Tenant, agent: &str) -> (u16, String) {
    let answer = tenant
        .api
        .post("/v1/sessions", json!({ "to_number": NUMBER, "agent_id": agent }))
        .await;
    (
        answer.status.as_u16(),
        answer.body["error"]["code"].as_str().unwrap_or("none").to_owned(),
    )
}

/// What the SMS provider was sent.
type Texts = Arc<Mutex<Vec<String>>>;

/// An SMS provider that takes everything; answers its address.
async fn provider(texts: &Texts) -> String {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let address = listener.local_addr().unwrap();
    let texts = texts.clone();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut request = Vec::new();
            let body = loop {
                if stream.read_buf(&mut request).await.unwrap() == 0 {
                    break String::new();
                }
                let text = String::from_utf8_lossy(&request).to_lowercase();
                let length = text
                    .split_once("content-length: ")
                    .and_then(|(_, rest)| rest.lines().next()?.parse::<usize>().ok());
                if let (Some(at), Some(length)) = (text.find("\r\n\r\n"), length)
                    && request.len() >= at + 4 + length
                {
                    break String::from_utf8_lossy(&request[at + 4..]).into_owned();
                }
            };
            texts.lock().unwrap().push(body);
            let answer = r#"{"sid":"SM1","status":"queued"}"#;
            let head = format!(
                "HTTP/1.1 201 Created\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n",
                answer.len()
            );
            stream.write_all(format!("{head}{answer}").as_bytes()).await.unwrap();
        }
    });
    format!("http://{address}")
}

on_both! {
    async fn a_number_may_be_called_once_its_code_is_said(world: &mut World) {
        let tenant = world.tenant().await;
        let agent = tenant.agent().await;
        let not_verified = (403, "number_not_verified".to_owned());
        assert_eq!(call(&tenant, &agent).await, not_verified);
        let asked = json!({ "phone_number": "(202) 555-0140", "label": "My own" });
        let row = tenant.api.post("/v1/verified_numbers", asked).await.ok();
        assert_eq!((row["phone_number"].as_str(), row["status"].as_str(), row["method"].as_str(), row["label"].as_str()), (Some(NUMBER), Some("pending"), Some("sms"), Some("My own")));
        assert_eq!((row["expires_at"].as_str(), &row["verified_at"]), (Some("2027-03-02T13:10:00.000Z"), &Value::Null));
        let code = row["sandbox_code"].clone();
        assert_eq!(code.as_str().unwrap().len(), 6);
        assert_eq!(tenant.api.get(&path(&row)).await.ok(), row, "it is shown while it is waited for");
        // Waiting is not enough, neither for a call nor for a campaign.
        assert_eq!(call(&tenant, &agent).await, not_verified);
        let campaign = tenant.run_campaign(&[NUMBER], json!({})).await;
        world.advance(seconds(5)).await;
        assert_eq!(tenant.campaign(&campaign).await["counts"]["skipped"], 1);
        let draft = tenant.api.post("/v1/campaigns", json!({ "name": "x", "agent_id": agent })).await.ok();
        let draft = format!("/v1/campaigns/{}", draft["id"].as_str().unwrap());
        tenant.api.post(&format!("{draft}/contacts"), json!({ "contacts": [{ "phone_number": NUMBER }] })).await.ok();
        let before = tenant.api.post(&format!("{draft}/preflight"), json!({})).await.ok();

        let refused = tenant.api.post(&format!("{}/confirm", path(&row)), wrong(&code)).await;
        assert_eq!(refused.error(), (422, "validation_failed", Some("code")));
        assert!(refused.body["error"]["message"].as_str().unwrap().contains("tries left: 4"), "{}", refused.body);
        let confirm = async || tenant.api.post(&format!("{}/confirm", path(&row)), json!({ "code": code })).await;
        let verified = confirm().await.ok();
        assert_eq!((verified["status"].as_str(), verified["verified_at"].as_str(), &verified["expires_at"]), (Some("verified"), Some("2027-03-02T13:00:05.000Z"), &Value::Null));
        assert!(verified.get("sandbox_code").is_none());
        assert_eq!(confirm().await.ok(), verified, "a second time is no change");
        let after = tenant.api.post(&format!("{draft}/preflight"), json!({})).await.ok();
        assert_ne!(before, after, "who can be called is counted anew");
        assert_eq!(call(&tenant, &agent).await.0, 201);
        world.advance(minutes(5)).await;
        let again = tenant.api.post("/v1/verified_numbers", json!({ "phone_number": NUMBER })).await;
        assert_eq!(again.error(), (409, "already_exists", Some("phone_number")));
        let renamed = tenant.api.patch(&path(&row), json!({ "label": null })).await.ok();
        assert_eq!((&renamed["label"], renamed["status"].as_str()), (&Value::Null, Some("verified")));
        assert_eq!(tenant.api.patch(&path(&row), json!({ "status": "pending" })).await.error().2, Some("status"));
        let listed = tenant.api.get("/v1/verified_numbers?status=verified").await.ok();
        assert_eq!(listed["data"].as_array().unwrap().len(), 1);
        assert_eq!(tenant.api.get("/v1/verified_numbers?status=pending").await.ok()["data"], json!([]));
        // A call that waits when it is taken back is not placed.
        tenant.api.patch("/v1/concurrency", json!({ "limit": 1 })).await.ok();
        let mut sessions = Vec::new();
        for number in ["+15002340000", NUMBER] {
            let asked = json!({ "to_number": number, "agent_id": agent, "queue_ttl_seconds": 600 });
            sessions.push(tenant.api.post("/v1/sessions", asked).await.ok()["id"].as_str().unwrap().to_owned());
            world.advance(seconds(1)).await;
        }
        assert_eq!(tenant.api.delete(&path(&row)).await.status, 204);
        world.advance(minutes(5)).await;
        let session = tenant.api.get(&format!("/v1/sessions/{}", sessions[1])).await.ok();
        assert_eq!((session["end_reason"].as_str(), &session["dialed_at"]), (Some("canceled"), &Value::Null), "{session}");
        assert!(session["error"]["message"].as_str().unwrap().contains("verified"), "{session}");
        assert_eq!(call(&tenant, &agent).await, not_verified);
        assert_eq!(tenant.api.delete(&path(&row)).await.error().0, 404);
    }

    /// Ten minutes; then, and after five wrong tries, another code must be asked for.
    async fn a_code_is_good_for_ten_minutes_and_five_tries(world: &mut World) {
        let tenant = world.tenant().await;
        let row = ask(&tenant.api).await;
        let confirm = async |body: Value| tenant.api.post(&format!("{}/confirm", path(&row)), body).await;
        world.advance(minutes(10)).await;
        let late = confirm(json!({ "code": row["sandbox_code"] })).await;
        assert_eq!(late.error(), (409, "invalid_state", None));
        assert!(late.body["error"]["message"].as_str().unwrap().contains("ask for a new one"));
        assert!(tenant.api.get(&path(&row)).await.ok().get("sandbox_code").is_none(), "a code that is no good is not shown");
        let second = ask(&tenant.api).await;
        assert_eq!(second["id"], row["id"], "the same number");
        // All at once: each is counted.
        let tries = join_all((0..10).map(|_| confirm(wrong(&second["sandbox_code"])))).await;
        let refused = |code: &str| tries.iter().filter(|answer| answer.error().1 == code).count();
        assert_eq!((refused("validation_failed"), refused("invalid_state")), (5, 5));
        assert_eq!(confirm(json!({ "code": second["sandbox_code"] })).await.error(), (409, "invalid_state", None), "the right one comes too late");
        let third = ask(&tenant.api).await;
        let (second, third) = (second["sandbox_code"].clone(), third["sandbox_code"].clone());
        if second != third {
            assert_eq!(confirm(json!({ "code": second })).await.error().2, Some("code"), "an old one is good for nothing");
        }
        assert_eq!(confirm(json!({ "code": third })).await.ok()["status"], "verified");
    }

    /// Nobody is pestered: five codes an hour, also when the number is deleted in between; fifty for a workspace.
    async fn codes_are_limited(world: &mut World) {
        let (tenant, other) = (world.tenant().await, world.tenant().await);
        for _ in 0..3 {
            ask(&tenant.api).await;
        }
        let row = ask(&tenant.api).await;
        tenant.api.delete(&path(&row)).await;
        let fifth = ask(&tenant.api).await;
        assert_ne!(row["id"], fifth["id"]);
        let refused = tenant.api.post("/v1/verified_numbers", json!({ "phone_number": NUMBER })).await;
        assert_eq!((refused.error(), refused.headers["retry-after"].to_str().unwrap()), ((429, "rate_limited", None), "3601"));
        assert_eq!(tenant.api.get(&path(&fifth)).await.ok(), fifth, "the last code is still good");
        ask(&other.api).await;
        world.advance(minutes(60)).await;
        ask(&tenant.api).await;
        for n in 0..49 {
            tenant.api.post("/v1/verified_numbers", json!({ "phone_number": format!("+120255502{n:02}") })).await.ok();
        }
        let refused = tenant.api.post("/v1/verified_numbers", json!({ "phone_number": "+12025550300" })).await;
        assert_eq!(refused.error(), (429, "rate_limited", None));
        assert_eq!(world.rows("verification_codes").await, 51, "those of an hour ago are forgotten");
    }

    /// With a live key the SMS provider brings the code, and the API shows it to nobody.
    async fn a_live_key_has_the_code_texted(world: &mut World) {
        let texts = Texts::default();
        let provider = provider(&texts).await;
        // Each is checked with the others: the account comes last.
        for (name, value) in [("sms_url", provider.as_str()), ("sms_auth_token", "secret"), ("sms_from", "+12025550199"), ("sms_account_sid", "AC1")] {
            world.change_setting(name, value.into()).await;
        }
        let tenant = world.tenant().await;
        let live = world.api(tenant.id, Env::Live, Scopes::all()).await;
        let spoken = live.post("/v1/verified_numbers", json!({ "phone_number": NUMBER, "method": "call" })).await;
        assert_eq!((spoken.error().1, world.rows("verified_numbers").await), ("not_configured", 0), "nobody can call");
        let row = live.post("/v1/verified_numbers", json!({ "phone_number": NUMBER })).await.ok();
        assert_eq!((row["status"].as_str(), row.get("sandbox_code")), (Some("pending"), None));
        assert!(tenant.api.get(&path(&row)).await.ok().get("sandbox_code").is_none(), "nor to a test key");
        let text = texts.lock().unwrap().concat();
        assert!(text.contains("To=%2B12025550140"), "{text}");
        let code: String = text.split_once("Body=").unwrap().1.chars().take(8).collect();
        let confirmed = live.post(&format!("{}/confirm", path(&row)), json!({ "code": code })).await.ok();
        assert_eq!(confirmed["status"], "verified");
        world.advance(minutes(1)).await;
        assert_eq!(world.rows("sms_messages").await, 0, "it is kept nowhere");
        assert_eq!(texts.lock().unwrap().len(), 1, "sent once");
    }

    /// With a live key the code would have to be sent, which nothing is configured for: nothing is stored.
    async fn a_live_key_is_shown_no_code(world: &mut World) {
        let tenant = world.tenant().await;
        let live = world.api(tenant.id, Env::Live, Scopes::all()).await;
        for method in ["sms", "call"] {
            let refused = live.post("/v1/verified_numbers", json!({ "phone_number": NUMBER, "method": method })).await;
            assert_eq!(refused.error(), (501, "not_configured", None));
        }
        assert_eq!((world.rows("verified_numbers").await, world.rows("verification_codes").await), (0, 0));
        let row = ask(&tenant.api).await;
        let seen = live.get(&path(&row)).await.ok();
        assert_eq!((seen["status"].as_str(), seen.get("sandbox_code")), (Some("pending"), None));
        assert!(live.get("/v1/verified_numbers").await.ok()["data"][0].get("sandbox_code").is_none());
        let stored = entities::verified_number::load(&world.deps().db.read, tenant.id, row["id"].as_str().unwrap().parse().unwrap()).await.unwrap();
        let code = row["sandbox_code"].as_str().unwrap();
        assert!(!stored.code_hash.unwrap().contains(code) && !stored.sealed_code.unwrap().contains(code));
        let confirmed = live.post(&format!("{}/confirm", path(&row)), json!({ "code": code })).await.ok();
        assert_eq!(confirmed["status"], "verified");
    }

    async fn numbers_that_cost_a_fortune_or_need_no_proof_are_refused(world: &mut World) {
        let tenant = world.tenant().await;
        for (body, param) in [
            (json!({ "phone_number": "+19002345678" }), "phone_number"),
            (json!({ "phone_number": "+881612345678" }), "phone_number"),
            (json!({ "phone_number": "+491805123456" }), "phone_number"),
            (json!({ "phone_number": "+15002345670" }), "phone_number"),
            (json!({ "phone_number": "12" }), "phone_number"),
            (json!({}), "phone_number"),
            (json!({ "phone_number": NUMBER, "method": "fax" }), "method"),
            (json!({ "phone_number": NUMBER, "cod": 1 }), "cod"),
        ] {
            assert_eq!(tenant.api.post("/v1/verified_numbers", body.clone()).await.error(), (422, "validation_failed", Some(param)), "{body}");
        }
        let row = ask(&tenant.api).await;
        for body in [json!({}), json!({ "code": "" }), json!({ "code": 123456 })] {
            assert_eq!(tenant.api.post(&format!("{}/confirm", path(&row)), body).await.error(), (422, "validation_failed", Some("code")));
        }
        let code = json!({ "code": row["sandbox_code"] });
        assert_eq!(tenant.api.post(&format!("{}/confirm", path(&row)), code).await.ok()["status"], "verified", "what is no try is not counted");
    }

    /// The same request twice makes one code; one that a failed commit cut off makes none.
    async fn a_repeat_makes_no_second_code(world: &mut World) {
        let tenant = world.tenant().await;
        let ask = async || {
            let request = tenant.api.request(reqwest::Method::POST, "/v1/verified_numbers").header("Idempotency-Key", "once");
            tenant.api.send(request.json(&json!({ "phone_number": NUMBER }))).await
        };
        world.fail_next_commits(1);
        let first = ask().await;
        assert_eq!(first.status.as_u16(), 503, "{}", first.body);
        let (second, third) = (ask().await.ok(), ask().await.ok());
        assert_eq!((second["id"].clone(), second["sandbox_code"].clone()), (third["id"].clone(), third["sandbox_code"].clone()));
        assert_eq!(world.rows("verification_codes").await, 1);
    }

    /// The operator's word counts at once, whatever code is waited for.
    async fn the_operator_vouches_for_a_number(world: &mut World) {
        let tenant = world.tenant().await;
        let row = ask(&tenant.api).await;
        let (deps, id) = (world.deps(), tenant.id);
        let vouched = entities::verified_number::Model::vouched(deps.ids.next(), id, NUMBER.parse().unwrap(), deps.clock.now());
        for _ in 0..2 {
            let vouched = vouched.clone();
            deps.writer.run(Of::Anybody, move |db| {
                let vouched = vouched.clone();
                Box::pin(async move {
                    entities::verified_number::add(db, vouched).await?;
                    Ok(((), rules::commit::Commit::default()))
                })
            }).await.unwrap();
        }
        let after = tenant.api.get(&path(&row)).await.ok();
        assert_eq!((after["status"].as_str(), after.get("sandbox_code")), (Some("verified"), None));
        assert_eq!(world.rows("verified_numbers").await, 1);
    }
}
