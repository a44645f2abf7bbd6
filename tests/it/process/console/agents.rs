//! Agents and functions: made, changed, compared, tried out in writing, and talked with in the page.
use super::*;
use crate::{
    process::rooms::{HEARS_THE_AGENT, HELLO, record},
    world::{
        functions::{FunctionServer, Reply},
        mcp_server::McpServer,
    },
};

/// What saves the form of an agent or a function.
const SAVE: &str = ".editor form > .actions > button";

/// Writes or chooses a value, in the place of what is there.
async fn put(page: &Page, name: &str, value: &str) {
    let script = format!(
        "(() => {{
            const it = document.getElementsByName({})[0];
            it.value = {};
            for (const kind of ['input', 'change']) it.dispatchEvent(new Event(kind, {{ bubbles: true }}));
            return it.value;
        }})()",
        json!(name),
        json!(value)
    );
    assert_eq!(page.value(&script).await, value, "{name}");
}

/// A field of this name is there.
fn has(name: &str) -> String {
    format!("document.getElementsByName({}).length > 0", json!(name))
}

/// The field of this name has the focus.
fn is_at(name: &str) -> String {
    format!("document.activeElement.name === {}", json!(name))
}

/// One group of an agent's form is folded out.
async fn unfold(page: &Page, title: &str) {
    let find = format!(
        "(() => {{
            document.getElementById('folded')?.removeAttribute('id');
            const all = [...document.querySelectorAll('details.group:not([open]) > summary')];
            const it = all.find((one) => one.innerText.trim().startsWith({}));
            if (it) it.id = 'folded';
            return Boolean(it);
        }})()",
        json!(title)
    );
    page.until(&find).await;
    page.click("#folded").await;
}

/// That side has said these words, as the page shows them.
fn said(role: &str, words: &str) -> String {
    format!(
        "[...document.querySelectorAll('.turn.{role}')].some((turn) => turn.innerText.includes({}))",
        json!(words)
    )
}

/// Where the API has what the page shows.
async fn shown_path(page: &Page, kind: &str) -> String {
    let id = page.value("location.pathname.split('/').pop()").await;
    format!("/v1/{kind}/{}", id.as_str().unwrap())
}

