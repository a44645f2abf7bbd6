//! E-mails that go out, and the link by which their readers unsubscribe.
use super::live;
use crate::{
    on_both,
    world::{Api, Tenant, World, client, minutes, smtp::Smtp},
};
use serde_json::{Value, json};

async fn with_server(world: &mut World, tenant: &Tenant, server: &Smtp) -> Api {
    let settings = [
        ("smtp_url", json!(server.url)),
        ("mail_from", json!("Callboard <callboard@sender.example>")),
    ];
    world.change_settings(&settings).await;
    live(world, tenant).await
}

async fn write(api: &Api, more: Value) -> String {
    let mut email = json!({ "to": "Ann@Example.com", "subject": "Grüße", "text": "Hello." });
    email.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    let answer = api.post("/v1/email_messages", email).await;
    assert_eq!(answer.status.as_u16(), 202, "{}", answer.body);
    answer.body["id"].as_str().unwrap().to_owned()
}

async fn email(api: &Api, id: &str) -> Value {
    api.get(&format!("/v1/email_messages/{id}")).await.ok()
}

/// Status and the error's code.
async fn outcome(api: &Api, id: &str) -> (String, Option<String>) {
    let row = email(api, id).await;
    let code = row["error"]["code"].as_str().map(str::to_owned);
    (row["status"].as_str().unwrap().to_owned(), code)
}

fn is(outcome: &(String, Option<String>), status: &str, code: Option<&str>) {
    assert_eq!((outcome.0.as_str(), outcome.1.as_deref()), (status, code));
}

/// The token in a marketing mail's header.
fn token(mail: &str) -> String {
    let unfolded = mail.replace("\r\n ", "").replace("\r\n\t", "");
    let line = unfolded
        .lines()
        .find_map(|line| line.strip_prefix("List-Unsubscribe: "));
    let link = line
        .unwrap()
        .trim()
        .trim_start_matches('<')
        .trim_end_matches('>')
        .to_owned();
    link.rsplit('/').next().unwrap().to_owned()
}

