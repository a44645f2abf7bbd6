//! Where events go: an endpoint from its first test to its end, what was sent and answered, and the events themselves.
use super::*;
use crate::world::Receiver;

const ENDPOINTS: &str = "/v1/webhook_endpoints";
/// As many failures in a row as suspend an endpoint.
const STREAK: usize = 10;
/// From now on the page's requests are kept where tests find them.
const KEEP_REQUESTS: &str = "{
    const real = window.fetch;
    window.requests = [];
    window.fetch = (address, options = {}) => {
        window.requests.push([String(address), String(options.body)]);
        return real(address, options);
    };
}";
const SECRET_IS_SHOWN: &str = "document.querySelector('dialog[open] .secret code') !== null";

impl Stage {
    /// So many events, one after the other.
    async fn make_campaigns(&self, count: usize) {
        for n in 0..count {
            let campaign = json!({ "name": format!("Campaign {n}"), "agent_id": self.agent["id"] });
            self.api.post("/v1/campaigns", campaign).await;
        }
    }
}

/// Chooses from a list, as soon as it has that.
async fn choose(page: &Page, selector: &str, value: &str) {
    let script = format!(
        "(() => {{
            const it = document.querySelector({0});
            it.value = {1};
            if (it.value !== {1}) return false;
            it.dispatchEvent(new Event('change', {{ bubbles: true }}));
            return true;
        }})()",
        json!(selector),
        json!(value)
    );
    page.until(&script).await;
}

/// What is shown once, before the dialog is closed.
async fn secret_of(page: &Page) -> String {
    page.until(SECRET_IS_SHOWN).await;
    let secret = page.text("dialog[open] .secret code").await;
    assert!(secret.starts_with("whsec_"), "{secret}");
    secret
}

