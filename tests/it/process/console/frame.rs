//! What is so on every page: two windows, a keyboard, hostile texts, a browser that keeps no cookie.
use super::*;

/// Goes from control to control with the Tab key until it is on the one with these words.
async fn tab_to(page: &Page, words: &str) {
    let here = format!(
        "[document.activeElement?.innerText?.trim(), document.activeElement?.getAttribute('aria-label')].includes({})",
        json!(words)
    );
    for _ in 0..200 {
        page.key("Tab").await;
        if page.value(&here).await == true {
            // Whoever sees it must see where it is.
            let outline = page
                .value("getComputedStyle(document.activeElement).outlineStyle")
                .await;
            assert_ne!(outline, "none", "{words}");
            return;
        }
    }
    panic!("no Tab leads to {words}: {}", page.text("body").await);
}

#[test]
fn a_campaign_is_found_started_and_paused_by_the_keyboard_alone() {
    on_stage(async |stage| {
        let campaign = stage.campaign("Spring check-up", 900).await;
        let path = format!("/v1/campaigns/{}", campaign["id"].as_str().unwrap());
        let page = stage.visit(OWNER, "/t/acme/test/overview", DESKTOP).await;
        page.until(&shows("Needs attention")).await;
        // Past the menu at once, or by it.
        page.key("Tab").await;
        assert_eq!(page.text(":focus").await, "Skip to the content");
        page.key("Enter").await;
        assert_eq!(page.value("location.hash").await, "#content");
        tab_to(&page, "Campaigns").await;
        page.key("Enter").await;
        page.until(&shows("New campaign")).await;
        // The new page is told to whoever does not see it.
        page.until("document.activeElement.tagName === 'H1'").await;
        tab_to(&page, "Spring check-up").await;
        page.key("Enter").await;
        page.until(&shows("Not called yet")).await;
        tab_to(&page, "Start").await;
        page.key("Enter").await;
        page.until("document.querySelector('dialog[open]') !== null").await;
        // What does no harm is chosen first, and Escape is another way out.
        assert_eq!(page.text(":focus").await, "Not yet");
        page.key("Escape").await;
        page.until(NO_DIALOG).await;
        assert_eq!(page.text(":focus").await, "Start", "the focus is back where it was");
        page.key("Enter").await;
        tab_to(&page, "Start campaign").await;
        page.key("Enter").await;
        stage.api.until(&path, |campaign| campaign["status"] == "running").await;
        page.until(&shows("Running")).await;
        tab_to(&page, "Pause").await;
        page.key("Space").await;
        page.until(&shows("Paused by hand.")).await;
        is_well(&page).await;
    });
}

#[test]
fn two_windows_follow_one_campaign_of_five_thousand() {
    on_stage(async |stage| {
        let campaign = stage.campaign("Long list", 5_000).await;
        let address = stage.url(&format!("/t/acme/test/campaigns/{}", campaign["id"].as_str().unwrap()));
        let mut one = stage.visit(OWNER, "/t/acme/test/overview", DESKTOP).await;
        one.go(&address).await;
        one.until(&shows("0 of 5,000")).await;
        let two = one.second_tab().await;
        two.go(&address).await;
        two.until(&shows("0 of 5,000")).await;
        press(&one, "Start").await;
        confirm(&one, "Start campaign").await;
        for window in [&one, &two] {
            window.until(&shows("Running")).await;
            // Calls end, and both see it.
            window
                .until("document.querySelector('.whole progress').value > 0")
                .await;
        }
        pictures(&mut one, "long-list").await;
        press(&two, "Pause").await;
        one.until(&shows("Paused by hand.")).await;
        press(&one, "Resume").await;
        two.until(&shows("Running")).await;
        press(&two, "Cancel campaign").await;
        confirm(&two, "Cancel campaign").await;
        one.until(&shows("It was canceled.")).await;
        for window in [&one, &two] {
            is_well(window).await;
        }
    });
}

