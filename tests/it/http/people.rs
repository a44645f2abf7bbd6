//! One person: the file of all that is kept, and its erasure.
use crate::{
    on_both,
    world::{Tenant, World, minutes, seconds},
};
use entities::{
    session::{self, Filter},
    transcript,
    values::{Env, Scope, Scopes},
};
use serde_json::{Value, json};

const NUMBER: &str = "+15002345600";
const OF_NUMBER: &str = "phone_number=%2B15002345600";
const NAME: &str = "<script>alert('Zoë')</script>";

fn id(row: &Value) -> String {
    row["id"].as_str().unwrap().to_owned()
}

async fn count(tenant: &Tenant, path: &str) -> usize {
    tenant.api.get(path).await.ok()["data"].as_array().unwrap().len()
}

/// Some of everything: a recorded call, a contact that was called and one that was not, texts sent, received and waiting, an opt-out.
struct Known {
    session: String,
    texts: Vec<String>,
    called: String,
    waiting: String,
}

async fn known(world: &World, tenant: &Tenant) -> Known {
    let agent = json!({ "name": "x", "prompt": "x", "recording": { "enabled": true }, "brain": { "mode": "scripted", "replies": [{ "say": "Very well." }, { "say": "Goodbye.", "hang_up": true }] } });
    let agent = id(&tenant.api.post("/v1/agents", agent).await.ok());
    let script = json!([{ "say": "My dog is called Rex." }, { "say": "Bye." }]);
    let call = json!({ "to_number": NUMBER, "agent_id": agent, "contact": { "first_name": NAME, "email": "zoe@example.com" },
        "variables": { "dog": "Rex" }, "sandbox": { "script": script } });
    let session = id(&tenant.api.post("/v1/sessions", call).await.ok());
    world.advance(minutes(5)).await;
    let contact = json!({ "phone_number": NUMBER, "first_name": NAME, "variables": { "dog": "Rex" } });
    let called = json!({ "name": "over", "agent_id": agent, "contacts": [contact] });
    let called = id(&tenant.api.post("/v1/campaigns/run", called).await.ok());
    world.advance(minutes(10)).await;
    let waiting = id(&tenant
        .api
        .post("/v1/campaigns", json!({ "name": "draft", "agent_id": agent }))
        .await
        .ok());
    let contacts = json!({ "contacts": [contact, { "phone_number": "+15002345700", "first_name": "Eve" }] });
    tenant
        .api
        .post(&format!("/v1/campaigns/{waiting}/contacts"), contacts)
        .await
        .ok();
    let later = world.clock.now().plus_seconds(86_400).to_string();
    let mut texts = Vec::new();
    for text in [
        json!({ "to_number": NUMBER, "body": "Rex is well." }),
        json!({ "to_number": NUMBER, "body": "Rex?", "scheduled_at": later }),
    ] {
        texts.push(id(&tenant.api.post("/v1/sms_messages", text).await.ok()));
    }
    let reply = json!({ "to_number": "+15002349999", "from_number": NUMBER, "body": "Rex says hello." });
    texts.push(id(
        &tenant.api.post("/v1/_sandbox/inbound_sms", reply).await.ok()["message"],
    ));
    world.advance(minutes(1)).await;
    tenant.api.post("/v1/dnc", json!({ "phone_number": NUMBER })).await.ok();
    Known {
        session,
        texts,
        called,
        waiting,
    }
}

async fn erased(world: &World, tenant: &Tenant, whom: &str) -> Value {
    let begun = tenant.api.delete(&format!("/v1/people?{whom}")).await;
    assert_eq!(begun.status.as_u16(), 202, "{:#}", begun.body);
    world.settle().await;
    let path = format!("/v1/people/erasures/{}", id(&begun.body));
    tenant.api.get(&path).await.ok()
}

