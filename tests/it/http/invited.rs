//! Coming in by a link: an invitation, a new password; and which sessions there are.
use super::dashboard::{Browser, PASSWORD, set_up};
use crate::{
    on_both,
    world::{World, minutes},
};
use reqwest::Method;
use serde_json::{Value, json};

/// What stands behind the `#` of the link in the newest mail to somebody.
async fn link(world: &mut World, to: &str) -> String {
    let found = |world: &World| {
        let mails = world.mail_files();
        let mine = mails.iter().rev().find(|mail| mail.contains(&format!("To: {to}")))?;
        // Long lines of a mail are folded.
        let text = mine.replace("=\r\n", "").replace("=\n", "");
        let (_, behind) = text.split_once('#')?;
        Some(
            behind
                .chars()
                .take_while(|char| char.is_ascii_alphanumeric() || "-_".contains(*char))
                .collect::<String>(),
        )
    };
    for _ in 0..600 {
        if let Some(token) = found(world) {
            return token;
        }
        world.advance(std::time::Duration::from_millis(100)).await;
    }
    panic!("no mail to {to}: {:?}", world.mail_files())
}

async fn send(browser: &mut Browser, method: Method, path: &str, body: Value) -> (u16, Value) {
    let request = browser.request(method, path).json(&body);
    let answer = browser.send(request).await;
    (answer.status.as_u16(), answer.body)
}