#[test]
fn an_agent_is_written_compared_restored_and_tried_out() {
    on_stage(async |stage| {
        let mut page = stage.visit(ADMIN, "/t/acme/test/agents", DESKTOP).await;
        page.until(&shows("Ann")).await;
        pictures(&mut page, "agents").await;

        // What is wrong is said at its field, however deep that lies.
        press(&page, "New agent").await;
        page.until(&has("prompt")).await;
        page.click(SAVE).await;
        page.until(&is_at("name")).await;
        put(&page, "name", "Bea").await;
        put(&page, "prompt", "You are Bea.\nBe brief.").await;
        put(&page, "first_message", "Hello {{first_name}}, this is Bea.").await;
        press(&page, "Add a reply").await;
        page.until(&is_at("brain.replies[0].hear")).await;
        put(&page, "brain.replies[0].hear", "other day\nlater").await;
        put(&page, "brain.replies[0].say", "I look for a free slot.").await;
        unfold(&page, "Questions").await;
        press(&page, "Add a question").await;
        page.until(&is_at("questions[0].text")).await;
        put(&page, "questions[0].text", "Is Friday still good?").await;
        put(&page, "questions[0].key", "friday").await;
        put(&page, "questions[0].type", "choice").await;
        page.until(&has("questions[0].options")).await;
        put(&page, "questions[0].options", "yes").await;
        page.click(SAVE).await;
        page.until(&shows("A choice needs 2 to 50 options")).await;
        page.until(&is_at("questions[0].options")).await;
        pictures(&mut page, "agent-refused").await;
        page.screen(DESKTOP).await;
        put(&page, "questions[0].options", "yes\nno").await;
        page.click(SAVE).await;
        page.until(&shows("Version 1")).await;
        let path = shown_path(&page, "agents").await;
        let first = stage.api.get(&path).await;
        assert_eq!(first["prompt"], "You are Bea.\nBe brief.");
        assert_eq!(first["brain"]["replies"][0]["hear"], json!(["other day", "later"]));
        assert_eq!(first["questions"][0]["options"], json!(["yes", "no"]));
        assert!(
            first["transfer"].is_null() && first["opt_out"]["enabled"] == true,
            "{first}"
        );

        // A voice is heard before it is chosen.
        put(&page, "voice_id", "builtin:tones").await;
        press(&page, "Listen").await;
        page.until("document.querySelector('.editor audio').duration > 0").await;

        // What is not saved is not lost by a press on a link.
        put(&page, "prompt", "You are Bea.\nBe brief.\nBe kind.").await;
        page.until(&shows("There are changes that are not saved.")).await;
        press(&page, "Calls").await;
        confirm(&page, "Stay").await;
        page.until(NO_DIALOG).await;
        page.click(SAVE).await;
        page.until(&shows("Saved as version 2.")).await;
        let second = stage.api.get(&path).await;
        assert_eq!(
            (&second["voice_id"], &second["version"]),
            (&json!("builtin:tones"), &json!(2))
        );
        assert_eq!(second["prompt"], "You are Bea.\nBe brief.\nBe kind.");
        assert_eq!(second["brain"], first["brain"]);
        pictures(&mut page, "agent").await;
        page.screen(DESKTOP).await;

        // Line by line, and back.
        press(&page, "Versions").await;
        page.until("document.querySelector('.difference .added')?.innerText.includes('Be kind.')")
            .await;
        assert_eq!(
            page.value("document.querySelectorAll('.difference .removed').length")
                .await,
            0
        );
        pictures(&mut page, "agent-versions").await;
        page.screen(DESKTOP).await;
        press(&page, "Restore").await;
        confirm(&page, "Leave it as it is").await;
        page.until(NO_DIALOG).await;
        assert_eq!(stage.api.get(&path).await["version"], 2);
        press(&page, "Restore").await;
        confirm(&page, "Restore").await;
        page.until(&shows("Version 1 is restored as version 3.")).await;
        let third = stage.api.get(&path).await;
        assert_eq!((&third["prompt"], &third["voice_id"]), (&first["prompt"], &Value::Null));

        // A talk in writing.
        press(&page, "Dry run").await;
        page.until(&has("turns")).await;
        put(&page, "turns", "Could we take some other day?").await;
        put(&page, "variables.first_name", "Zoë").await;
        press(&page, "Run").await;
        page.until(&said("agent", "Hello Zoë, this is Bea.")).await;
        page.until(&said("user", "Could we take some other day?")).await;
        page.until(&said("agent", "I look for a free slot.")).await;
        page.until("document.activeElement.id === 'result'").await;
        pictures(&mut page, "agent-dry-run").await;
        page.screen(DESKTOP).await;
        assert!(stage.api.all("/v1/sessions").await.is_empty(), "nobody was called");

        // A copy, which goes again.
        press(&page, "Duplicate").await;
        page.until("document.querySelector('h1').innerText.includes('Bea (copy)')")
            .await;
        assert_eq!(stage.api.all("/v1/agents").await.len(), 3);
        press(&page, "Delete agent").await;
        confirm(&page, "Delete agent").await;
        page.until("document.querySelector('h1').innerText.trim() === 'Agents'")
            .await;
        assert_eq!(stage.api.all("/v1/agents").await.len(), 2);

        // By the beginning of its name; the address says so.
        page.until("document.querySelectorAll('tbody tr').length === 2").await;
        page.write("#name", "be").await;
        press(&page, "Search").await;
        page.until("document.querySelectorAll('tbody tr').length === 1").await;
        assert_eq!(page.text("tbody a").await, "Bea");
        assert_eq!(page.value("location.search").await, "?name=be");

        // Who may change nothing sees all of it.
        let path = path.replace("/v1/", "/t/acme/test/");
        let mut viewers = stage.visit(VIEWER, &path, PHONE).await;
        viewers.until(&shows("Be brief.")).await;
        viewers.until(&shows("Is Friday still good?")).await;
        assert_eq!(
            viewers.value("document.querySelectorAll('main button').length").await,
            0
        );
        assert_eq!(
            viewers.text(".tabs").await.split_whitespace().collect::<Vec<_>>(),
            ["Settings", "Versions"]
        );
        pictures(&mut viewers, "agent-viewer").await;
    });
}