#[test]
fn an_endpoint_is_added_tested_suspended_recovered_and_deleted() {
    on_stage(async |stage| {
        let receiver = Receiver::start();
        let mut page = stage.visit(ADMIN, "/t/acme/test/webhooks", DESKTOP).await;
        page.until(&shows("No endpoint yet.")).await;
        pictures(&mut page, "webhooks-none").await;

        // What is missing is said at its field, and nothing is made.
        press(&page, "Add endpoint").await;
        page.until("document.activeElement.name === 'url'").await;
        press(&page, "Add endpoint").await;
        page.until(&shows("Enter an address such as https://hooks.example.com/callboard."))
            .await;
        page.write("[name=url]", &receiver.url).await;
        page.click("dialog [value='*']").await;
        press(&page, "Add endpoint").await;
        page.until(&shows("Choose at least one.")).await;
        assert_eq!(stage.api.get(ENDPOINTS).await["data"], json!([]));
        page.click("dialog details.picks:nth-of-type(2) > summary").await;
        page.click("dialog [value='campaign.*']").await;
        pictures(&mut page, "webhook-form").await;
        press(&page, "Add endpoint").await;
        let secret = secret_of(&page).await;
        receiver.expect_signatures_of(&secret);
        pictures(&mut page, "webhook-secret").await;
        press(&page, "Done").await;
        page.until(&shows("Nothing has been sent to this endpoint yet.")).await;
        let shown_again = format!("document.documentElement.outerHTML.includes({})", json!(secret));
        assert_eq!(page.value(&shown_again).await, false);
        let made = stage.api.get(ENDPOINTS).await["data"][0].clone();
        assert_eq!(made["url"], receiver.url.as_str());
        assert_eq!(made["event_types"], json!(["campaign.*"]));
        let path = format!("{ENDPOINTS}/{}", made["id"].as_str().unwrap());

        press(&page, "Send test").await;
        page.until(&shows("The test was delivered")).await;
        page.until(&shows("the receiver's own words")).await;
        assert_eq!(receiver.requests()[0].event_type(), "webhook.test");
        pictures(&mut page, "webhook-test").await;
        press(&page, "Close").await;

        // The page follows without a reload.
        receiver.answer_next([400; STREAK]);
        stage.make_campaigns(STREAK).await;
        page.until(&shows("Nothing is sent, and new deliveries are held."))
            .await;
        stage.make_campaigns(1).await;
        page.until(&shows("1 held")).await;
        pictures(&mut page, "webhook-suspended").await;

        choose(&page, "#status", "failed").await;
        page.until("document.querySelectorAll('.deliveries tbody tr').length === 10")
            .await;
        assert_eq!(page.value("location.search").await, "?status=failed");
        press(&page, "Details").await;
        page.until(&shows("The receiver answered 400")).await;
        page.until(&shows("\"type\": \"campaign.created\"")).await;
        pictures(&mut page, "webhook-delivery").await;
        press(&page, "Close").await;

        press(&page, "Enable").await;
        page.until(&shows("Deliveries held since a suspension: 1.")).await;
        press(&page, "Recover").await;
        pictures(&mut page, "webhook-recover").await;
        confirm(&page, "Send again").await;
        page.until(&shows("Held deliveries released: 1. Failed deliveries sent again: 10."))
            .await;
        receiver.arrived(1 + STREAK + STREAK + 1).await;
        pictures(&mut page, "webhook-recovered").await;
        let counts = receiver.counts_by_id();
        assert_eq!(counts.values().filter(|count| **count == 2).count(), STREAK);
        let all = receiver.requests();
        assert!(all.iter().all(|request| request.verified == Some(true)));

        press(&page, "Rotate secret").await;
        confirm(&page, "Make a new secret").await;
        let new = secret_of(&page).await;
        assert_ne!(new, secret);
        press(&page, "Done").await;
        page.until(&shows("Deliveries are also signed with the previous secret"))
            .await;
        press(&page, "Revoke previous secret").await;
        confirm(&page, "Revoke it").await;
        let is_revoked = |endpoint: &Value| endpoint["previous_secret_expires_at"].is_null();
        stage.api.until(&path, is_revoked).await;
        receiver.expect_signatures_of(&new);
        press(&page, "Send test").await;
        page.until(&shows("The test was delivered")).await;
        assert_eq!(receiver.requests().last().unwrap().verified, Some(true));

        press(&page, "Edit").await;
        page.until("document.querySelector('dialog[open] [name=description]') !== null")
            .await;
        page.write("dialog [name=description]", "Our books").await;
        press(&page, "Save").await;
        page.until(&shows("Our books")).await;
        let edited = stage.api.get(&path).await;
        assert_eq!(edited["description"], "Our books");
        assert_eq!(edited["event_types"], json!(["campaign.*"]), "the rest stays as it was");

        press(&page, "Disable").await;
        confirm(&page, "Disable").await;
        page.until(&shows("Disabled: nothing is sent to it")).await;
        assert_eq!(stage.api.get(&path).await["status"], "disabled");
        press(&page, "Delete").await;
        confirm(&page, "Delete endpoint").await;
        page.until(&shows("No endpoint yet.")).await;
        assert_eq!(stage.api.get(ENDPOINTS).await["data"], json!([]));
        is_well(&page).await;
    });
}