on_both! {
    async fn all_of_a_person_goes_and_the_report_says_what_stays(world: &mut World) {
        let (tenant, other) = (world.tenant().await, world.tenant().await);
        let (mine, theirs) = (known(world, &tenant).await, known(world, &other).await);
        let report = erased(world, &tenant, OF_NUMBER).await;
        assert_eq!((&report["status"], &report["error"], &report["waits_for"]), (&json!("done"), &Value::Null, &Value::Null), "{report:#}");
        let went = &report["erased"];
        assert_eq!((&went["sms"], &went["contacts"], &went["recordings"]), (&json!(3), &json!(2), &json!(2)), "{report:#}");
        assert_eq!(went["sessions"], 2, "the call, and the campaign's");
        // Nobody can tell any more whom it was about, but who asks for the same number finds it.
        assert_eq!((&report["phone_number"], &report["email"]), (&Value::Null, &Value::Null));
        assert_eq!(count(&tenant, &format!("/v1/people/erasures?{OF_NUMBER}")).await, 1);
        assert_eq!(count(&tenant, "/v1/people/erasures?phone_number=%2B15002345700").await, 0);
        let kept: Vec<&str> = report["kept"].as_array().unwrap().iter().map(|kept| kept["what"].as_str().unwrap()).collect();
        for what in ["do_not_call", "calls", "messages", "events", "ledger"] {
            assert!(kept.contains(&what), "{what} in {kept:?}");
        }

        assert_eq!(tenant.api.get(&format!("/v1/sessions/{}", mine.session)).await.error().0, 404);
        for text in &mine.texts {
            assert_eq!(tenant.api.get(&format!("/v1/sms_messages/{text}")).await.error().0, 404);
        }
        assert_eq!(count(&tenant, &format!("/v1/contacts?{OF_NUMBER}")).await, 0);
        assert_eq!(count(&tenant, &format!("/v1/sessions?{OF_NUMBER}")).await, 0);
        // Its campaigns go on to count it, where it was called.
        assert_eq!(tenant.api.get(&format!("/v1/campaigns/{}", mine.called)).await.ok()["counts"]["total"], 1);
        let waiting = tenant.api.get(&format!("/v1/campaigns/{}/contacts", mine.waiting)).await.ok();
        assert_eq!(waiting["data"].as_array().unwrap().iter().map(|one| one["first_name"].as_str().unwrap()).collect::<Vec<_>>(), ["Eve"]);
        assert_eq!(tenant.api.get(&format!("/v1/dnc/check?{OF_NUMBER}")).await.ok()["listed"], true, "nobody calls again");
        let db = &world.deps().db;
        let left = session::all_after(&db.read, None, 100).await.unwrap();
        let left: Vec<_> = left.into_iter().filter(|row| row.tenant_id == tenant.id).collect();
        assert!(!left.is_empty() && left.iter().all(|row| row.deleted_at.is_some()));
        for row in &left {
            assert_eq!((&row.email, &row.first_name, &row.last_name), (&None, &None, &None));
            assert!(row.variables.0.is_empty());
            assert!(transcript::load(&db.read, row.id).await.unwrap().turns.0.is_empty());
        }

        // Nothing of another workspace, or of the other environment.
        assert_eq!(other.api.get(&format!("/v1/sessions/{}", theirs.session)).await.ok()["id"], theirs.session.as_str());
        assert_eq!(count(&other, &format!("/v1/contacts?{OF_NUMBER}")).await, 2);
        let live = world.api(tenant.id, Env::Live, Scopes::all()).await;
        assert_eq!(live.get(&format!("/v1/people/erasures?{OF_NUMBER}")).await.ok()["data"], json!([]));

        // A second time there is nothing left, and it is another job.
        let again = erased(world, &tenant, OF_NUMBER).await;
        assert_eq!((&again["status"], &again["erased"]["sessions"], &again["erased"]["contacts"]), (&json!("done"), &json!(0), &json!(0)));
        assert_ne!(again["id"], report["id"]);
        assert_eq!(again["whom_hash"], report["whom_hash"]);
        // What stays is told by each, whenever the rest went.
        for report in [&report, &again] {
            let told = |what: &str| {
                let kept = report["kept"].as_array().unwrap().iter().find(|kept| kept["what"] == what);
                kept.map(|kept| kept["count"].clone())
            };
            assert_eq!((told("calls"), told("messages")), (Some(json!(2)), Some(json!(3))), "{report:#}");
        }
    }

    /// It ends while contacts are being removed one by one, and its last row names the person.
    async fn what_a_list_brings_meanwhile_is_erased_too(world: &mut World) {
        let tenant = world.tenant().await;
        let campaign = json!({ "name": "mails", "channel": "email", "template": { "subject": "Rex", "text": "Rex is well." } });
        let mails = id(&tenant.api.post("/v1/campaigns", campaign).await.ok());
        let contacts: Vec<Value> = (0..200).map(|n| json!({ "email": format!("zoe{n}@example.com"), "phone_number": NUMBER })).collect();
        tenant.api.post(&format!("/v1/campaigns/{mails}/contacts"), json!({ "contacts": contacts })).await.ok();
        let campaign = json!({ "name": "calls", "agent_id": tenant.agent().await });
        let calls = id(&tenant.api.post("/v1/campaigns", campaign).await.ok());
        let rows: String = (0..300).map(|n| format!("+15003{n:06}\n")).collect();
        let list = format!("phone_number\n{rows}{NUMBER}\n");
        let list = tenant.api.upload(&format!("/v1/campaigns/{calls}/contacts/import"), list).await.ok();
        let begun = tenant.api.delete(&format!("/v1/people?{OF_NUMBER}")).await.ok();
        // Once more if the list was waited for.
        world.advance(seconds(62)).await;
        let list = tenant.api.get(&format!("/v1/imports/{}", id(&list))).await.ok();
        assert_eq!((&list["status"], &list["accepted"]), (&json!("completed"), &json!(301)));
        let report = tenant.api.get(&format!("/v1/people/erasures/{}", id(&begun))).await.ok();
        assert_eq!((&report["status"], &report["erased"]["contacts"]), (&json!("done"), &json!(201)), "{report:#}");
        assert_eq!(count(&tenant, &format!("/v1/contacts?{OF_NUMBER}")).await, 0);
    }

    async fn by_an_address_goes_what_is_known_by_it(world: &mut World) {
        let tenant = world.tenant().await;
        let known = known(world, &tenant).await;
        let mail = json!({ "to": "zoe@example.com", "subject": "Rex", "text": "Rex is well." });
        let mail = id(&tenant.api.post("/v1/email_messages", mail).await.ok());
        world.advance(minutes(1)).await;
        let report = erased(world, &tenant, "email=Zoe@Example.com").await;
        assert_eq!((&report["status"], &report["erased"]["emails"], &report["erased"]["sessions"]), (&json!("done"), &json!(1), &json!(1)), "{report:#}");
        assert_eq!(tenant.api.get(&format!("/v1/email_messages/{mail}")).await.error().0, 404);
        assert_eq!(tenant.api.get(&format!("/v1/sessions/{}", known.session)).await.error().0, 404);
        assert_eq!(count(&tenant, &format!("/v1/contacts?{OF_NUMBER}")).await, 2, "what is known by the number alone stays");
        // The call knew both: its record is found by either, and says of the person nothing any more.
        let left = tenant.api.get("/v1/compliance/attempts?email=zoe@example.com").await.ok();
        let left = left["data"].as_array().unwrap();
        assert!(left.iter().any(|one| one["id"] == known.session.as_str()), "{left:#?}");
        assert!(left.iter().all(|one| one["is_erased"] == true && one["phone_number"].is_null()), "{left:#?}");
        let file = tenant.api.get("/v1/people/file?email=zoe@example.com").await.ok();
        assert_eq!(file["attempts"].as_array().unwrap().len(), left.len());
        let by_number = tenant.api.get(&format!("/v1/compliance/attempts?{OF_NUMBER}")).await.ok();
        let by_number = by_number["data"].as_array().unwrap();
        assert!(by_number.iter().any(|one| one["id"] == known.session.as_str() && one["is_erased"] == true));
        assert!(by_number.iter().any(|one| one["is_erased"] == false), "what is known by the number alone stays");
    }

    async fn a_mail_to_a_contact_with_a_number_is_on_record_under_both(world: &mut World) {
        let tenant = world.tenant().await;
        let campaign = json!({ "name": "x", "channel": "email", "template": { "subject": "Rex", "text": "Rex is well." } });
        let campaign = id(&tenant.api.post("/v1/campaigns", campaign).await.ok());
        let contacts = json!({ "contacts": [{ "email": "zoe@example.com", "phone_number": NUMBER, "first_name": NAME }] });
        tenant.api.post(&format!("/v1/campaigns/{campaign}/contacts"), contacts).await.ok();
        tenant.api.post(&format!("/v1/campaigns/{campaign}/start"), json!({})).await.ok();
        world.advance(minutes(5)).await;
        for query in [OF_NUMBER, "email=zoe@example.com"] {
            assert_eq!(count(&tenant, &format!("/v1/compliance/attempts?{query}")).await, 1, "{query}");
        }
        erased(world, &tenant, OF_NUMBER).await;
        let left = tenant.api.get("/v1/compliance/attempts?email=zoe@example.com").await.ok();
        assert_eq!((&left["data"][0]["is_erased"], &left["data"][0]["email"]), (&json!(true), &Value::Null), "{left:#}");
    }

    async fn who_is_on_the_phone_is_not_erased(world: &mut World) {
        let tenant = world.tenant().await;
        let agent = tenant.agent().await;
        let script = json!([{ "say": "Hello." }, { "silence_seconds": 25 }, { "say": "Bye." }]);
        let call = json!({ "to_number": NUMBER, "agent_id": agent, "sandbox": { "script": script } });
        let session = format!("/v1/sessions/{}", id(&tenant.api.post("/v1/sessions", call).await.ok()));
        let talks = async || tenant.api.get(&session).await.ok()["status"] == "in_progress";
        for _ in 0..30 {
            if talks().await {
                break;
            }
            world.advance(seconds(1)).await;
        }
        assert!(talks().await);
        let path = format!("/v1/people?{OF_NUMBER}");
        assert_eq!(tenant.api.delete(&path).await.error(), (409, "invalid_state", None));
        assert_eq!(world.rows("erasures").await, 0, "nothing was begun");
        tenant.api.post(&format!("{session}/end"), json!({})).await.ok();
        world.advance(minutes(2)).await;

        // One that waits for its time is given up.
        let later = world.clock.now().plus_seconds(86_400).to_string();
        let waits = json!({ "to_number": NUMBER, "agent_id": agent, "scheduled_at": later });
        let waits = format!("/v1/sessions/{}", id(&tenant.api.post("/v1/sessions", waits).await.ok()));
        let report = erased(world, &tenant, OF_NUMBER).await;
        assert_eq!((&report["status"], &report["erased"]["sessions"]), (&json!("done"), &json!(2)), "{report:#}");
        for gone in [&session, &waits] {
            assert_eq!(tenant.api.get(gone).await.error().0, 404);
        }
        world.leap(minutes(2 * 24 * 60)).await;
        assert_eq!(count(&tenant, &format!("/v1/sessions?{OF_NUMBER}")).await, 0, "nobody has called");
    }

    async fn what_is_in_use_is_waited_for_over_a_restart(world: &mut World) {
        let tenant = world.tenant().await;
        let agent = tenant.agent().await;
        let room = json!({ "agent_id": agent, "participant": { "email": "zoe@example.com", "first_name": "Zoë" } });
        let room = tenant.api.post("/v1/rooms", room).await.ok();
        let begun = tenant.api.delete("/v1/people?email=zoe@example.com").await.ok();
        // Whoever asks again meanwhile is told of the same.
        let again = tenant.api.delete("/v1/people?email=zoe@example.com").await.ok();
        world.restart().await;
        world.advance(minutes(3)).await;
        let report = tenant.api.get(&format!("/v1/people/erasures/{}", id(&begun))).await.ok();
        assert_eq!((&report["status"], &report["erased"]["sessions"]), (&json!("done"), &json!(1)), "{report:#}");
        let is_same = again["id"] == begun["id"];
        assert!(is_same || again["status"] == "queued", "another only if the first was done by then: {again:#}");
        assert_eq!(tenant.api.get(&format!("/v1/rooms/{}", id(&room))).await.error().0, 404);
        let filter = Filter { email: vec!["zoe@example.com".into()], ..Filter::default() };
        let left = session::list(&world.deps().db, tenant.id, Env::Test, &filter, Default::default()).await.unwrap();
        assert!(left.rows.is_empty());
    }

    async fn wrong_requests_erase_nothing(world: &mut World) {
        let (tenant, stranger) = (world.tenant().await, world.tenant().await);
        let known = known(world, &tenant).await;
        for (query, param) in [
            ("", "phone_number"),
            ("phone_number=12", "phone_number"),
            ("phone_number=", "phone_number"),
            ("email=nobody", "email"),
            ("phone_number=%2B15002345600&email=zoe@example.com", "email"),
            ("phone_number=%2B15002345600&name=Zo", "name"),
        ] {
            let answer = tenant.api.delete(&format!("/v1/people?{query}")).await;
            assert_eq!(answer.error(), (422, "validation_failed", Some(param)), "{query}");
            let answer = tenant.api.get(&format!("/v1/people/file?{query}")).await;
            assert_eq!(answer.error(), (422, "validation_failed", Some(param)), "{query}");
            world.advance(seconds(1)).await;
        }
        let reader = world.api(tenant.id, Env::Test, Scopes::new(vec![Scope::CampaignsRead]).unwrap()).await;
        assert_eq!(reader.delete(&format!("/v1/people?{OF_NUMBER}")).await.error(), (403, "forbidden", None));
        assert_eq!(world.rows("erasures").await, 0);
        // A stranger's erasure of the same number is the stranger's.
        let report = erased(world, &stranger, OF_NUMBER).await;
        assert_eq!(report["erased"]["sessions"], 0);
        assert_eq!(tenant.api.get(&format!("/v1/people/erasures/{}", id(&report))).await.error(), (404, "not_found", None));
        assert_eq!(tenant.api.get(&format!("/v1/sessions/{}", known.session)).await.ok()["id"], known.session.as_str());
    }

    async fn the_file_holds_what_is_kept_and_what_its_reader_may_read(world: &mut World) {
        let (tenant, stranger) = (world.tenant().await, world.tenant().await);
        let known = known(world, &tenant).await;
        let path = format!("/v1/people/file?{OF_NUMBER}");
        let file = tenant.api.get(&path).await.ok();
        assert_eq!((&file["phone_number"], &file["env"], &file["cut"], &file["without_words"]), (&json!(NUMBER), &json!("test"), &json!([]), &json!([])));
        assert_eq!(file["calls"].as_array().unwrap().len(), 2);
        let call = file["calls"].as_array().unwrap().iter().find(|call| call["id"] == known.session.as_str()).unwrap();
        assert!(call["turns"].to_string().contains("My dog is called Rex."), "{call:#}");
        assert_eq!(call["transcript_url"].as_str().unwrap().rsplit('/').next(), Some("transcript.json"));
        assert_eq!((file["messages"].as_array().unwrap().len(), file["contacts"].as_array().unwrap().len()), (3, 2));
        assert_eq!(file["opt_outs"][0]["phone_number"], NUMBER);
        assert!(file["messages"].to_string().contains("Rex says hello."));

        let given = json!({ "phone_number": NUMBER, "name": NAME, "seller": "Acme", "channels": ["phone"], "purposes": ["marketing"], "tier": "express",
            "method": "web form", "source_url": "https://acme.example/form", "request_copy": "May we call you?", "given_at": "2027-01-02T13:00:00Z" });
        let consent = id(&tenant.api.post("/v1/consents", given).await.ok());
        let file = tenant.api.get(&path).await.ok();
        assert_eq!(file["consents"], json!([tenant.api.get(&format!("/v1/consents/{consent}")).await.ok()]));

        // As a page: all of it escaped, and nothing that runs or is loaded.
        let page = tenant.api.get(&format!("{path}&format=html")).await;
        let header = |name: &str| page.headers.get(name).unwrap().to_str().unwrap().to_owned();
        assert_eq!(header("content-type"), "text/html; charset=utf-8");
        assert!(header("content-security-policy").starts_with("default-src 'none'"));
        assert!(header("content-disposition").starts_with("attachment") && !header("content-disposition").contains("5600"));
        let html = page.body.as_str().unwrap();
        assert!(html.contains("&lt;script&gt;alert(&#39;Zoë&#39;)&lt;/script&gt;") && !html.contains("<script"), "{html}");
        assert!(html.contains("May we call you?") && html.contains("https://acme.example/form"));
        assert!(html.contains("My dog is called Rex.") && html.contains("Rex says hello.") && !html.contains("http-equiv"));

        // Who may not read what was said elsewhere may not read it here.
        let reader = world.api(tenant.id, Env::Test, Scopes::new(vec![Scope::CampaignsRead]).unwrap()).await;
        let bare = reader.get(&path).await.ok();
        assert_eq!(bare["without_words"], json!(["transcripts", "sms"]));
        let said = format!("{} {}", bare["calls"], bare["messages"]);
        assert!(!said.contains("Very well") && !said.contains("is well") && !said.contains("Rex"), "{said}");

        assert_eq!(tenant.api.get(&format!("{path}&format=pdf")).await.error(), (422, "validation_failed", Some("format")));
        let nobodys = stranger.api.get(&path).await.ok();
        for part in ["attempts", "consents", "opt_outs", "contacts", "calls", "messages"] {
            assert_eq!(nobodys[part], json!([]), "{part}");
        }
        // After an erasure it holds what stays.
        erased(world, &tenant, OF_NUMBER).await;
        let left = tenant.api.get(&path).await.ok();
        assert_eq!((&left["calls"], &left["messages"], &left["contacts"]), (&json!([]), &json!([]), &json!([])));
        assert_eq!(left["opt_outs"].as_array().unwrap().len(), 1);
    }
}
