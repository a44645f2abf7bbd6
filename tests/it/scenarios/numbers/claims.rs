//! Whose a number is for live use: proved by a code that came to it, or said by the operator; and nobody else is told.
use crate::{
    on_both,
    scenarios::messages::{PERSON, live, text, with_provider},
    world::{
        Api, Backend, Tenant, TestDatabase, World, minutes,
        twilio::{self, TOKEN, Twilio},
    },
};
use entities::{
    ids::TenantId,
    number_claim::{self, Source},
    values::{Env, Moment},
    verified_number,
};
use serde_json::{Value, json};

const NUMBER: &str = "+12025550177";
/// Nobody has it.
const FREE: &str = "+12025550178";

async fn add(api: &Api) -> String {
    let number = api.post("/v1/numbers", json!({ "phone_number": NUMBER })).await.ok();
    assert_eq!(number["status"], "unverified", "{number}");
    format!("/v1/numbers/{}", number["id"].as_str().unwrap())
}

async fn status(api: &Api, number: &str) -> String {
    api.get(number).await.ok()["status"].as_str().unwrap().to_owned()
}

/// The answer to the right code, which came to the number.
async fn prove(api: &Api, provider: &Twilio) -> Value {
    let row = api
        .post("/v1/verified_numbers", json!({ "phone_number": NUMBER }))
        .await
        .ok();
    // Whatever else is being sent meanwhile.
    let mut sent = provider.asked().into_iter().rev().map(|asked| asked.fields);
    let sent = sent.find(|fields| fields["To"] == NUMBER).unwrap();
    let code: String = sent["Body"].chars().take(8).collect();
    assert!(code.bytes().all(|byte| byte.is_ascii_digit()), "{}", sent["Body"]);
    let path = format!("/v1/verified_numbers/{}/confirm", row["id"].as_str().unwrap());
    let wrong = format!("{:08}", (code.parse::<u32>().unwrap() + 1) % 100_000_000);
    assert_eq!(
        api.post(&path, json!({ "code": wrong })).await.error(),
        (422, "validation_failed", Some("code"))
    );
    api.post(&path, json!({ "code": code })).await.ok()
}

/// Without what differs each time, and with one name for both numbers.
fn plain(mut body: Value, number: &str) -> String {
    fn strip(value: &mut Value) {
        if let Value::Object(fields) = value {
            fields.retain(|name, _| {
                !["id", "request_id", "sandbox_code", "provider_message_id"].contains(&name.as_str())
            });
            fields.values_mut().for_each(strip);
        } else if let Value::Array(values) = value {
            values.iter_mut().for_each(strip);
        }
    }
    strip(&mut body);
    body.to_string().replace(number, "N")
}

/// All that a workspace is answered about a number.
async fn answers(tenant: &Tenant, live: &Api, number: &str) -> Vec<(String, u16, String)> {
    let text = json!({ "to_number": PERSON, "body": "x", "from_number": number });
    let texts = json!({ "name": "x", "channel": "sms", "template": { "body": "x" }, "from_numbers": [number] });
    let (alone, to) = (json!({ "phone_number": number }), json!({ "to_number": number }));
    let sandbox = json!({ "to_number": number, "from_number": "+15002340009", "body": "x" });
    let mut answers = Vec::new();
    let mut note = |what: String, answer: crate::world::Answer| {
        answers.push((what, answer.status.as_u16(), plain(answer.body, number)));
    };
    for round in ["before", "after"] {
        for (path, body) in [
            ("/v1/sms_messages", &text),
            ("/v1/campaigns", &texts),
            ("/v1/verified_numbers", &alone),
        ] {
            note(format!("{round}: live {path}"), live.post(path, body.clone()).await);
        }
        for (path, body) in [
            ("/v1/campaigns", &texts),
            ("/v1/_sandbox/inbound_calls", &to),
            ("/v1/_sandbox/inbound_sms", &sandbox),
            ("/v1/numbers", &alone),
            ("/v1/numbers", &alone),
        ] {
            note(format!("{round}: {path}"), tenant.api.post(path, body.clone()).await);
        }
        note(format!("{round}: numbers"), live.get("/v1/numbers").await);
        note(
            format!("{round}: verified numbers"),
            live.get("/v1/verified_numbers").await,
        );
    }
    let id = tenant.api.get("/v1/numbers").await.ok()["data"][0]["id"]
        .as_str()
        .unwrap()
        .to_owned();
    for path in [format!("/v1/numbers/{id}"), format!("/v1/numbers/{id}/stats")] {
        let mut answer = tenant.api.get(&path).await;
        if let Some(fields) = answer.body.as_object_mut() {
            fields.remove("number_id");
        }
        note("one".into(), answer);
    }
    note("delete".into(), tenant.api.delete(&format!("/v1/numbers/{id}")).await);
    let id = live.get("/v1/verified_numbers").await.ok()["data"][0]["id"]
        .as_str()
        .unwrap()
        .to_owned();
    note(
        "delete".into(),
        live.delete(&format!("/v1/verified_numbers/{id}")).await,
    );
    answers
}

