//! Access that can be taken back: members and their roles, passwords, sessions, and the log of it all.
use super::dashboard::{Browser, PASSWORD, set_up};
use crate::{
    on_both,
    world::{World, minutes},
};
use actors::leases::Of;
use entities::{ids::TenantId, membership, user, values::Role};
use reqwest::Method;
use serde_json::{Value, json};

/// Somebody with an account, signed in. Hashing takes long in a test build: nobody knows this password.
async fn person(world: &World, email: &str, belongs: Option<(TenantId, Role)>) -> (user::Model, Browser) {
    let deps = world.deps();
    let person = user::Model {
        id: deps.ids.next(),
        email: email.into(),
        password_hash: "-".into(),
        created_at: deps.clock.now(),
    };
    let mut commit = rules::commit::Commit::default();
    commit.changes.users.push(person.clone());
    commit
        .changes
        .memberships
        .extend(belongs.map(|(tenant_id, role)| membership::Model {
            user_id: person.id,
            tenant_id,
            role,
        }));
    deps.writer.commit(Of::Anybody, commit).await.unwrap();
    let browser = signed_in(world, &person).await;
    (person, browser)
}

async fn signed_in(world: &World, user: &user::Model) -> Browser {
    let token = callboard::access::sign_in(world.deps(), user, None)
        .await
        .unwrap()
        .unwrap();
    let mut browser = Browser::new(world);
    browser.cookie = Some(format!("callboard={token}"));
    browser
}

async fn send(browser: &mut Browser, method: &str, path: &str, body: &Value) -> (u16, Value) {
    let request = browser.request(method.parse::<Method>().unwrap(), path).json(body);
    let answer = browser.send(request).await;
    (answer.status.as_u16(), answer.body)
}

/// What was done, by whom, to whom: newest first.
async fn log(browser: &mut Browser, slug: &str) -> Vec<(String, String, String)> {
    let rows = browser.get(&format!("/v1/_internal/t/{slug}/audit-log")).await.ok();
    let text = |row: &Value, name: &str| row[name].as_str().unwrap_or_default().to_owned();
    let rows = rows["data"].as_array().unwrap().iter();
    rows.map(|row| (text(row, "action"), text(row, "user_email"), text(row, "subject")))
        .collect()
}