#[test]
fn a_function_is_made_tested_given_a_new_secret_and_deleted() {
    on_stage(async |stage| {
        let functions = FunctionServer::start(|_| Reply::Json(json!({ "slots": ["9:00"] })));
        let mut page = stage.visit(ADMIN, "/t/acme/test/functions", DESKTOP).await;
        page.until(&shows("No function yet.")).await;
        pictures(&mut page, "functions-empty").await;
        page.screen(DESKTOP).await;
        press(&page, "New function").await;
        page.until(&has("description")).await;
        put(&page, "name", "find_slots").await;
        put(&page, "description", "Free slots of a day.").await;
        put(&page, "url", &functions.url).await;
        press(&page, "Add a parameter").await;
        page.until(&has("parameters[0].name")).await;
        put(&page, "parameters[0].name", "day").await;
        put(&page, "parameters[0].type", "date").await;
        page.click("[name='parameters[0].required']").await;
        press(&page, "Add a header").await;
        page.until(&has("headers[0].name")).await;
        // An error at a header comes to its own field.
        put(&page, "headers[0].name", "Host").await;
        put(&page, "headers[0].value", "canary").await;
        page.click(SAVE).await;
        page.until(&shows("This header is set by the service itself")).await;
        page.until(&is_at("headers[0].name")).await;
        pictures(&mut page, "function-refused").await;
        page.screen(DESKTOP).await;
        put(&page, "headers[0].name", "x-token").await;
        page.click(SAVE).await;

        // Its secret is shown once.
        page.until("document.querySelector('.secret code') !== null").await;
        let secret = page.text(".secret code").await;
        assert!(secret.starts_with("fnsec_"), "{secret}");
        pictures(&mut page, "function-secret").await;
        page.screen(DESKTOP).await;
        press(&page, "Go to the function").await;
        page.until(&has("arguments")).await;
        assert_eq!(page.value(&shows(&secret)).await, false);
        let path = shown_path(&page, "functions").await;
        let made = stage.api.get(&path).await;
        let schema = json!({ "type": "object", "properties": { "day": { "type": "string", "format": "date" } },
            "required": ["day"], "additionalProperties": false });
        assert_eq!(made["parameters"], schema);

        // A real call, signed, with arguments that fit.
        put(&page, "arguments", r#"{ "day": 1 }"#).await;
        press(&page, "Call it").await;
        page.until(&is_at("arguments")).await;
        page.until(&shows("must be of the type")).await;
        assert_eq!(functions.calls().len(), 0);
        put(&page, "arguments", r#"{ "day": "2026-12-01" }"#).await;
        press(&page, "Call it").await;
        page.until("document.querySelector('pre.code')?.innerText.includes('9:00')")
            .await;
        page.until(&shows("Succeeded")).await;
        pictures(&mut page, "function").await;
        page.screen(DESKTOP).await;
        let called = functions.calls().remove(0);
        assert!(called.signed_by(&secret) && called.headers["x-token"] == "canary");
        assert_eq!(called.body["arguments"]["day"], "2026-12-01");

        // A change keeps the header's value, which nobody sees again.
        put(&page, "timeout_ms", "2000").await;
        page.click(SAVE).await;
        page.until(&shows("Saved.")).await;
        let changed = stage.api.get(&path).await;
        assert_eq!(
            (&changed["timeout_ms"], &changed["header_names"]),
            (&json!(2000), &json!(["x-token"]))
        );
        assert_eq!(changed["parameters"], schema);

        press(&page, "Replace secret").await;
        confirm(&page, "Replace secret").await;
        page.until("document.querySelector('dialog[open] .secret code') !== null")
            .await;
        let newer = page.text("dialog[open] .secret code").await;
        assert_ne!(newer, secret);
        press(&page, "Close").await;
        page.until(NO_DIALOG).await;
        press(&page, "Call it").await;
        page.until("document.querySelector('pre.code')?.innerText.includes('9:00')")
            .await;
        let called = functions.calls().remove(1);
        assert!(called.signed_by(&newer) && called.headers["x-token"] == "canary");

        // While an agent may call it, it stays.
        let agent = json!({ "name": "Bea", "prompt": "x", "function_ids": [made["id"]] });
        let agent = stage.api.post("/v1/agents", agent).await;
        press(&page, "Delete function").await;
        confirm(&page, "Delete function").await;
        page.until(&shows("agents use it: Bea")).await;
        press(&page, "Keep it").await;
        page.until(NO_DIALOG).await;
        let agents = format!("/agents/{}", agent["id"].as_str().unwrap());
        page.go(&stage.url(&format!("/t/acme/test{agents}"))).await;
        page.until(&has("prompt")).await;
        unfold(&page, "Functions (1)").await;
        page.click("[name=function_ids]").await;
        page.click(SAVE).await;
        page.until(&shows("Saved as version 2.")).await;
        assert_eq!(stage.api.get(&format!("/v1{agents}")).await["function_ids"], json!([]));
        press(&page, "Functions").await;
        page.until("document.querySelectorAll('tbody tr').length === 1").await;
        pictures(&mut page, "functions").await;
        page.screen(DESKTOP).await;
        press(&page, "find_slots").await;
        press(&page, "Delete function").await;
        confirm(&page, "Delete function").await;
        page.until(&shows("No function yet.")).await;
        assert!(stage.api.all("/v1/functions").await.is_empty());
    });
}

#[test]
fn a_function_is_made_of_a_tool_of_an_mcp_server() {
    on_stage(async |stage| {
        let server = McpServer::start(true, |_, _| None);
        let mut page = stage.visit(ADMIN, "/t/acme/test/functions/new", DESKTOP).await;
        page.until(&has("kind")).await;
        put(&page, "kind", "mcp").await;
        page.until(&has("mcp.tool")).await;
        assert_eq!(
            page.value(&has("parameters.others")).await,
            false,
            "the server says what it takes"
        );

        // Who is not there is told of where one asks.
        put(&page, "url", "http://127.0.0.1:9/mcp").await;
        press(&page, "List the server’s tools").await;
        page.until(&shows("nothing listens on 127.0.0.1:9")).await;
        put(&page, "url", &server.url).await;
        press(&page, "Add a header").await;
        page.until(&has("headers[0].name")).await;
        put(&page, "headers[0].name", "Authorization").await;
        put(&page, "headers[0].value", "Bearer canary").await;
        press(&page, "List the server’s tools").await;
        page.until(&shows("The server has one tool.")).await;
        // None is chosen for whoever has not named one, and what is named stays.
        let chosen = |name: &str| format!("document.querySelector('select[name=\"mcp.tool\"]')?.value === '{name}'");
        page.until(&chosen("")).await;
        put(&page, "mcp.tool", "book.day").await;
        press(&page, "List the server’s tools").await;
        page.until(&chosen("book.day")).await;
        // Another address has other tools.
        put(&page, "url", &format!("{}/", server.url)).await;
        page.until("document.querySelector('input[name=\"mcp.tool\"]')?.value === 'book.day'")
            .await;
        put(&page, "url", &server.url).await;
        press(&page, "List the server’s tools").await;
        page.until(&chosen("book.day")).await;
        put(&page, "name", "book").await;
        pictures(&mut page, "function-of-mcp-server").await;
        page.screen(DESKTOP).await;
        page.click(SAVE).await;
        page.until(&shows("can call the server’s tool “book.day”")).await;
        press(&page, "Go to the function").await;
        page.until(&has("arguments")).await;
        let path = shown_path(&page, "functions").await;
        let made = stage.api.get(&path).await;
        assert_eq!(
            (&made["mcp"], &made["description"]),
            (&json!({ "tool": "book.day" }), &json!("Books a day."))
        );

        put(&page, "arguments", r#"{ "day": "monday" }"#).await;
        press(&page, "Call it").await;
        page.until("document.querySelector('pre.code')?.innerText.includes('booked')")
            .await;
        pictures(&mut page, "function-mcp").await;
        page.screen(DESKTOP).await;
        let called = server
            .heard()
            .into_iter()
            .find(|heard| heard.method == "tools/call")
            .unwrap();
        assert_eq!(called.headers["authorization"], "Bearer canary");

        // One's own words, and then the server's again.
        put(&page, "description", "Books it.").await;
        page.click(SAVE).await;
        page.until(&shows("Saved.")).await;
        assert_eq!(stage.api.get(&path).await["description"], "Books it.");
        press(&page, "Read from the server again").await;
        confirm(&page, "Read it again").await;
        page.until(NO_DIALOG).await;
        let again = stage.api.get(&path).await;
        assert_eq!(
            (&again["description"], &again["parameters"]),
            (&made["description"], &made["parameters"])
        );
        press(&page, "Functions").await;
        page.until(&shows("book.day, at http://127.0.0.1")).await;
    });
}

const ANSWER: &str = "Wonderful, then I will write that down.";

/// The same stage for somebody with a microphone, who says a sentence every few seconds.
fn on_stage_with_a_microphone(test: impl AsyncFnOnce(&mut Stage)) {
    on(Backend::Sqlite, async |place| {
        let microphone = place.folder.path().join("microphone.wav");
        record(&microphone);
        // Enough for a talk as long as any test.
        let agent = json!({ "name": "Ann", "prompt": "x", "first_message": HELLO,
            "brain": { "mode": "scripted", "replies": vec![json!({ "say": ANSWER }); 40] } });
        play(place, Microphone::Plays(&microphone), (&[], agent), test).await;
    });
}

/// What begins a talk: a link of the same words leads to it.
const TALK: &str = ".talk-start form > .actions > button";

#[test]
fn an_agent_is_talked_with_in_the_page_which_shows_how_soon_it_answers() {
    on_stage_with_a_microphone(async |stage| {
        let path = format!("/t/acme/test/agents/{}?view=talk", stage.agent["id"].as_str().unwrap());
        let mut page = stage.visit(ADMIN, &path, DESKTOP).await;
        page.until("document.querySelector('.talk-start') !== null").await;

        // Who does not give the microphone is told what to do, and no room was made.
        page.microphone(&stage.url("/"), "denied").await;
        page.click(TALK).await;
        page.until(&shows("Your microphone is blocked.")).await;
        assert!(stage.api.all("/v1/rooms").await.is_empty());

        page.microphone(&stage.url("/"), "granted").await;
        page.click(TALK).await;
        page.until(&shows("Connected. Speak now.")).await;
        page.until(&said("agent", HELLO)).await;
        page.until(HEARS_THE_AGENT).await;
        page.until("document.querySelector('meter').value > 0.2").await;
        page.until(&said("user", "")).await;
        page.until(&said("agent", ANSWER)).await;
        page.until("/^\\d+ ms$/.test(document.querySelector('[aria-labelledby=latency] .timeline strong').innerText)")
            .await;
        page.until(&shows("end of turn")).await;
        pictures(&mut page, "agent-talk").await;
        page.screen(DESKTOP).await;

        // Muted, and by keys.
        press(&page, "Mute").await;
        let track = "window.connections.at(-1).getSenders()[0].track.enabled";
        page.until(&format!("{track} === false")).await;
        press(&page, "Unmute").await;
        page.until(&format!("{track} === true")).await;
        page.write("[name=keys]", "5").await;
        press(&page, "Press").await;
        let room = stage.api.all("/v1/rooms").await.remove(0);
        let session = format!("/v1/sessions/{}", room["session_id"].as_str().unwrap());
        let pressed = |timeline: &Value| {
            let entries = timeline["entries"].as_array().unwrap();
            entries
                .iter()
                .any(|entry| entry["kind"] == "keys_pressed" && entry["detail"] == "5")
        };
        stage.api.until(&format!("{session}/timeline"), pressed).await;

        press(&page, "Hang up").await;
        page.until(&shows("You hung up.")).await;
        let talk = stage.api.until(&session, |session| session["phase"] == "ended").await;
        assert_eq!(
            (&talk["status"], &talk["ended_by"]),
            (&json!("completed"), &json!("caller"))
        );
        assert!(talk["latency"]["turns"].as_u64().unwrap() >= 1, "{talk}");
        pictures(&mut page, "agent-talked").await;
        page.screen(DESKTOP).await;

        // Who leaves hangs up.
        press(&page, "Talk again").await;
        page.until(&shows("Connected. Speak now.")).await;
        press(&page, "Versions").await;
        page.until(&shows("There is one version.")).await;
        let all_over = |rooms: &Value| {
            let rooms = rooms["data"].as_array().unwrap();
            rooms.len() == 2 && rooms.iter().all(|room| room["status"] == "completed")
        };
        stage.api.until("/v1/rooms", all_over).await;
        is_well(&page).await;
    });
}
