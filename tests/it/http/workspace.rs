//! Where a workspace is, and by which way its people may sign in.
use super::dashboard::{Browser, PASSWORD, set_up};
use crate::{
    on_both,
    world::{Answer, World},
};
use reqwest::{Method, RequestBuilder};
use serde_json::{Value, json};

async fn patch(browser: &mut Browser, path: &str, body: Value) -> Answer {
    let request = browser.request(Method::PATCH, path).json(&body);
    browser.send(request).await
}

/// As a browser posts it that has the page from `origin`. Over plain http it sends no Sec-Fetch-Site, but to its own machine.
fn from(origin: &str, browser: &Browser, path: &str, body: &Value) -> RequestBuilder {
    let mut request = browser.request(Method::POST, path).json(body).build().unwrap();
    let headers = request.headers_mut();
    headers.remove("sec-fetch-site");
    headers.insert("origin", origin.parse().unwrap());
    headers.insert("host", origin.split_once("://").unwrap().1.parse().unwrap());
    RequestBuilder::from_parts(browser.api.client.clone(), request)
}

on_both! {
    /// The browser would drop the cookie: that is said before the one-time link is spent.
    async fn plain_http_signs_nobody_in_and_spends_nothing(world: &mut World) {
        world.change_setting("dev", json!(false)).await;
        let token = callboard::access::set_up_token(&world.deps().db).await.unwrap().unwrap();
        let mut browser = Browser::new(world);
        let sign_up = json!({ "token": token, "slug": "acme", "name": "Acme", "email": "ann@example.com", "password": PASSWORD });
        let refused = browser.send(from("http://192.0.2.7:8080", &browser, "/v1/_internal/signup", &sign_up)).await;
        assert_eq!(refused.error(), (403, "forbidden", None));
        let why = refused.body["error"]["message"].as_str().unwrap();
        assert!(why.contains("TLS proxy") && why.contains("CALLBOARD_BASE_URL") && why.contains("localhost"), "{why}");
        assert!(browser.cookie.is_none());
        // The link is good still, from where the cookie holds.
        let own = world.url.replace("127.0.0.1", "localhost");
        let made = browser.send(from(&own, &browser, "/v1/_internal/signup", &sign_up)).await;
        let cookie = made.headers[reqwest::header::SET_COOKIE].to_str().unwrap().to_owned();
        assert!(cookie.starts_with("__Host-callboard=") && cookie.contains("Secure"), "{cookie}");
        assert_eq!(made.status.as_u16(), 201, "{}", made.body);
        let sign_in = json!({ "email": "ann@example.com", "password": PASSWORD });
        let refused = browser.send(from("http://callboard.lan", &browser, "/v1/_internal/login", &sign_in)).await;
        assert_eq!(refused.error(), (403, "forbidden", None));
        // Behind a proxy that speaks TLS.
        browser.send(from("https://calls.example.com", &browser, "/v1/_internal/login", &sign_in)).await.ok();
    }

    async fn a_workspace_is_where_its_people_say(world: &mut World) {
        let mut visitor = Browser::new(world);
        let countries = visitor.get("/v1/_internal/countries").await.ok();
        let zone = |country: &str| countries["data"].as_array().unwrap().iter().find(|it| it["country"] == country).unwrap()["timezone"].clone();
        assert_eq!((zone("DE"), zone("US"), zone("AU")), (json!("Europe/Berlin"), json!("America/New_York"), json!("Australia/Sydney")));
        // Made in US settings by mistake, as every workspace was.
        let (mut browser, _) = set_up(world).await;
        let path = "/v1/_internal/t/acme";
        let settings = browser.get(path).await.ok();
        assert_eq!((settings["country"].as_str(), settings["timezone"].as_str()), (Some("US"), Some("America/New_York")));
        let key = browser.post(&format!("{path}/api-keys"), json!({ "name": "x", "env": "test" })).await.ok();
        let api = crate::world::Api { key: key["plaintext"].as_str().unwrap().into(), ..browser.api.clone() };
        for (more, param) in [(json!({ "max_calls_per_minute": 0 }), "max_calls_per_minute"), (json!({ "max_spend_cents_per_day": -1 }), "max_spend_cents_per_day")] {
            let mut asked = json!({ "name": "x" });
            asked.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            assert_eq!(browser.post(&format!("{path}/api-keys"), asked).await.error(), (422, "validation_failed", Some(param)), "{more}");
        }
        let limits = json!({ "name": "y", "max_calls_per_minute": 10, "max_spend_cents_per_day": 5_000 });
        let limited = browser.post(&format!("{path}/api-keys"), limits).await.ok();
        assert_eq!((&limited["max_calls_per_minute"], &limited["max_spend_cents_per_day"]), (&json!(10), &json!(5_000)));
        let add = async || api.post("/v1/dnc", json!({ "phone_number": "030 901820" })).await.status.as_u16();
        assert_eq!(add().await, 422, "not a number of the United States");
        for (body, param) in [
            (json!({ "country": "Germany" }), "country"), (json!({ "country": null }), "country"),
            (json!({ "timezone": "Europe/Bonn" }), "timezone"), (json!({ "name": "" }), "name"), (json!({ "slug": "x" }), "slug"),
        ] {
            assert_eq!(patch(&mut browser, path, body.clone()).await.error(), (422, "validation_failed", Some(param)), "{body}");
        }
        assert_eq!(browser.get(path).await.ok(), settings, "what is refused changes nothing");
        let changed = patch(&mut browser, path, json!({ "country": "DE", "timezone": "Europe/Berlin" })).await.ok();
        assert_eq!((changed["country"].as_str(), changed["timezone"].as_str(), changed["name"].as_str()), (Some("DE"), Some("Europe/Berlin"), Some("Acme")));
        assert_eq!(add().await, 201, "a number of Berlin");
        assert_eq!(patch(&mut browser, path, json!({ "country": "DE" })).await.ok(), changed, "a second time changes nothing");
        let log = browser.get(&format!("{path}/audit-log")).await.ok();
        assert_eq!(log["data"][0]["details"], json!({ "country": "DE", "timezone": "Europe/Berlin" }));
        assert_eq!((log["data"][0]["action"].as_str(), log["data"].as_array().unwrap().len()), (Some("workspace_changed"), 3));
    }

    async fn the_first_workspace_says_where_it_is(world: &mut World) {
        let mut browser = Browser::new(world);
        let token = callboard::access::set_up_token(&world.deps().db).await.unwrap().unwrap();
        let sign_up = |zone: &str| json!({
            "token": token, "slug": "acme", "name": "Acme", "email": "ann@example.com", "password": PASSWORD, "country": "ES", "timezone": zone,
        });
        let refused = browser.post("/v1/_internal/signup", sign_up("Canaries")).await;
        assert_eq!(refused.error(), (422, "validation_failed", Some("timezone")));
        browser.post("/v1/_internal/signup", sign_up("Atlantic/Canary")).await.ok();
        let settings = browser.get("/v1/_internal/t/acme").await.ok();
        assert_eq!((settings["country"].as_str(), settings["timezone"].as_str()), (Some("ES"), Some("Atlantic/Canary")));
    }
}