#[test]
fn texts_are_texts_whatever_is_in_them_on_every_page() {
    on_stage(async |stage| {
        let script = "<script>window.hacked = true</script><img src=x onerror='window.hacked = true'>";
        let hostile = format!("{script} \u{202e}backwards {}", "W".repeat(90));
        let long = format!("{script} {}", "x".repeat(9_000));
        let api = &stage.api;
        let given = |path: &str, body: Value| (path.to_owned(), body);
        let made = [
            given(
                "agents",
                json!({ "name": hostile, "prompt": long, "first_message": hostile }),
            ),
            given(
                "functions",
                json!({ "name": "hostile", "description": hostile, "url": "http://127.0.0.1:9/hook", "parameters": { "type": "object", "properties": {} } }),
            ),
            given(
                "webhook_endpoints",
                json!({ "url": format!("http://127.0.0.1:9/{}", "p".repeat(900)), "event_types": ["*"], "description": hostile }),
            ),
            given("dnc", json!({ "phone_number": "+12025550123", "reason": hostile })),
            given(
                "numbers",
                json!({ "phone_number": "+15002340199", "agent_id": stage.agent["id"], "label": &hostile[..60] }),
            ),
            given(
                "sms_messages",
                json!({ "to_number": "+15002340001", "body": &hostile[..100] }),
            ),
            given(
                "rooms",
                json!({ "agent_id": stage.agent["id"], "participant": { "first_name": hostile } }),
            ),
        ];
        for (path, body) in made {
            api.post(&format!("/v1/{path}"), body).await;
        }
        let campaign = stage.campaign(&hostile, 1).await;
        let contacts = format!("/v1/campaigns/{}/contacts", campaign["id"].as_str().unwrap());
        let contact = json!({ "phone_number": "+15002349999", "first_name": hostile, "last_name": "x".repeat(200), "external_id": hostile });
        api.post(&contacts, json!({ "contacts": [contact] })).await;
        let mut page = stage.visit(OWNER, "/t/acme/test/campaigns", PHONE).await;
        page.until(&shows("<script>window.hacked")).await;
        pictures(&mut page, "hostile-list").await;
        let of = |name: &str| format!("/t/acme/test/{name}");
        let one = async |kind: &str| {
            api.get(&format!("/v1/{kind}")).await["data"][0]["id"]
                .as_str()
                .unwrap()
                .to_owned()
        };
        let pages = [
            (
                of(&format!("campaigns/{}", campaign["id"].as_str().unwrap())),
                "backwards",
            ),
            (of("agents"), "backwards"),
            (of(&format!("agents/{}", one("agents").await)), "backwards"),
            (of("functions"), "hostile"),
            (of(&format!("functions/{}", one("functions").await)), "hostile"),
            (of("webhooks"), "127.0.0.1:9"),
            (
                of(&format!("webhooks/{}", one("webhook_endpoints").await)),
                "127.0.0.1:9",
            ),
            (of("dnc"), "window.hacked"),
            (of("numbers"), "window.hacked"),
            (of("messages"), "+15002340001"),
            (of("rooms"), "backwards"),
            (of(&format!("find?q={}", "x".repeat(200))), "xxx"),
            (of("find?q=%3Cscript%3E"), "<script>"),
            (of("%3Cscript%3E"), "There is nothing here"),
            (of("calls/%E0%A4%A"), "Not found"),
        ];
        for (address, words) in pages {
            page.go(&stage.url(&address)).await;
            page.until(&format!("document.querySelector('#content').innerText.includes({0}) || [...document.querySelectorAll('input, textarea')].some(({{ value }}) => value.includes({0}))", json!(words))).await;
            for screen in [PHONE, DESKTOP] {
                page.screen(screen).await;
                let width = page.value("document.documentElement.scrollWidth").await;
                assert!(width.as_u64().unwrap() <= u64::from(page.width()), "{address}: {width}");
            }
            assert_eq!(page.value("window.hacked === undefined").await, true, "{address}");
        }
    });
}

#[test]
fn a_browser_that_keeps_no_cookie_is_told_so() {
    on_stage(async |stage| {
        let page = stage.browser.open(DESKTOP).await;
        page.before_each_load("const real = fetch; window.fetch = (address, options) => real(address, { ...options, credentials: 'omit' });")
            .await;
        page.go(&stage.url("/login")).await;
        page.write("#email", OWNER).await;
        page.write("#password", PASSWORD).await;
        page.click("#login > button").await;
        page.until("document.body.innerText.includes('does not keep you signed in')")
            .await;
        assert_eq!(page.value("location.pathname").await, "/login");
    });
}
