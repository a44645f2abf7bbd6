//! Calls as people look into them: found, read, heard, judged and forgotten, steered while they last, and counted.
use super::*;
use crate::world::{
    Receiver,
    functions::{FunctionServer, Reply},
};

/// An agent that records, looks something up, and asks a question.
async fn attentive(stage: &Stage, functions: &FunctionServer) -> Value {
    let function = json!({ "name": "find_slots", "description": "Free slots of a day.", "url": functions.url,
        "parameters": { "type": "object", "properties": { "day": { "type": "string" } } } });
    let function = stage.api.post("/v1/functions", function).await;
    let replies = json!([
        { "hear": ["slot"], "say": "I look for one.", "call": { "name": "find_slots", "arguments": { "day": "2026-12-01" } } },
        { "hear": ["friday"], "say": "I write that down.",
          "call": { "name": "record_answer", "arguments": { "key": "friday", "value": true } } },
        { "hear": ["thank"], "say": "See you then!", "hang_up": true },
    ]);
    let agent = json!({ "name": "Bea", "prompt": "x", "first_message": "Hello, this is Bea.", "function_ids": [function["id"]],
        "recording": { "enabled": true, "channels": "dual" }, "dispositions": [{ "code": "interested" }, { "code": "other" }],
        "questions": [{ "key": "friday", "text": "Is Friday still good?", "type": "boolean" }],
        "brain": { "mode": "scripted", "replies": replies } });
    stage.api.post("/v1/agents", agent).await
}

/// A call with her that has ended, and whose sound is stored.
async fn recorded_call(stage: &Stage, agent: &Value) -> Value {
    let script = ["Is there a free slot?", "Friday is good.", "Thank you!"].map(|say| json!({ "say": say }));
    let call = json!({ "to_number": "+15002345600", "agent_id": agent["id"], "client_reference_id": "order-17",
        "contact": { "first_name": "Zoë", "last_name": "Ångström" }, "variables": { "city": "Paris" },
        "sandbox": { "script": script } });
    let session = stage.api.post("/v1/sessions", call).await;
    let path = format!("/v1/sessions/{}/recordings", session["id"].as_str().unwrap());
    stage
        .api
        .until(&path, |list| list["data"][0]["status"] == "completed")
        .await;
    session
}

/// What the page has loaded of the sound.
const HEARD: &str = "performance.getEntriesByType('resource').filter(({ name }) => name.endsWith('/audio')).length";

/// How often the workspace's log has noted that somebody heard it, as its owner reads it.
const NOTED: &str = "fetch('/v1/_internal/t/acme/audit-log?limit=100').then((answer) => answer.json())
    .then(({ data }) => data.filter((line) => JSON.stringify(line).includes('/audio')).length)";

