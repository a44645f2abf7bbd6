//! The console as people use it: a real browser, the real binary, what they do and see there.
mod agents;
mod calls;
mod campaigns;
mod frame;
mod law;
mod lines;
mod members;
mod messages;
mod webhooks;

use super::{Calls, Place, on, terminate};
use crate::world::{
    Backend,
    browser::{Browser, DESKTOP, Microphone, PHONE, Page, Screen},
};
use serde_json::{Value, json};
use std::process::Child;

const PASSWORD: &str = "correct horse battery";
const OWNER: &str = "a@b.co";
const ADMIN: &str = "admin@b.co";
const VIEWER: &str = "viewer@b.co";
/// Time of the sandbox: a call of half a minute takes as long here.
const SPEED: &str = "10";

struct Stage {
    serving: Child,
    api: Calls,
    agent: Value,
    browser: Browser,
    place: Place,
}

/// The service does not outlive its test, however that ends.
impl Drop for Stage {
    fn drop(&mut self) {
        let _ = self.serving.kill();
        let _ = self.serving.wait();
    }
}

fn on_stage(test: impl AsyncFnOnce(&mut Stage)) {
    on_stage_with(&[], test);
}

/// With settings of its own.
fn on_stage_with(more: &[(&str, &str)], test: impl AsyncFnOnce(&mut Stage)) {
    on(Backend::Sqlite, async |place| {
        let usual = [("CALLBOARD_SANDBOX_SPEED", SPEED), ("CALLBOARD_VOICE", "tones")];
        let settings = [&usual[..], more].concat();
        let agent = json!({ "name": "Ann", "prompt": "x", "first_message": "Hello, this is Ann.", "max_duration_seconds": 7200,
            "brain": { "mode": "scripted", "replies": vec![json!({ "say": "I write that down." }); 60] } });
        play(place, Microphone::Missing, (&settings, agent), test).await;
    });
}

/// The service as `settings` want it, with one agent, a key, and a member of each role.
async fn play(
    place: Place,
    microphone: Microphone<'_>,
    (settings, agent): (&[(&str, &str)], Value),
    test: impl AsyncFnOnce(&mut Stage),
) {
    let Some(browser) = Browser::start(microphone).await else {
        return;
    };
    let key = place.workspace();
    for (who, role) in [(ADMIN, "admin"), (VIEWER, "viewer")] {
        let add = format!("workspace add-member --workspace acme --password-stdin --role {role} --email {who}");
        let add: Vec<&str> = add.split(' ').collect();
        assert!(place.run_with(&format!("{PASSWORD}\n"), &add).status.success());
    }
    let serving = place.serve(settings);
    let api = Calls::to(&place, key);
    let agent = api.post("/v1/agents", agent).await;
    let mut stage = Stage {
        serving,
        api,
        agent,
        browser,
        place,
    };
    test(&mut stage).await;
    terminate(&mut stage.serving);
}

impl Stage {
    fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.place.bind)
    }

    /// A tab in which somebody has signed in, on the way to a page of the console.
    async fn visit(&self, who: &str, path: &str, screen: Screen) -> Page {
        let page = self.browser.open(screen).await;
        // Nobody is signed in.
        page.go_on(&self.url(path)).await;
        assert_eq!(page.value("location.pathname").await, "/login");
        page.write("#email", who).await;
        page.write("#password", PASSWORD).await;
        page.leave_by("#login > button").await;
        page.until("document.querySelector('#console h1') !== null").await;
        page
    }

    /// A campaign with so many contacts, as a draft.
    async fn campaign(&self, name: &str, contacts: usize) -> Value {
        let numbers = (0..contacts).map(
            |n| json!({ "phone_number": format!("+1500234{n:04}"), "first_name": "Zoë", "last_name": format!("{n}") }),
        );
        let campaign = json!({ "name": name, "agent_id": self.agent["id"], "pacing": { "calls_per_second": 2 } });
        let campaign = self.api.post("/v1/campaigns", campaign).await;
        let path = format!("/v1/campaigns/{}/contacts", campaign["id"].as_str().unwrap());
        // As many as one request takes.
        for some in numbers.collect::<Vec<_>>().chunks(1_000) {
            self.api.post(&path, json!({ "contacts": some })).await;
        }
        campaign
    }
}

/// The page shows these words.
fn shows(words: &str) -> String {
    format!(
        "document.querySelector('#console').innerText.includes({})",
        json!(words)
    )
}

/// It is drawn, and not only there: a dialog opens a moment later.
fn is_seen(selector: &str) -> String {
    format!(
        "document.querySelector({}).getClientRects().length > 0",
        json!(selector)
    )
}