on_both! {
    async fn one_address_is_not_written_to_all_day(world: &mut World) {
        let (mut owner, _) = set_up(world).await;
        let path = "/v1/_internal/t/acme/invitations";
        let mut invite = async |email: &str| send(&mut owner, Method::POST, path, json!({ "email": email, "role": "viewer" })).await.0;
        for _ in 0..5 {
            assert_eq!(invite("ben@example.com").await, 201);
        }
        assert_eq!(invite("Ben@Example.com").await, 429);
        assert_eq!(invite("eve@example.com").await, 201);
    }

    async fn whoever_is_invited_joins_once_and_nobody_else_does(world: &mut World) {
        let (mut owner, _) = set_up(world).await;
        let path = "/v1/_internal/t/acme/invitations";
        for (body, status, param) in [
            (json!({ "email": "nobody", "role": "viewer" }), 422, "email"),
            (json!({ "email": "ben@example.com", "role": "king" }), 422, "role"),
            (json!({ "email": "ann@example.com", "role": "admin" }), 409, "email"),
        ] {
            let refused = send(&mut owner, Method::POST, path, body).await;
            assert_eq!((refused.0, refused.1["error"]["param"].as_str()), (status, Some(param)), "{}", refused.1);
        }
        let invited = send(&mut owner, Method::POST, path, json!({ "email": "Ben@example.com", "role": "viewer" })).await;
        assert_eq!((invited.0, invited.1["email"].as_str(), &invited.1["url"]), (201, Some("ben@example.com"), &Value::Null), "{}", invited.1);
        let first = link(world, "ben@example.com").await;

        // Again: the first link is void.
        send(&mut owner, Method::POST, path, json!({ "email": "ben@example.com", "role": "admin" })).await;
        assert_eq!(owner.get(path).await.ok()["data"].as_array().unwrap().len(), 1);
        let mut visitor = Browser::new(world);
        let look = async |visitor: &mut Browser, token: &str| send(visitor, Method::POST, "/v1/_internal/invitations/look", json!({ "token": token })).await;
        assert_eq!(look(&mut visitor, &first).await.0, 404);
        let mut token = first.clone();
        while token == first {
            world.advance(std::time::Duration::from_millis(100)).await;
            token = link(world, "ben@example.com").await;
        }
        let seen = look(&mut visitor, &token).await;
        assert_eq!(seen.1, json!({ "workspace": "Acme", "slug": "acme", "email": "ben@example.com", "role": "admin", "has_account": false }));
        let accept = "/v1/_internal/invitations/accept";
        let short = send(&mut visitor, Method::POST, accept, json!({ "token": token, "password": "short" })).await;
        assert_eq!((short.0, short.1["error"]["param"].as_str()), (422, Some("password")));
        let joined = send(&mut visitor, Method::POST, accept, json!({ "token": token, "password": PASSWORD })).await;
        assert_eq!((joined.0, joined.1["workspaces"][0]["role"].as_str()), (200, Some("admin")), "{}", joined.1);
        assert_eq!(send(&mut visitor, Method::POST, accept, json!({ "token": token, "password": PASSWORD })).await.0, 404, "once");
        assert_eq!(owner.get(path).await.ok()["data"], json!([]));

        // An account that there is joins by its own password.
        let (mut other, _) = second_workspace(world).await;
        let second = "/v1/_internal/t/other/invitations";
        assert_eq!(send(&mut other, Method::POST, second, json!({ "email": "ben@example.com", "role": "viewer" })).await.0, 201);
        let mut again = token.clone();
        while again == token {
            world.advance(std::time::Duration::from_millis(100)).await;
            again = link(world, "ben@example.com").await;
        }
        assert_eq!(look(&mut visitor, &again).await.1["has_account"], true);
        let wrong = send(&mut visitor, Method::POST, accept, json!({ "token": again, "password": "a password of mine" })).await;
        assert_eq!((wrong.0, wrong.1["error"]["param"].as_str()), (403, Some("password")));
        let joined = send(&mut visitor, Method::POST, accept, json!({ "token": again, "password": PASSWORD })).await;
        assert_eq!((joined.0, joined.1["workspaces"].as_array().map(Vec::len)), (200, Some(2)), "{}", joined.1);

        // Withdrawn, or too old.
        let gone = send(&mut other, Method::POST, second, json!({ "email": "cleo@example.com", "role": "viewer" })).await.1;
        let late = link(world, "cleo@example.com").await;
        let one = format!("{second}/{}", gone["id"].as_str().unwrap());
        assert_eq!(send(&mut owner, Method::DELETE, &one.replace("other", "acme"), json!({})).await.0, 404, "another workspace's");
        assert_eq!(send(&mut other, Method::DELETE, &one, json!({})).await.0, 204);
        assert_eq!(look(&mut visitor, &late).await.0, 404);
        // Whoever is let go has let nobody in for later.
        let members = other.get("/v1/_internal/t/other/members").await.ok();
        let ben = members["data"].as_array().unwrap().iter().find(|one| one["email"] == "ben@example.com").unwrap().clone();
        let ben_path = format!("/v1/_internal/t/other/members/{}", ben["id"].as_str().unwrap());
        assert_eq!(send(&mut other, Method::PATCH, &ben_path, json!({ "role": "owner" })).await.0, 200);
        let signed_in = send(&mut visitor, Method::POST, "/v1/_internal/login", json!({ "email": "ben@example.com", "password": PASSWORD })).await;
        assert_eq!(signed_in.0, 200, "{}", signed_in.1);
        assert_eq!(send(&mut visitor, Method::POST, second, json!({ "email": "dora@example.com", "role": "owner" })).await.0, 201);
        let back = link(world, "dora@example.com").await;
        assert_eq!(look(&mut visitor, &back).await.0, 200);
        assert_eq!(send(&mut other, Method::DELETE, &ben_path, json!({})).await.0, 204);
        assert_eq!(look(&mut visitor, &back).await.0, 404);
        let log = owner.get("/v1/_internal/t/acme/audit-log").await.ok();
        let actions: Vec<_> = log["data"].as_array().unwrap().iter().map(|row| row["action"].as_str().unwrap()).collect();
        assert!(actions.contains(&"invited") && actions.contains(&"member_added"), "{actions:?}");
    }

    async fn a_lost_password_is_replaced_by_a_link(world: &mut World) {
        let (mut owner, _) = set_up(world).await;
        let (ask, confirm) = ("/v1/_internal/password-reset", "/v1/_internal/password-reset/confirm");
        let mut visitor = Browser::new(world);
        // Nobody learns who has an account.
        assert_eq!(send(&mut visitor, Method::POST, ask, json!({ "email": "nobody@example.com" })).await, (202, Value::Null));
        assert_eq!(send(&mut visitor, Method::POST, ask, json!({ "email": "Ann@example.com" })).await, (202, Value::Null));
        let token = link(world, "ann@example.com").await;
        let new = "another correct horse";
        let refused = send(&mut visitor, Method::POST, confirm, json!({ "token": "x", "password": new })).await;
        assert_eq!(refused.0, 404);
        let refused = send(&mut visitor, Method::POST, confirm, json!({ "token": token, "password": "short" })).await;
        assert_eq!((refused.0, refused.1["error"]["param"].as_str()), (422, Some("password")));
        assert_eq!(owner.get("/v1/_internal/me").await.status.as_u16(), 200);
        assert_eq!(send(&mut visitor, Method::POST, confirm, json!({ "token": token, "password": new })).await.0, 204);
        assert_eq!(owner.get("/v1/_internal/me").await.status.as_u16(), 401, "all sessions end");
        assert_eq!(send(&mut visitor, Method::POST, confirm, json!({ "token": token, "password": new })).await.0, 404, "once");
        let signed_in = send(&mut visitor, Method::POST, "/v1/_internal/login", json!({ "email": "ann@example.com", "password": new })).await;
        assert_eq!(signed_in.0, 200, "{}", signed_in.1);

        // It is not kept where somebody could read it, and opens nothing after an hour.
        let mails = entities::mail::due(&world.deps().db.read, entities::values::Moment::from_millis(i64::MAX), 10).await.unwrap();
        assert!(mails.is_empty(), "{mails:?}");
        send(&mut visitor, Method::POST, ask, json!({ "email": "ann@example.com" })).await;
        let mut late = token.clone();
        while late == token {
            world.advance(std::time::Duration::from_millis(100)).await;
            late = link(world, "ann@example.com").await;
        }
        world.advance(minutes(61)).await;
        assert_eq!(send(&mut visitor, Method::POST, confirm, json!({ "token": late, "password": PASSWORD })).await.0, 404);
    }

    async fn ones_own_sessions_are_seen_and_ended_one_by_one(world: &mut World) {
        let (mut owner, _) = set_up(world).await;
        let mut phone = Browser::new(world);
        assert_eq!(send(&mut phone, Method::POST, "/v1/_internal/login", json!({ "email": "ann@example.com", "password": PASSWORD })).await.0, 200);
        let sessions = owner.get("/v1/_internal/sessions").await.ok()["data"].clone();
        let rows = sessions.as_array().unwrap();
        assert_eq!(rows.len(), 2, "{sessions}");
        let others: Vec<_> = rows.iter().filter(|row| row["is_this_one"] == false).collect();
        assert_eq!(others.len(), 1);
        let path = format!("/v1/_internal/sessions/{}", others[0]["id"].as_str().unwrap());
        assert_eq!(send(&mut owner, Method::DELETE, "/v1/_internal/sessions/0123456789abcdef", json!({})).await.0, 404);
        assert_eq!(send(&mut owner, Method::DELETE, &path, json!({})).await.0, 204);
        assert_eq!(phone.get("/v1/_internal/me").await.status.as_u16(), 401);
        assert_eq!(owner.get("/v1/_internal/me").await.status.as_u16(), 200);
    }
}

/// Somebody else's, with its owner signed in.
async fn second_workspace(world: &mut World) -> (Browser, Value) {
    world.change_setting("signup_open", json!(true)).await;
    let mut browser = Browser::new(world);
    let sign_up = json!({ "slug": "other", "name": "Other", "email": "otto@example.com", "password": PASSWORD });
    let (status, body) = send(&mut browser, Method::POST, "/v1/_internal/signup", sign_up).await;
    assert_eq!(status, 201, "{body}");
    (browser, body)
}