#[test]
fn a_recorded_call_is_read_heard_judged_and_forgotten() {
    on_stage(async |stage| {
        let functions = FunctionServer::start(|_| Reply::Json(json!({ "slots": ["9:00", "14:30"] })));
        let receiver = Receiver::start();
        let endpoint = json!({ "url": receiver.url, "event_types": ["*"] });
        let endpoint = stage.api.post("/v1/webhook_endpoints", endpoint).await;
        receiver.expect_signatures_of(endpoint["secret"].as_str().unwrap());
        let agent = attentive(stage, &functions).await;
        let session = recorded_call(stage, &agent).await;
        let id = session["id"].as_str().unwrap();
        let path = format!("/v1/sessions/{id}");
        // Who has heard a recording owners only can read.
        let mut page = stage.visit(OWNER, &format!("/t/acme/test/calls/{id}"), DESKTOP).await;

        // Its words, with what the function was told and has answered.
        page.until(&shows("Hello, this is Bea.")).await;
        page.until(&shows("calls the function find_slots")).await;
        page.until(&shows("2026-12-01")).await;
        page.until(&shows("14:30")).await;
        page.until(&shows("Succeeded")).await;

        // The answer leads to the words that show it.
        page.until(&shows("Is Friday still good?")).await;
        press(&page, "Show where").await;
        let shown = "document.activeElement.matches('.turn.user') && document.activeElement.innerText.includes('Friday is good.')";
        page.until(shown).await;

        // Nobody has heard anything until somebody asks to.
        assert_eq!(page.value(HEARD).await, 0);
        assert_eq!(page.value(NOTED).await, 0);
        press(&page, "Show waveform").await;
        let lanes = "document.querySelector('.wave > div').shadowRoot.querySelectorAll('.canvases canvas').length";
        page.until(&format!("{lanes} === 2")).await;
        assert_eq!(page.value(NOTED).await, 1);
        pictures(&mut page, "call-waveform").await;
        page.screen(DESKTOP).await;

        // The words lead the sound, and the sound the words.
        page.click(".turn.user button.plain").await;
        page.until("document.querySelector('audio').currentTime > 0").await;
        page.until("document.querySelector('.turn[aria-current]') !== null")
            .await;
        page.value("document.querySelector('audio').pause()").await;
        page.value("document.querySelector('audio').currentTime = 0").await;
        page.click(".wave").await;
        page.until("document.querySelector('audio').currentTime > document.querySelector('audio').duration * 0.4")
            .await;

        // Its events, and what became of them.
        page.click(".call-events summary").await;
        page.until(&shows(&receiver.url)).await;
        page.until(&shows("Delivered")).await;

        // What a person thinks of it counts.
        press(&page, "Set disposition").await;
        page.until("document.querySelectorAll('dialog[open] option').length === 3")
            .await;
        page.value("document.querySelector('dialog[open] select').value = 'interested'")
            .await;
        page.write("dialog[open] textarea", "Wants a call on Monday.").await;
        press(&page, "Save").await;
        page.until(&shows("Wants a call on Monday.")).await;
        let judged = stage.api.get(&path).await;
        assert_eq!(judged["disposition_code"], "interested");
        assert_eq!(judged["disposition_by"], "human");
        pictures(&mut page, "call-judged").await;
        page.screen(DESKTOP).await;

        // A viewer sees all of it, and changes nothing.
        let viewer = stage.visit(VIEWER, &format!("/t/acme/test/calls/{id}"), PHONE).await;
        viewer.until(&shows("Wants a call on Monday.")).await;
        let buttons = "[...document.querySelectorAll('main button')].map((one) => one.innerText).join()";
        let buttons = viewer.value(buttons).await;
        for word in ["Set disposition", "Delete what was said"] {
            assert!(!buttons.as_str().unwrap().contains(word), "{word}: {buttons}");
        }
        assert!(buttons.as_str().unwrap().contains("Show waveform"), "{buttons}");
        is_well(&viewer).await;
        viewer.close().await;

        // It is asked once before all of that goes.
        press(&page, "Delete what was said").await;
        confirm(&page, "Keep it").await;
        page.until(NO_DIALOG).await;
        assert_eq!(stage.api.get(&path).await["id"], session["id"]);
        press(&page, "Delete what was said").await;
        confirm(&page, "Delete it").await;
        page.until("location.pathname.endsWith('/calls')").await;
        page.until(&shows("No call yet.")).await;
        assert_eq!(stage.api.get(&path).await["error"]["code"], "not_found");
        is_well(&page).await;
    });
}

#[test]
fn a_live_call_is_steered_by_hand() {
    on_stage(async |stage| {
        // Each of these takes seconds, in the sandbox's time too: it outlasts the test.
        let story = json!({ "say": "And then I said to my neighbour that she should call you. ".repeat(15) });
        let call = json!({ "to_number": "+15002345600", "agent_id": stage.agent["id"], "sandbox": { "script": vec![story; 50] } });
        let session = stage.api.post("/v1/sessions", call).await;
        let id = session["id"].as_str().unwrap();
        let mut page = stage.visit(ADMIN, &format!("/t/acme/test/calls/{id}"), DESKTOP).await;
        page.until(&shows("Let the agent say")).await;

        // It is said, and read a moment later.
        page.write(".tools form:nth-of-type(1) input", "Please hold the line.")
            .await;
        press(&page, "Say it").await;
        page.until(&shows("The agent says it next.")).await;
        let said = "[...document.querySelectorAll('.turn.agent')].some((turn) => turn.innerText.includes('Please hold the line.'))";
        page.until(said).await;

        // What is wrong is said where it was written.
        page.write(".tools form:nth-of-type(2) input", "12").await;
        press(&page, "Transfer").await;
        page.until("document.querySelector('.tools form:nth-of-type(2) [aria-invalid=true]') !== null")
            .await;
        page.until(&shows("must start with +")).await;
        page.write(".tools form:nth-of-type(3) input", "12#").await;
        press(&page, "Press").await;
        page.until(&shows("The keys are pressed.")).await;
        pictures(&mut page, "live-call-tools").await;
        page.screen(DESKTOP).await;

        press(&page, "End call").await;
        confirm(&page, "End call").await;
        let path = format!("/v1/sessions/{id}");
        stage.api.until(&path, |session| session["phase"] == "ended").await;
        page.until(&shows("Set disposition")).await;
        page.until(&shows("Please hold the line.")).await;
        is_well(&page).await;
    });
}