/// Puts a value in the place of what is in a field, also of one that is folded away.
async fn set(page: &Page, selector: &str, value: &str) {
    let script = format!(
        "(() => {{
            const it = document.querySelector({0});
            it.value = {1};
            for (const kind of ['input', 'change']) it.dispatchEvent(new Event(kind, {{ bubbles: true }}));
            return it.value;
        }})()",
        json!(selector),
        json!(value)
    );
    page.until(&format!("document.querySelector({}) !== null", json!(selector)))
        .await;
    assert_eq!(page.value(&script).await, value, "{selector}");
}

/// The same once it is seen.
async fn fill(page: &Page, selector: &str, value: &str) {
    page.until(&is_seen(selector)).await;
    set(page, selector, value).await;
}

/// Writes into a field that may be still to come.
async fn write(page: &Page, selector: &str, text: &str) {
    page.until(&is_seen(selector)).await;
    page.write(selector, text).await;
}

/// A cell of a table has these words.
fn has_cell(words: &str) -> String {
    format!(
        "[...document.querySelectorAll('td')].some((cell) => cell.innerText.includes({}))",
        json!(words)
    )
}

const NO_DIALOG: &str = "document.querySelector('dialog[open]') === null";

/// A button or a link with these words, in a dialog if one is open, gets an id of its own and is pressed.
async fn press(page: &Page, words: &str) {
    let find = format!(
        "(() => {{
            document.getElementById('pressed')?.removeAttribute('id');
            const all = (document.querySelector('dialog[open]') ?? document).querySelectorAll('button, a');
            const it = [...all].find((one) => one.innerText.trim() === {0} && !one.disabled);
            if (it) it.id = 'pressed';
            return Boolean(it);
        }})()",
        json!(words)
    );
    page.until(&find).await;
    page.click("#pressed").await;
}

/// The same in the dialog that asks first.
async fn confirm(page: &Page, words: &str) {
    page.until("document.querySelector('dialog[open]') !== null").await;
    press(page, words).await;
}

/// Nothing of it lies beyond the screen, and no script has complained.
async fn is_well(page: &Page) {
    // A page that is too wide is shown smaller on a telephone: the window's own width says nothing.
    let width = page.value("document.documentElement.scrollWidth").await;
    assert!(width.as_u64().unwrap() <= u64::from(page.width()), "{width}");
    assert_eq!(page.complaints(), Vec::<String>::new());
}

/// The narrowest telephone that a page has to fit.
const NARROW: Screen = PHONE;
/// As most have.
const USUAL: Screen = PHONE.sized("phone", 390, 844);

/// What keeps people out who do not see the page, or see little: by axe-core, in its version 4.14.1.
const AXE: &str = include_str!("../world/browser/axe.min.js");
const VIOLATIONS: &str = "axe.run(document, { resultTypes: ['violations'] }).then(({ violations }) => \
     violations.map(({ id, nodes }) => `${id}: ${nodes.map(({ target }) => target).join(' and ')}`).join('; '))";

/// At the usual widths, by day and by night; it ends on a desk.
async fn pictures(page: &mut Page, name: &str) {
    page.screen(NARROW).await;
    is_well(page).await;
    page.value("scrollTo(0, 0)").await;
    page.screen(USUAL).await;
    page.picture(&format!("console-{name}")).await;
    is_well(page).await;
    if page.value("typeof axe").await == "undefined" {
        page.value(&format!("{AXE};undefined")).await;
    }
    for (screen, time) in [(DESKTOP.dark(), "-night"), (DESKTOP, "")] {
        page.screen(screen).await;
        page.picture(&format!("console-{name}{time}")).await;
        is_well(page).await;
        assert_eq!(page.value(VIOLATIONS).await, "", "{name}{time}");
    }
}