on_both! {
    /// Nobody can ask us whose a number is.
    async fn anothers_number_is_answered_like_nobodys(world: &mut World) {
        let (owner, curious, provider) = (world.tenant().await, world.tenant().await, Twilio::start().await);
        let live = with_provider(world, &curious, &provider).await;
        add(&owner.api).await;
        world.claim_number(owner.id, NUMBER).await;
        let (foreign, free) = (answers(&curious, &live, NUMBER).await, answers(&curious, &live, FREE).await);
        assert_eq!(foreign, free);
        let made = foreign.iter().filter(|(what, status, _)| what.ends_with(" /v1/numbers") && *status == 201).count();
        assert_eq!((made, foreign.len()), (1, 24), "{foreign:?}");
        assert_eq!(number_claim::load(&world.deps().db.read, &NUMBER.parse().unwrap()).await.unwrap().unwrap().tenant_id, owner.id);
        world.settle().await;
    }

    /// What a test key is shown proves nothing; what came to the number does.
    async fn a_code_that_came_to_a_number_claims_it(world: &mut World) {
        let (tenant, provider) = (world.tenant().await, Twilio::start().await);
        let api = with_provider(world, &tenant, &provider).await;
        let number = add(&tenant.api).await;
        let from = json!({ "to_number": PERSON, "body": "x", "from_number": NUMBER });
        let refused = api.post("/v1/sms_messages", from.clone()).await;
        assert_eq!(refused.error(), (422, "validation_failed", Some("from_number")));
        assert!(refused.body["error"]["message"].as_str().unwrap().contains("is not verified for live use"), "{}", refused.body);
        // In the sandbox it works as it is.
        let played = json!({ "to_number": "+15002340000", "body": "x", "from_number": NUMBER });
        tenant.api.post("/v1/sms_messages", played).await.ok();
        let shown = tenant.api.post("/v1/verified_numbers", json!({ "phone_number": NUMBER })).await.ok();
        let path = format!("/v1/verified_numbers/{}", shown["id"].as_str().unwrap());
        tenant.api.post(&format!("{path}/confirm"), json!({ "code": shown["sandbox_code"] })).await.ok();
        assert_eq!(status(&api, &number).await, "unverified");
        // It may be called by test keys all the while.
        let asked = api.post("/v1/verified_numbers", json!({ "phone_number": NUMBER })).await.ok();
        assert_eq!((asked["status"].as_str(), asked["expires_at"].is_string()), (Some("verified"), true));
        let again = tenant.api.post("/v1/verified_numbers", json!({ "phone_number": NUMBER })).await;
        assert_eq!(again.error(), (409, "already_exists", Some("phone_number")), "a test key has nothing to prove");
        let proven = prove(&api, &provider).await;
        assert_eq!((proven["status"].as_str(), &proven["expires_at"]), (Some("verified"), &Value::Null));
        assert_eq!((status(&api, &number).await, status(&tenant.api, &number).await), ("active".into(), "active".into()));
        let again = api.post("/v1/verified_numbers", json!({ "phone_number": NUMBER })).await;
        assert_eq!(again.error(), (409, "already_exists", Some("phone_number")));
        let sent = api.post("/v1/sms_messages", from).await.ok();
        world.settle().await;
        assert_eq!(provider.asked().pop().unwrap().fields["From"], NUMBER);
        assert_eq!(sent["from_number"], NUMBER);
        // With the number goes the claim.
        assert_eq!(api.delete(&number).await.status, 204);
        let number = add(&tenant.api).await;
        assert_eq!(text_from(&api).await, crate::scenarios::messages::SHARED);
        prove(&api, &provider).await;
        assert_eq!((status(&api, &number).await, text_from(&api).await), ("active".into(), NUMBER.into()));
    }

    /// A number that was given out again goes to whoever answers it now; whoever lost it is told, and may prove it in turn.
    async fn a_fresh_code_beats_an_old_one_but_not_the_operator(world: &mut World) {
        let (first, second, provider) = (world.tenant().await, world.tenant().await, Twilio::start().await);
        let a = with_provider(world, &first, &provider).await;
        let b = live(world, &second).await;
        let (of_a, of_b) = (add(&a).await, add(&b).await);
        let both = async || (status(&a, &of_a).await, status(&b, &of_b).await);
        let are = |of_a: &str, of_b: &str| (of_a.to_owned(), of_b.to_owned());
        prove(&a, &provider).await;
        assert_eq!(both().await, are("active", "unverified"));
        let later = text(&a, PERSON, json!({ "from_number": NUMBER, "scheduled_at": "2027-03-02T13:05:00Z" })).await;
        arrive(world, "SM1").await;
        let inbound = async |api: &Api| api.get("/v1/sms_messages?direction=inbound").await.ok()["data"].as_array().unwrap().len();
        assert_eq!((inbound(&a).await, inbound(&b).await), (1, 0));
        prove(&b, &provider).await;
        assert_eq!(both().await, are("unverified", "active"));
        arrive(world, "SM2").await;
        assert_eq!((inbound(&a).await, inbound(&b).await), (1, 1));
        world.advance(minutes(6)).await;
        let barred = a.get(&format!("/v1/sms_messages/{later}")).await.ok();
        assert_eq!((barred["status"].as_str(), barred["error"]["code"].as_str()), (Some("failed"), Some("sender_unverified")));
        let mails = world.mail_files();
        assert_eq!(mails.len(), 1);
        assert!(mails[0].contains(&format!("{}@example.com", first.slug)) && !mails[0].contains(&second.slug), "{}", mails[0]);
        assert!(mails[0].contains(&format!("{NUMBER} is no longer verified for live use")), "{}", mails[0]);
        prove(&a, &provider).await;
        assert_eq!(both().await, are("active", "unverified"), "who answers it can always take it back");
        world.claim_number(second.id, NUMBER).await;
        assert_eq!(both().await, are("unverified", "active"));
        assert_eq!(prove(&a, &provider).await["status"], "verified");
        assert_eq!(both().await, are("unverified", "active"), "the operator has seen a contract");
        // A word of the operator's own workspace is no other's.
        assert_eq!(b.delete(&of_b).await.status, 204);
        prove(&a, &provider).await;
        assert_eq!(status(&a, &of_a).await, "active");
        world.advance(minutes(1)).await;
        assert_eq!(world.mail_files().len(), 3);
    }
}