/// Types it in at the top of the page.
async fn find(page: &Page, what: &str) {
    page.value("document.querySelector('.find input').value = ''").await;
    page.write(".find input", what).await;
    page.click(".find button").await;
}

#[test]
fn calls_are_counted_filtered_and_found() {
    on_stage(async |stage| {
        let campaign = stage.campaign("Spring check-up", 4).await;
        let id = campaign["id"].as_str().unwrap();
        let grace = json!({ "phone_number": "+15002349990", "first_name": "Grace", "last_name": "Hopper",
            "external_id": "crm-7" });
        let added = json!({ "contacts": [grace] });
        stage.api.post(&format!("/v1/campaigns/{id}/contacts"), added).await;
        stage.api.post(&format!("/v1/campaigns/{id}/start"), json!({})).await;
        let path = format!("/v1/campaigns/{id}");
        stage
            .api
            .until(&path, |campaign| campaign["status"] == "completed")
            .await;
        let call =
            json!({ "to_number": "+15002348881", "agent_id": stage.agent["id"], "client_reference_id": "order-17" });
        let busy = stage.api.post("/v1/sessions", call).await;
        let busy = busy["id"].as_str().unwrap();
        let path = format!("/v1/sessions/{busy}");
        stage.api.until(&path, |session| session["phase"] == "ended").await;

        // Numbers that end in 0 talk, 1 and 2 do not, 3 is a machine; and one is busy.
        let mut page = stage.visit(ADMIN, "/t/acme/test/overview", DESKTOP).await;
        page.until("document.querySelectorAll('.plot canvas').length === 2")
            .await;
        page.until(&shows("6 calls, ")).await;
        page.until(&shows("Today’s campaigns")).await;
        page.until(&shows("5 of 5")).await;
        page.click(".period summary").await;
        page.until("document.querySelectorAll('.period details[open] tbody tr').length === 24")
            .await;
        pictures(&mut page, "overview-graphs").await;
        page.screen(DESKTOP).await;

        // The address has the filters: a reload shows the same.
        press(&page, "Calls").await;
        page.until("document.querySelectorAll('tbody tr').length === 6").await;
        page.write("[name=phone_number]", "+1 (500) 234-9990").await;
        page.key("Enter").await;
        page.until("document.querySelectorAll('tbody tr').length === 1").await;
        page.until(&shows("Grace Hopper")).await;
        page.reload().await;
        page.until("document.querySelector('[name=phone_number]')?.value === '+15002349990'")
            .await;
        page.until("document.querySelectorAll('tbody tr').length === 1").await;
        press(&page, "Clear filters").await;
        page.until("document.querySelectorAll('tbody tr').length === 6").await;
        let choose = "(() => {
            const it = document.querySelector('#filter-status');
            it.value = 'failed,no_answer,voicemail,busy';
            it.dispatchEvent(new Event('change', { bubbles: true }));
        })()";
        page.value(choose).await;
        page.until("location.search.startsWith('?status=')").await;
        page.until(
            "document.querySelectorAll('tbody tr').length > 0 && document.querySelectorAll('tbody tr').length < 6",
        )
        .await;
        page.until(&format!("!({})", shows("Grace Hopper"))).await;
        pictures(&mut page, "calls-filtered").await;
        page.screen(DESKTOP).await;

        // A name, a number and a reference lead to what has them; an id leads there at once.
        find(&page, "grace h").await;
        page.until(&shows("crm-7")).await;
        pictures(&mut page, "find").await;
        page.screen(DESKTOP).await;
        find(&page, "crm-7").await;
        page.until(&shows("Find: crm-7")).await;
        page.until(&shows("Grace Hopper")).await;
        find(&page, "+15002349990").await;
        page.until(&shows("Calls with this number")).await;
        page.until("document.querySelectorAll('tbody tr').length === 2").await;
        find(&page, "order-17").await;
        page.until(&shows("Find: order-17")).await;
        page.until(&format!("document.querySelector('tbody a[href$=\"{busy}\"]') !== null"))
            .await;
        find(&page, id).await;
        page.until(&format!("location.pathname.endsWith('/campaigns/{id}')"))
            .await;
        page.until(&shows("Everyone was reached or given up on.")).await;
        find(&page, busy).await;
        page.until(&format!("location.pathname.endsWith('/calls/{busy}')"))
            .await;
        page.until(&shows("The line was busy")).await;
        find(&page, "nobody at all").await;
        page.until(&shows("Nothing was found here.")).await;
        is_well(&page).await;
    });
}