#[test]
fn a_manager_starts_a_campaign_and_looks_into_its_calls() {
    on_stage(async |stage| {
        stage.campaign("Spring check-up", 6).await;
        // Two calls a second: for longer than the test takes.
        let long = stage.campaign("Long list", 900).await;
        let path = format!("/v1/campaigns/{}", long["id"].as_str().unwrap());
        let mut page = stage.visit(ADMIN, "/t/acme/test/campaigns", DESKTOP).await;
        page.until(&shows("Spring check-up")).await;
        page.until(&shows("Draft")).await;
        pictures(&mut page, "campaigns").await;

        // It asks once, and what was not confirmed changes nothing.
        press(&page, "Long list").await;
        press(&page, "Start").await;
        page.until(&shows("No real phone rings.")).await;
        confirm(&page, "Not yet").await;
        page.until(NO_DIALOG).await;
        assert_eq!(stage.api.get(&path).await["status"], "draft");
        press(&page, "Start").await;
        confirm(&page, "Start campaign").await;
        stage.api.until(&path, |campaign| campaign["status"] == "running").await;

        // The page follows without a reload.
        press(&page, "Pause").await;
        page.until(&shows("Paused by hand.")).await;
        assert_eq!(stage.api.get(&path).await["status"], "paused");
        press(&page, "Resume").await;
        stage.api.until(&path, |campaign| campaign["status"] == "running").await;
        press(&page, "Cancel campaign").await;
        confirm(&page, "Cancel campaign").await;
        page.until(&shows("It was canceled.")).await;

        press(&page, "Campaigns").await;
        press(&page, "Spring check-up").await;
        press(&page, "Start").await;
        confirm(&page, "Start campaign").await;
        page.until(&shows("6 of 6")).await;
        page.until(&shows("Everyone was reached or given up on.")).await;
        pictures(&mut page, "campaign").await;

        press(&page, "Can this contact be called?").await;
        page.until(&shows("This contact cannot be called now.")).await;
        page.until(&shows("The number is valid")).await;
        pictures(&mut page, "eligibility").await;
        press(&page, "Close").await;

        press(&page, "Last call").await;
        page.until(&shows("Hello, this is Ann.")).await;
        page.until(&shows("What happened")).await;
        page.until(&shows("Spring check-up")).await;
        pictures(&mut page, "call").await;

        press(&page, "Calls").await;
        page.until("document.querySelectorAll('tbody tr').length >= 6").await;
        pictures(&mut page, "calls").await;
        press(&page, "Overview").await;
        page.until(&shows("All is well.")).await;
        pictures(&mut page, "overview").await;
    });
}

#[test]
fn a_live_call_is_heard_in_words_and_ended_by_hand() {
    on_stage(async |stage| {
        // Each of these takes seconds, in the sandbox's time too: it outlasts the test.
        let story = json!({ "say": "And then I said to my neighbour that she should call you. ".repeat(15) });
        let call = json!({ "to_number": "+15002345600", "agent_id": stage.agent["id"], "sandbox": { "script": vec![story; 50] } });
        let session = stage.api.post("/v1/sessions", call).await;
        let id = session["id"].as_str().unwrap();
        let mut page = stage.visit(ADMIN, &format!("/t/acme/test/calls/{id}"), DESKTOP).await;
        page.until(&shows("Hello, this is Ann.")).await;
        page.until(&shows("While it lasts")).await;
        pictures(&mut page, "live-call").await;
        press(&page, "End call").await;
        confirm(&page, "Let it go on").await;
        press(&page, "End call").await;
        confirm(&page, "End call").await;
        stage
            .api
            .until(&format!("/v1/sessions/{id}"), |session| session["phase"] == "ended")
            .await;
        page.until("!document.querySelector('#console').innerText.includes('While it lasts')")
            .await;
        is_well(&page).await;
    });
}

#[test]
fn a_viewer_looks_and_changes_nothing() {
    on_stage(async |stage| {
        let campaign = stage.campaign("Spring check-up", 2).await;
        let path = format!("/t/acme/test/campaigns/{}", campaign["id"].as_str().unwrap());
        let mut page = stage.visit(VIEWER, &path, PHONE).await;
        page.until(&shows("Spring check-up")).await;
        page.until(&shows("not change anything")).await;
        let buttons = page
            .value("[...document.querySelectorAll('main button')].map((one) => one.innerText).join()")
            .await;
        for word in ["Start", "Pause", "Duplicate", "Call again", "Cancel campaign"] {
            assert!(!buttons.as_str().unwrap().contains(word), "{word}: {buttons}");
        }
        pictures(&mut page, "viewer").await;

        // Live data is another world, in another colour.
        press(&page, "Live").await;
        page.until(&shows("No campaign yet.")).await;
        assert_eq!(page.value("document.documentElement.dataset.env").await, "live");
        pictures(&mut page, "live-environment").await;
        page.go(&stage.url("/t/nobodys/test/overview")).await;
        page.until(&shows("No such workspace")).await;
        page.go(&stage.url("/t/acme/test/nonsense")).await;
        page.until(&shows("There is nothing here")).await;
        is_well(&page).await;
    });
}

#[test]
fn a_stream_that_is_cut_comes_back_and_what_was_missed_is_seen() {
    on_stage(async |stage| {
        let page = stage.visit(ADMIN, "/t/acme/test/campaigns", DESKTOP).await;
        page.until("document.querySelector('.connection.live') !== null").await;
        // Headers and events come over one connection: the service goes, and comes again.
        stage.serving.kill().unwrap();
        stage.serving.wait().unwrap();
        page.until(&shows("Connection lost")).await;
        stage.serving = stage
            .place
            .serve(&[("CALLBOARD_SANDBOX_SPEED", SPEED), ("CALLBOARD_VOICE", "tones")]);
        stage.campaign("Made meanwhile", 1).await;
        page.until("document.querySelector('.connection.live') !== null").await;
        page.until(&shows("Made meanwhile")).await;
    });
}