on_both! {
    async fn the_server_gets_it_with_all_its_parts(world: &mut World) {
        let (tenant, server) = (world.tenant().await, Smtp::start());
        let api = with_server(world, &tenant, &server).await;
        let attached = json!([{ "filename": "list.csv", "content_type": "text/csv", "content": "YSxiCg==" }]);
        let id = write(&api, json!({ "html": "<p>Hello.</p>", "attachments": attached, "from_name": "Ann's shop", "reply_to": "shop@example.com" })).await;
        world.settle().await;
        let row = email(&api, &id).await;
        assert_eq!((row["status"].as_str(), row["to"].as_str(), row["attempts"].as_i64()), (Some("sent"), Some("ann@example.com"), Some(1)), "{row}");
        assert!(row["provider_message_id"].as_str().unwrap().contains("taken"), "{row}");
        let [mail] = &server.mails()[..] else { panic!("one mail") };
        assert_eq!((mail.from.as_str(), mail.to.clone()), ("callboard@sender.example", vec!["ann@example.com".to_owned()]));
        for part in [
            "From: =?utf-8?b?QW5uJ3Mgc2hvcA==?= <callboard@sender.example>", "Reply-To: shop@example.com", &format!("Message-ID: <{id}@sender.example>"),
            "multipart/mixed", "multipart/alternative", "text/plain", "text/html", "Content-Disposition: attachment; filename=\"list.csv\"", "text/csv",
        ] {
            assert!(mail.data.contains(part), "{part} is not in {}", mail.data);
        }
        assert!(!mail.data.contains("List-Unsubscribe"), "transactional");
        assert_eq!(world.rows("message_sends").await, 1);
        let listed = api.get("/v1/email_messages?status=sent&to=ann@example.com&kind=transactional").await.ok();
        assert_eq!(listed["data"].as_array().unwrap().len(), 1);
    }

    async fn what_the_server_answers_decides(world: &mut World) {
        let (tenant, server) = (world.tenant().await, Smtp::start());
        let api = with_server(world, &tenant, &server).await;
        server.answer_next_recipients(vec!["550 nobody here"]);
        let bounced = write(&api, json!({})).await;
        world.settle().await;
        is(&outcome(&api, &bounced).await, "bounced", Some("bounced"));
        server.answer_next(vec!["554 looks like spam"]);
        let refused = write(&api, json!({})).await;
        world.settle().await;
        is(&outcome(&api, &refused).await, "failed", Some("provider_rejected"));
        server.answer_next(vec!["451 try later"]);
        server.answer_next_recipients(vec!["250 ok", "450 greylisted"]);
        let deferred = write(&api, json!({})).await;
        world.settle().await;
        is(&outcome(&api, &deferred).await, "deferred", Some("deferred"));
        world.advance(minutes(1)).await;
        is(&outcome(&api, &deferred).await, "deferred", Some("deferred"));
        world.advance(minutes(5)).await;
        is(&outcome(&api, &deferred).await, "sent", None);
        assert_eq!(email(&api, &deferred).await["attempts"], 3);
        assert_eq!((server.mails().len(), server.offered()), (1, 3));
    }

    /// The connection is lost after the final dot: nobody sends it again.
    async fn a_last_word_that_is_lost_is_not_asked_for_again(world: &mut World) {
        let (tenant, server) = (world.tenant().await, Smtp::start());
        let api = with_server(world, &tenant, &server).await;
        server.answer_next(vec![""]);
        let id = write(&api, json!({})).await;
        world.advance(minutes(60)).await;
        is(&outcome(&api, &id).await, "failed", Some("unknown_outcome"));
        assert_eq!((server.mails().len(), server.offered()), (1, 1));
        // Lost before it was handed over: that is another thing.
        server.answer_next_recipients(vec![""]);
        let id = write(&api, json!({})).await;
        world.settle().await;
        is(&outcome(&api, &id).await, "deferred", Some("deferred"));
        world.advance(minutes(1)).await;
        is(&outcome(&api, &id).await, "sent", None);
    }

    async fn a_server_that_is_away_is_waited_for(world: &mut World) {
        let (tenant, server) = (world.tenant().await, Smtp::start());
        let api = with_server(world, &tenant, &server).await;
        server.refuse_connections().await;
        let (sent, canceled, given_up) = (write(&api, json!({})).await, write(&api, json!({})).await, write(&api, json!({ "to": "bob@example.com" })).await);
        world.settle().await;
        is(&outcome(&api, &sent).await, "deferred", Some("deferred"));
        api.post(&format!("/v1/email_messages/{canceled}/cancel"), json!({})).await.ok();
        world.restart().await;
        api.post("/v1/dnc", json!({ "email": "bob@example.com" })).await.ok();
        server.accept_connections();
        world.advance(minutes(2)).await;
        is(&outcome(&api, &sent).await, "sent", None);
        is(&outcome(&api, &canceled).await, "canceled", None);
        is(&outcome(&api, &given_up).await, "failed", Some("recipient_on_dnc"));
        assert_eq!(server.mails().len(), 1);
    }

    async fn one_click_unsubscribes(world: &mut World) {
        let (tenant, server) = (world.tenant().await, Smtp::start());
        let api = with_server(world, &tenant, &server).await;
        let id = write(&api, json!({ "kind": "marketing", "text": "Bye: {{unsubscribe_url}}" })).await;
        world.settle().await;
        let mail = server.mails()[0].data.clone();
        assert!(mail.contains("List-Unsubscribe-Post: List-Unsubscribe=One-Click"), "{mail}");
        let token = token(&mail);
        let plain = mail.replace("=\r\n", "").replace("=3D", "=");
        assert!(plain.contains(&format!("Bye: {}/u/{token}", world.url)), "{mail}");
        let url = format!("{}/u/{token}", world.url);
        let page = client().get(&url).send().await.unwrap();
        assert_eq!(page.status().as_u16(), 200);
        assert_eq!(page.headers()["cache-control"], "no-store");
        assert!(page.headers()["content-security-policy"].to_str().unwrap().starts_with("default-src 'none'"));
        let page = page.text().await.unwrap();
        assert!(page.contains("<form method=\"post\">") && !page.contains("<script"), "{page}");
        assert_eq!(api.get("/v1/dnc").await.ok()["data"], json!([]), "looking changes nothing");
        let mut on_record = Vec::new();
        for _ in 0..2 {
            let pressed = client().post(&url).header("content-type", "application/x-www-form-urlencoded").body("List-Unsubscribe=One-Click").send().await.unwrap();
            assert_eq!(pressed.status().as_u16(), 200);
            on_record.push(world.rows("attempt_records").await);
        }
        assert_eq!(on_record[0], on_record[1], "who presses for hours fills nothing");
        let entries = api.get("/v1/dnc").await.ok()["data"].as_array().unwrap().clone();
        assert_eq!((entries.len(), entries[0]["email"].as_str(), entries[0]["source"].as_str()), (1, Some("ann@example.com"), Some("unsubscribe")));
        for kind in ["marketing", "transactional"] {
            let refused = api.post("/v1/email_messages", json!({ "to": "ANN@example.com", "subject": "x", "text": "x", "kind": kind })).await;
            assert_eq!(refused.error(), (409, "recipient_on_dnc", Some("to")));
        }
        is(&outcome(&api, &id).await, "sent", None);
        // Whatever is no token of ours: one answer.
        let mut forged = token.clone();
        forged.replace_range(30..31, if &token[30..31] == "A" { "B" } else { "A" });
        for token in [forged.as_str(), "x", &token[..20], "%00", "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"] {
            for request in [client().get(format!("{}/u/{token}", world.url)), client().post(format!("{}/u/{token}", world.url))] {
                let answer = request.send().await.unwrap();
                assert_eq!(answer.status().as_u16(), 404, "{token}");
                assert!(answer.text().await.unwrap().contains("there is no such page"), "{token}");
            }
        }
        assert_eq!(api.get("/v1/dnc").await.ok()["data"].as_array().unwrap().len(), 1);
    }

    /// Source: CAN-SPAM, 15 U.S.C. 7704(a)(5)(A)(iii). What somebody has asked for needs none.
    async fn a_marketing_mail_says_who_sends_it(world: &mut World) {
        let (tenant, server) = (world.tenant().await, Smtp::start());
        let api = with_server(world, &tenant, &server).await;
        let identity = "/v1/compliance/identity";
        api.patch(identity, json!({ "registered_name": "Ann & Sons", "postal_address": "1 Old Street\nDover" })).await.ok();
        write(&api, json!({ "kind": "marketing", "html": "<p>Hello.</p>", "scheduled_at": "2027-03-02T13:10:00Z" })).await;
        world.settle().await;
        // It has moved before the mail is sent.
        api.patch(identity, json!({ "postal_address": "1 Main Street\nDover, DE <19901>" })).await.ok();
        world.advance(minutes(11)).await;
        write(&api, json!({ "html": "<p>Hello.</p>" })).await;
        world.settle().await;
        write(&api, json!({ "kind": "marketing", "text": "Hello from 1 Main Street, Dover, DE <19901>." })).await;
        world.settle().await;
        let mails: Vec<String> = server.mails().iter().map(|mail| mail.data.replace("=\r\n", "")).collect();
        let [sells, serves, says_it] = &mails[..] else { panic!("{mails:?}") };
        for words in ["Hello.\r\n\r\n--\r\nAnn & Sons\r\n1 Main Street\r\nDover, DE <19901>\r\n", "<p>Hello.</p>\r\n<p>Ann &amp; Sons<br>1 Main Street<br>Dover, DE &lt;19901&gt;</p>\r\n"] {
            assert!(sells.contains(words), "{words} is not in {sells}");
        }
        assert!(!sells.contains("Old Street"), "{sells}");
        assert!(!serves.contains("Ann & Sons") && !serves.contains("Main Street"), "{serves}");
        assert!(says_it.contains("Hello from 1 Main Street") && !says_it.contains("Ann & Sons"), "{says_it}");
        // Campaigns write by the same hand.
        let template = json!({ "subject": "Spring", "text": "Hello." });
        let campaign = json!({ "name": "Spring", "channel": "email", "template": template, "contacts": [{ "email": "bob@example.com" }] });
        tenant.api.post("/v1/campaigns/run", campaign).await.ok();
        world.advance(minutes(1)).await;
        let files = world.mail_files();
        let [mail] = &files[..] else { panic!("{files:?}") };
        assert!(mail.contains("--\r\nAnn & Sons\r\n1 Main Street\r\nDover, DE <19901>"), "{mail}");
    }

    async fn no_header_can_be_slipped_in(world: &mut World) {
        let tenant = world.tenant().await;
        let good = json!({ "to": "ann@example.com", "subject": "x", "text": "x" });
        let file = |filename: &str, kind: &str, content: &str| json!([{ "filename": filename, "content_type": kind, "content": content }]);
        for (name, value, param) in [
            ("subject", json!("x\r\nBcc: eve@example.com"), "subject"), ("subject", json!("x\nBcc: eve@example.com"), "subject"),
            ("from_name", json!("x\rBcc: eve@example.com"), "from_name"), ("reply_to", json!("a@b.example\r\nBcc: eve@example.com"), "reply_to"), ("reply_to", json!("nobody"), "reply_to"),
            ("to", json!("ann@example.com\r\nBcc: eve@example.com"), "to"), ("to", json!("ann@example.com, eve@example.com"), "to"), ("to", json!("ann"), "to"),
            ("to", json!("Eve <eve@example.com>"), "to"), ("text", json!(null), "text"), ("kind", json!("spam"), "kind"), ("cc", json!("eve@example.com"), "cc"),
            ("attachments", file("a\r\nb", "text/csv", ""), "attachments[0].filename"), ("attachments", file("../a", "text/csv", ""), "attachments[0].filename"),
            ("attachments", file("a", "text/csv\r\nX: y", ""), "attachments[0].content_type"), ("attachments", file("a", "nonsense", ""), "attachments[0].content_type"),
            ("attachments", file("a", "text/csv", "no base64!"), "attachments[0].content"),
            ("attachments", file("a", "text/csv", &"AAAA".repeat(240_000)), "attachments"),
            ("attachments", json!(vec![file("a", "text/csv", "")[0].clone(); 11]), "attachments"),
        ] {
            let mut body = good.clone();
            body[name] = value;
            assert_eq!(tenant.api.post("/v1/email_messages", body.clone()).await.error(), (422, "validation_failed", Some(param)), "{param}");
        }
        assert_eq!(world.rows("email_messages").await, 0);
    }

    async fn the_sandbox_keeps_files(world: &mut World) {
        let tenant = world.tenant().await;
        world.change_setting("email_price_cents", json!(2)).await;
        let before = tenant.api.get("/v1/credits").await.ok()["balance_cents"].as_i64().unwrap();
        let mut ids = Vec::new();
        for local in ["ann", "bounced", "deferred", "failed"] {
            ids.push(write(&tenant.api, json!({ "to": format!("{local}@example.com"), "kind": "marketing" })).await);
        }
        world.advance(minutes(5)).await;
        for (id, (status, code, cost)) in ids.iter().zip([("sent", None, 2), ("bounced", Some("bounced"), 0), ("sent", None, 2), ("failed", Some("provider_rejected"), 0)]) {
            is(&outcome(&tenant.api, id).await, status, code);
            assert_eq!(email(&tenant.api, id).await["actual_cost_cents"], cost);
        }
        let after = tenant.api.get("/v1/credits").await.ok();
        assert_eq!((after["balance_cents"].as_i64().unwrap(), after["held_cents"].as_i64()), (before - 4, Some(0)));
        let files = world.mail_files();
        assert_eq!(files.len(), 2);
        assert!(files.iter().all(|mail| mail.contains("List-Unsubscribe: ")), "{files:?}");
    }

    async fn commits_that_fail_and_a_crash_send_nothing_twice(world: &mut World) {
        let (tenant, server) = (world.tenant().await, Smtp::start());
        let api = with_server(world, &tenant, &server).await;
        let mut ids = Vec::new();
        for _ in 0..3 {
            ids.push(write(&api, json!({ "scheduled_at": "2027-03-02T13:01:00Z" })).await);
        }
        world.restart().await;
        world.fail_next_commits(3);
        world.advance(minutes(5)).await;
        for id in &ids {
            is(&outcome(&api, id).await, "sent", None);
        }
        assert_eq!(server.mails().len(), 3);
    }
}