#[test]
fn events_are_found_sent_again_and_their_signatures_checked() {
    on_stage(async |stage| {
        let receiver = Receiver::start();
        let endpoint = json!({ "url": receiver.url, "event_types": ["*"] });
        let endpoint = stage.api.post(ENDPOINTS, endpoint).await;
        let secret = endpoint["secret"].as_str().unwrap();
        receiver.expect_signatures_of(secret);
        let mut page = stage.visit(ADMIN, "/t/acme/test/events", DESKTOP).await;
        page.until(&shows("Nothing has happened yet.")).await;
        stage.make_campaigns(2).await;
        receiver.arrived(2).await;
        page.until("document.querySelectorAll('tbody tr').length === 2").await;
        pictures(&mut page, "events").await;

        // By what it is about, and by its type; the address says it.
        press(&page, "Only this").await;
        page.until("document.querySelectorAll('tbody tr').length === 1").await;
        let search = page.value("location.search").await;
        assert!(search.as_str().unwrap().starts_with("?subject="), "{search}");
        choose(&page, "#type", "session.ended").await;
        page.until(&shows("No event matches.")).await;
        choose(&page, "#type", "campaign.created").await;
        page.until("document.querySelectorAll('tbody tr').length === 1").await;
        page.click("tbody a").await;
        page.until(&format!(
            "document.querySelector('.deliveries')?.innerText.includes({})",
            json!(receiver.url)
        ))
        .await;
        pictures(&mut page, "event").await;
        page.click("main form.stack > .actions button").await;
        confirm(&page, "Send again").await;
        page.until(&shows("It is being sent to 1 endpoint.")).await;
        receiver.arrived(3).await;
        let again = receiver.requests()[2].clone();
        assert_eq!(again.headers["x-webhook-replay"], "true");
        let path = page.value("location.pathname").await;
        assert!(path.as_str().unwrap().ends_with(again.id()), "{path}: {}", again.id());
        page.until("document.querySelectorAll('.deliveries tbody tr').length === 2")
            .await;

        press(&page, "Events").await;
        press(&page, "Event types").await;
        page.until("document.querySelectorAll('article.type pre').length === 36")
            .await;
        page.click("article.type summary").await;
        pictures(&mut page, "event-types").await;
        let examples = "[...document.querySelectorAll('article.type pre')].map((one) => JSON.parse(one.textContent))";
        for example in page.value(examples).await.as_array().unwrap() {
            assert_eq!(crate::specification::faults(example), Vec::<String>::new());
        }

        press(&page, "Webhooks").await;
        press(&page, "Check a signature").await;
        page.until("document.querySelector('[name=secret]') !== null").await;
        page.value(KEEP_REQUESTS).await;
        page.write("[name=body]", std::str::from_utf8(&again.raw).unwrap())
            .await;
        page.write("[name=timestamp]", &again.headers["x-webhook-timestamp"])
            .await;
        page.write("[name=signature]", &again.headers["x-webhook-signature"])
            .await;
        page.write("[name=secret]", secret).await;
        press(&page, "Check").await;
        page.until(&shows("The delivery verifies")).await;
        pictures(&mut page, "signature-right").await;
        page.write("[name=body]", "changed").await;
        press(&page, "Check").await;
        page.until(&shows("The delivery does not verify")).await;
        pictures(&mut page, "signature-wrong").await;
        let sent = page.value("JSON.stringify(window.requests)").await;
        let signature = again.headers["x-webhook-signature"].as_str();
        for pasted in [secret, again.id(), signature] {
            assert!(!sent.as_str().unwrap().contains(pasted), "{sent}");
        }

        // Pages that came over plain http cannot.
        page.before_each_load("Object.defineProperty(Crypto.prototype, 'subtle', { get: () => undefined })")
            .await;
        page.go(&stage.url("/t/acme/test/webhooks?show=verify")).await;
        page.until(&shows("This page was loaded over plain http")).await;
        pictures(&mut page, "signature-http").await;

        let path = format!("/t/acme/test/webhooks/{}", endpoint["id"].as_str().unwrap());
        let mut page = stage.visit(VIEWER, &path, PHONE).await;
        page.until("document.querySelector('.deliveries tbody tr') !== null")
            .await;
        let buttons = page
            .value("[...document.querySelectorAll('main button')].map((one) => one.innerText).join()")
            .await;
        for word in ["Send", "Edit", "Rotate", "Disable", "Delete", "Recover"] {
            assert!(!buttons.as_str().unwrap().contains(word), "{word}: {buttons}");
        }
        pictures(&mut page, "webhook-viewer").await;
    });
}
