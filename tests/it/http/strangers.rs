//! What people can do whom nobody knows: fill no memory, and keep nobody out.
use crate::{
    on_both,
    world::{Answer, World, client},
};
use callboard::state::State;
use reqwest::header::SET_COOKIE;
use serde_json::{Value, json};
use std::net::IpAddr;

const PASSWORD: &str = "correct horse battery";

fn state(world: &World) -> &State {
    &world.app.as_ref().unwrap().state
}

async fn send(request: reqwest::RequestBuilder) -> Answer {
    let response = request.send().await.unwrap();
    let (status, headers) = (response.status(), response.headers().clone());
    let body = serde_json::from_str(&response.text().await.unwrap()).unwrap_or(Value::Null);
    Answer { status, headers, body }
}

/// A try to sign in as Ann, from an address, with a cookie or none.
async fn sign_in(world: &World, from: &str, cookie: &str) -> Answer {
    let request = client()
        .post(format!("{}/v1/_internal/login", world.url))
        .header("X-Forwarded-For", from)
        .header("Cookie", cookie)
        .json(&json!({ "email": "ann@example.com", "password": PASSWORD }));
    send(request).await
}

/// Ann makes the first workspace; answers the cookie of her browser that says that she has signed in with it.
async fn set_up(world: &World) -> String {
    let token = callboard::access::set_up_token(&world.deps().db)
        .await
        .unwrap()
        .unwrap();
    let body =
        json!({ "token": token, "slug": "acme", "name": "Acme", "email": "ann@example.com", "password": PASSWORD });
    let request = client().post(format!("{}/v1/_internal/signup", world.url)).json(&body);
    let answer = send(request).await;
    assert_eq!(answer.status.as_u16(), 201, "{}", answer.body);
    let cookies = answer.headers.get_all(SET_COOKIE).iter();
    let mut cookies = cookies.map(|cookie| cookie.to_str().unwrap().split(';').next().unwrap().to_owned());
    cookies.find(|cookie| cookie.starts_with("callboard_device=")).unwrap()
}

/// Somebody guesses until they may guess no more. (Not by requests: each would hash a password.)
fn guess(world: &World, from: &str) {
    let from: IpAddr = from.parse().unwrap();
    while state(world).limits.sign_in(from, "ann@example.com").is_ok() {}
}

on_both! {
    async fn what_is_sent_to_sign_in_fills_no_memory(world: &mut World) {
        let sign_up = async |email: String| {
            let body = json!({ "email": email, "password": "x", "slug": "x", "name": "x" });
            send(client().post(format!("{}/v1/_internal/signup", world.url)).json(&body)).await
        };
        let login = async |email: String| {
            send(client().post(format!("{}/v1/_internal/login", world.url)).json(&json!({ "email": email, "password": "x" }))).await
        };
        for _ in 0..3 {
            assert_eq!(login("a".repeat(900 * 1024)).await.error(), (413, "payload_too_large", None));
            assert_eq!(sign_up("a".repeat(900 * 1024)).await.error(), (413, "payload_too_large", None));
            assert_eq!(login(format!("{}@example.com", "a".repeat(243))).await.error(), (422, "validation_failed", Some("email")));
            assert_eq!(sign_up(format!("{}@example.com", "a".repeat(243))).await.error(), (422, "validation_failed", Some("email")));
        }
        assert_eq!(state(world).limits.buckets(), 0, "refused before anything is counted");
    }

    async fn who_guesses_a_password_does_not_keep_its_owner_out(world: &mut World) {
        world.change_setting("trusted_proxy", json!(true)).await;
        let device = set_up(world).await;
        guess(world, "198.51.100.1");
        let refused = sign_in(world, "198.51.100.1", "").await;
        assert_eq!(refused.error(), (429, "rate_limited", None));
        assert!(refused.headers.contains_key("retry-after"));
        sign_in(world, "203.0.113.7", "").await.ok();
        sign_in(world, "10.0.0.1, 203.0.113.8:4711", "").await.ok();
        // From the same network only a browser in which she has signed in before.
        sign_in(world, "198.51.100.1", &device).await.ok();
        // From everywhere: also that.
        (0..=255).for_each(|n| guess(world, &format!("192.0.2.{n}")));
        assert_eq!(sign_in(world, "203.0.113.7", "").await.error().0, 429);
        sign_in(world, "203.0.113.7", &device).await.ok();
        // What is forged spares nobody, and the proof of one user says nothing of another.
        for cookie in ["callboard_device=x", "callboard_device=0.AAAA", &device[..device.len() - 4]] {
            assert_eq!(sign_in(world, "203.0.113.7", cookie).await.error().0, 429, "{cookie}");
        }
    }

    async fn clients_behind_one_address_are_refused_for_their_own_keys(world: &mut World) {
        let me = async |key: &str| {
            send(client().get(format!("{}/v1/me", world.url)).bearer_auth(key)).await.status.as_u16()
        };
        let key = |letter: &str| format!("vk_live_{}", letter.repeat(43));
        let (loud, quiet) = (key("a"), key("b"));
        let here: IpAddr = "127.0.0.1".parse().unwrap();
        while state(world).limits.unknown_key(here, &loud).is_ok() {}
        assert_eq!((me(&loud).await, me(&quiet).await, me("nonsense").await), (429, 401, 401));
    }
}