on_both! {
    /// Admitted as an owner, and let go before the rest of the request was there.
    async fn a_body_that_comes_late_gives_nobody_access(world: &mut World) {
        let tenant = world.tenant().await;
        let (_, mut owner) = person(world, "owner@example.com", Some((tenant.id, Role::Owner))).await;
        let (leaving, mut last) = person(world, "leaving@example.com", Some((tenant.id, Role::Owner))).await;
        person(world, "accomplice@example.com", None).await;
        let path = format!("/v1/_internal/t/{}/members", tenant.slug);
        let (pieces, body) = tokio::sync::mpsc::channel::<&str>(2);
        pieces.send(r#"{ "role": "owner", "#).await.unwrap();
        let body = futures_util::stream::unfold(body, |mut body| async move {
            body.recv().await.map(|piece| (Ok::<_, std::io::Error>(piece), body))
        });
        let held = reqwest::Body::wrap_stream(body);
        let request = last.request(Method::POST, &path).header("content-type", "application/json").body(held);
        let removed = async {
            // Its headers were read, and found to be an owner's.
            while world.app.as_ref().unwrap().state.bodies.held() == 0 {
                tokio::task::yield_now().await;
            }
            let gone = send(&mut owner, "DELETE", &format!("{path}/{}", leaving.id), &json!({})).await;
            assert_eq!(gone.0, 204, "{}", gone.1);
            pieces.send(r#""email": "accomplice@example.com" }"#).await.unwrap();
            drop(pieces);
        };
        let (late, ()) = futures_util::future::join(last.send(request), removed).await;
        assert_eq!(late.error(), (404, "not_found", None), "{}", late.body);
        let members = owner.get(&path).await.ok();
        assert!(!members.to_string().contains("accomplice"), "{members}");
    }

    async fn each_role_may_do_what_it_may_and_no_more(world: &mut World) {
        let tenant = world.tenant().await;
        let (victim, _) = person(world, "victim@example.com", Some((tenant.id, Role::Viewer))).await;
        let (_, stranger) = person(world, "stranger@example.com", None).await;
        let (_, viewer) = person(world, "viewer@example.com", Some((tenant.id, Role::Viewer))).await;
        let (_, admin) = person(world, "admin@example.com", Some((tenant.id, Role::Admin))).await;
        let (_, owner) = person(world, "owner@example.com", Some((tenant.id, Role::Owner))).await;
        let one = format!("/members/{}", victim.id);
        // Of a stranger, a viewer, an admin and an owner.
        let table = [
            ("GET", "", json!({}), [404, 200, 200, 200]),
            ("PATCH", "", json!({ "name": "Acme" }), [404, 403, 403, 200]),
            ("GET", "/members", json!({}), [404, 200, 200, 200]),
            ("GET", "/audit-log", json!({}), [404, 403, 403, 200]),
            ("GET", "/api-keys", json!({}), [404, 200, 200, 200]),
            ("POST", "/api-keys", json!({ "name": "x" }), [404, 403, 201, 201]),
            ("PATCH", one.as_str(), json!({ "role": "admin" }), [404, 403, 403, 200]),
            ("DELETE", one.as_str(), json!({}), [404, 403, 403, 204]),
            ("POST", "/members", json!({ "email": "stranger@example.com", "role": "viewer" }), [404, 403, 403, 201]),
        ];
        for (column, mut browser) in [stranger, viewer, admin, owner].into_iter().enumerate() {
            for (method, path, body, expected) in &table {
                let (status, answer) = send(&mut browser, method, &format!("/v1/_internal/t/tenant-0{path}"), body).await;
                assert_eq!(status, expected[column], "{method} {path} of {column}: {answer}");
            }
        }
    }

    async fn a_key_wants_the_password_again_after_ten_minutes(world: &mut World) {
        let (mut browser, _) = set_up(world).await;
        let keys = "/v1/_internal/t/acme/api-keys";
        browser.post(keys, json!({ "name": "at once" })).await.ok();
        world.advance(minutes(10)).await;
        let refused = browser.post(keys, json!({ "name": "later" })).await;
        assert_eq!(refused.error(), (403, "forbidden", Some("password")));
        assert!(refused.body["error"]["message"].as_str().unwrap().contains("reauthenticate"));
        let member = json!({ "email": "x@example.com", "role": "viewer" });
        assert_eq!(browser.post("/v1/_internal/t/acme/members", member).await.error(), (403, "forbidden", Some("password")));
        assert_eq!(browser.get(keys).await.ok()["data"].as_array().unwrap().len(), 1, "reading asks for nothing");
        let again = "/v1/_internal/reauthenticate";
        assert_eq!(browser.post(again, json!({ "password": "wrong password!" })).await.error(), (403, "forbidden", Some("password")));
        assert_eq!(browser.post(keys, json!({ "name": "later" })).await.error().0, 403, "a wrong one opens nothing");
        let fresh = browser.post(again, json!({ "password": PASSWORD })).await.ok();
        assert_eq!(fresh["fresh_until"], world.clock.now().plus(minutes(10)).to_string());
        let key = browser.post(keys, json!({ "name": "later" })).await.ok();
        world.advance(minutes(10)).await;
        assert_eq!(browser.post(keys, json!({ "name": "much later" })).await.error().0, 403);
        // What takes access back asks for nothing.
        let one = format!("{keys}/{}", key["id"].as_str().unwrap());
        assert_eq!(send(&mut browser, "DELETE", &one, &json!({})).await.0, 204);
        let log = log(&mut browser, "acme").await;
        let actions: Vec<_> = log.iter().map(|(action, by, _)| (action.as_str(), by.as_str())).collect();
        let ann = "ann@example.com";
        assert_eq!(actions, [("key_revoked", ann), ("key_created", ann), ("key_created", ann)]);
        assert_eq!(log[0].2, key["id"].as_str().unwrap());
        let whole = browser.get("/v1/_internal/t/acme/audit-log").await.ok().to_string();
        assert!(!whole.contains(key["plaintext"].as_str().unwrap()) && whole.contains(key["prefix"].as_str().unwrap()));
    }

    async fn a_guesser_with_a_stolen_session_is_slowed_down(world: &mut World) {
        let (_, mut browser) = person(world, "ann@example.com", None).await;
        for _ in 0..10 {
            assert_eq!(browser.post("/v1/_internal/reauthenticate", json!({ "password": "x" })).await.error().0, 403);
        }
        let change = json!({ "current_password": "x", "new_password": "another password" });
        assert_eq!(browser.post("/v1/_internal/password", change).await.error(), (429, "rate_limited", None));
        assert_eq!(browser.post("/v1/_internal/reauthenticate", json!({ "password": "x" })).await.error().0, 429);
        world.advance(minutes(1)).await;
        assert_eq!(browser.post("/v1/_internal/reauthenticate", json!({ "password": "x" })).await.error().0, 403);
    }

    async fn another_password_ends_the_other_sessions(world: &mut World) {
        let (mut browser, _) = set_up(world).await;
        let before = user::by_email(&world.deps().db.read, "ann@example.com").await.unwrap().unwrap();
        let mut elsewhere = signed_in(world, &before).await;
        let path = "/v1/_internal/password";
        let body = |old: &str, new: &str| json!({ "current_password": old, "new_password": new });
        assert_eq!(browser.post(path, body(PASSWORD, "short")).await.error(), (422, "validation_failed", Some("new_password")));
        assert_eq!(browser.post(path, body("wrong password!", "another password")).await.error(), (403, "forbidden", Some("current_password")));
        elsewhere.get("/v1/_internal/me").await.ok();
        assert_eq!(browser.post(path, body(PASSWORD, "another password")).await.status.as_u16(), 204);
        assert_eq!(elsewhere.get("/v1/_internal/me").await.error().0, 401, "whoever was in with the old one is out");
        browser.get("/v1/_internal/me").await.ok();
        // A sign-in that had looked at the old password a moment before begins no session.
        assert_eq!(callboard::access::sign_in(world.deps(), &before, None).await.unwrap(), None);
        let sign_in = |password: &str| json!({ "email": "ann@example.com", "password": password });
        assert_eq!(elsewhere.post("/v1/_internal/login", sign_in(PASSWORD)).await.error().0, 401);
        elsewhere.post("/v1/_internal/login", sign_in("another password")).await.ok();
        assert_eq!(elsewhere.post("/v1/_internal/logout-everywhere", json!({})).await.status.as_u16(), 204);
        assert_eq!(browser.get("/v1/_internal/me").await.error().0, 401);
        assert_eq!(elsewhere.get("/v1/_internal/me").await.error().0, 401);
        let after = user::by_email(&world.deps().db.read, "ann@example.com").await.unwrap().unwrap();
        let log = log(&mut signed_in(world, &after).await, "acme").await;
        let actions: Vec<_> = log.iter().map(|(action, ..)| action.as_str()).collect();
        assert_eq!(actions, ["signed_out_everywhere", "password_changed"]);
    }

    async fn members_come_change_and_go(world: &mut World) {
        let tenant = world.tenant().await;
        let (ann, mut owner) = person(world, "ann@example.com", Some((tenant.id, Role::Owner))).await;
        let first = membership::list(&world.deps().db.read, tenant.id, Default::default()).await.unwrap();
        let first = first.rows.iter().find(|(user, _)| user.id != ann.id).unwrap().0.clone();
        let (bob, mut browser) = person(world, "bob@example.com", None).await;
        let members = "/v1/_internal/t/tenant-0/members";
        let add = |email: &str, role: &str| json!({ "email": email, "role": role });
        assert_eq!(owner.post(members, add("nobody@example.com", "admin")).await.error(), (422, "validation_failed", Some("email")));
        assert_eq!(owner.post(members, add("bob@example.com", "king")).await.error(), (422, "validation_failed", Some("role")));
        let added = owner.post(members, add(" BOB@example.com", "admin")).await.ok();
        assert_eq!(added, json!({ "id": bob.id, "email": "bob@example.com", "role": "admin" }));
        assert_eq!(owner.post(members, add("bob@example.com", "viewer")).await.error(), (409, "already_exists", Some("email")));
        browser.post("/v1/_internal/t/tenant-0/api-keys", json!({ "name": "bob's" })).await.ok();

        let one = format!("{members}/{}", bob.id);
        let (status, changed) = send(&mut owner, "PATCH", &one, &json!({ "role": "admin" })).await;
        assert_eq!((status, changed["role"].as_str()), (200, Some("admin")));
        browser.get("/v1/_internal/me").await.ok();
        assert_eq!(send(&mut owner, "PATCH", &one, &json!({ "role": "viewer" })).await.0, 200);
        assert_eq!(browser.get("/v1/_internal/me").await.error().0, 401, "another role: sign in again");
        let mut browser = signed_in(world, &bob).await;
        assert_eq!(browser.post("/v1/_internal/t/tenant-0/api-keys", json!({ "name": "x" })).await.error(), (403, "forbidden", None));
        assert_eq!(send(&mut owner, "DELETE", &one, &json!({})).await.0, 204);
        assert_eq!(browser.get("/v1/_internal/me").await.error().0, 401);
        let mut browser = signed_in(world, &bob).await;
        assert_eq!(browser.get("/v1/_internal/t/tenant-0/api-keys").await.error(), (404, "not_found", None));
        assert_eq!(send(&mut owner, "DELETE", &one, &json!({})).await.0, 404);

        // Nobody takes the last owner away, not even the owner.
        assert_eq!(send(&mut owner, "DELETE", &format!("{members}/{}", first.id), &json!({})).await.0, 204);
        let own = format!("{members}/{}", ann.id);
        for (method, body) in [("DELETE", json!({})), ("PATCH", json!({ "role": "admin" }))] {
            let (status, refused) = send(&mut owner, method, &own, &body).await;
            assert_eq!((status, refused["error"]["code"].as_str()), (409, Some("invalid_state")), "{refused}");
            assert!(refused["error"]["message"].as_str().unwrap().contains("make another member an owner first"));
        }
        let listed = owner.get(members).await.ok();
        assert_eq!(listed["data"], json!([{ "id": ann.id, "email": "ann@example.com", "role": "owner" }]));

        let said = log(&mut owner, "tenant-0").await;
        let said: Vec<_> = said.iter().map(|(action, by, to)| (action.as_str(), by.as_str(), to.as_str())).collect();
        let (a, b) = ("ann@example.com", "bob@example.com");
        assert_eq!(said[..3], [("member_removed", a, "tenant-0@example.com"), ("member_removed", a, b), ("role_changed", a, b)]);
        assert_eq!((said[3].0, said[3].1, said[4]), ("key_created", b, ("member_added", a, b)));
        assert_eq!(said.len(), 5, "what was refused is not noted");
    }

    /// Two owners show each other the door at one moment: one of them stays.
    async fn two_owners_who_remove_each_other_leave_one(world: &mut World) {
        let tenant = world.tenant().await;
        let (ann, mut by_ann) = person(world, "ann@example.com", Some((tenant.id, Role::Owner))).await;
        let (bob, mut by_bob) = person(world, "bob@example.com", Some((tenant.id, Role::Owner))).await;
        let members = "/v1/_internal/t/tenant-0/members";
        let first = membership::list(&world.deps().db.read, tenant.id, Default::default()).await.unwrap();
        let first = first.rows.iter().find(|(user, _)| user.id != ann.id && user.id != bob.id).unwrap().0.id;
        assert_eq!(send(&mut by_ann, "DELETE", &format!("{members}/{first}"), &json!({})).await.0, 204);
        let (bobs, anns, nothing) = (format!("{members}/{}", bob.id), format!("{members}/{}", ann.id), json!({}));
        let (one, other) = tokio::join!(
            send(&mut by_ann, "DELETE", &bobs, &nothing),
            send(&mut by_bob, "DELETE", &anns, &nothing)
        );
        let owners = membership::owners(&world.deps().db.read, tenant.id).await.unwrap();
        assert_eq!(owners.len(), 1, "{one:?} {other:?}");
        assert_eq!(usize::from(one.0 == 204) + usize::from(other.0 == 204), 1);
    }

    async fn the_log_of_access_is_forgotten_after_400_days(world: &mut World) {
        let tenant = world.tenant().await;
        let (_, mut owner) = person(world, "ann@example.com", Some((tenant.id, Role::Owner))).await;
        owner.post("/v1/_internal/t/tenant-0/api-keys", json!({ "name": "x" })).await.ok();
        assert_eq!(world.rows("audit_log").await, 1);
        world.leap(minutes(399 * 24 * 60)).await;
        assert_eq!(world.rows("audit_log").await, 1);
        world.leap(minutes(2 * 24 * 60)).await;
        assert_eq!(world.rows("audit_log").await, 0);
    }
}