async fn text_from(api: &Api) -> String {
    let id = text(api, PERSON, json!({})).await;
    let sent = api.get(&format!("/v1/sms_messages/{id}")).await.ok();
    sent["from_number"].as_str().unwrap().to_owned()
}

async fn arrive(world: &World, sid: &str) {
    let url = format!("{}/v1/_internal/twilio/inbound", world.url);
    let fields = [
        ("MessageSid", sid),
        ("From", PERSON),
        ("To", NUMBER),
        ("Body", "Hello?"),
    ];
    let answer = twilio::call_back(&url, &fields, &twilio::signature(TOKEN, &url, &fields)).await;
    assert_eq!(answer.0, 200);
}

/// A database of before: only codes that came to a number have proved anything; of two workspaces the later one has it.
fn migrated(backend: Backend) {
    actix_rt::System::new().block_on(async {
        let Some(mut database) = TestDatabase::new(backend).await else {
            return;
        };
        let location = entities::db::Location::parse(&database.url).unwrap();
        let db = entities::db::Db::open(&location).await.unwrap();
        let pool = db.write.pool().unwrap();
        migration::up_to(pool, "m2026_11_22_000017_numbers").await.unwrap();
        let ids = runtime::ids::Ids::new(runtime::clock::Clock::manual(Moment::from_millis(1_700_000_000_000)));
        let (first, second): (TenantId, TenantId) = (ids.next(), ids.next());
        let at = |second| Moment::from_millis(1_700_000_000_000).plus_seconds(second);
        let proven = |number: &str, tenant, env, verified_at| verified_number::Model {
            env,
            ..verified_number::Model::vouched(ids.next(), tenant, number.parse().unwrap(), verified_at)
        };
        let pending = verified_number::Model {
            status: verified_number::Status::Pending,
            verified_at: None,
            ..proven("+12025550174", first, Env::Live, at(0))
        };
        for row in [
            proven("+12025550171", first, Env::Live, at(5)),
            proven("+12025550172", first, Env::Test, at(5)),
            proven("+12025550173", first, Env::Live, at(9)),
            proven("+12025550173", second, Env::Live, at(7)),
            pending,
        ] {
            verified_number::save(&db.write, &row).await.unwrap();
        }
        migration::up(pool).await.unwrap();
        let mut claims = Vec::new();
        for number in ["+12025550171", "+12025550172", "+12025550173", "+12025550174"] {
            let claim = number_claim::load(&db.read, &number.parse().unwrap()).await.unwrap();
            claims.push(claim.map(|claim| (claim.tenant_id, claim.source, claim.claimed_at)));
        }
        let code = |seconds| Some((first, Source::Code, at(seconds)));
        assert_eq!(claims, [code(5), None, code(9), None]);
        db.close().await;
        database.drop().await;
    });
}

#[test]
fn what_was_proved_before_is_claimed_on_sqlite() {
    migrated(Backend::Sqlite);
}
#[test]
fn what_was_proved_before_is_claimed_on_postgres() {
    migrated(Backend::Postgres);
}
