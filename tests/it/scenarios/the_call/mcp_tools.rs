//! Tools of MCP servers as functions: made, listed and called over the real protocol, in both of its forms.
use super::{agent, call, said, session, told};
use crate::{
    on_both,
    world::{
        Api, Tenant, World,
        mcp_server::{McpServer, Reply, tool},
        minutes,
    },
};
use reqwest::Method;
use serde_json::{Value, json};
use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering::SeqCst},
};

const TOKEN: &str = "sk-0123456789abcdef";
const GREETING: [&str; 2] = ["initialize", "notifications/initialized"];

fn greeted(more: &[&str]) -> Vec<String> {
    GREETING.iter().chain(more).map(|method| (*method).to_owned()).collect()
}

/// What a function of the server's tool is made from.
fn asked(server: &McpServer, more: Value) -> Value {
    let mut asked = json!({ "name": "book", "url": server.url, "mcp": { "tool": "book.day" },
        "headers": { "Authorization": format!("Bearer {TOKEN}") } });
    asked.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    asked
}

async fn function(api: &Api, server: &McpServer, more: Value) -> Value {
    api.post("/v1/functions", asked(server, more)).await.ok()
}

fn at(function: &Value) -> String {
    format!("/v1/functions/{}", function["id"].as_str().unwrap())
}

/// An agent that calls the function when it hears "book".
async fn booking_agent(tenant: &Tenant, function: &Value, day: &str) -> String {
    let replies = json!([
        { "hear": ["book"], "say": "I will book it.", "call": { "name": function["name"], "arguments": { "day": day } } },
        { "say": "Anything else?" },
    ]);
    let more = json!({ "function_ids": [function["id"]], "brain": { "mode": "scripted", "replies": replies } });
    agent(tenant, more).await
}

/// The one call, and nothing else.
fn assert_cancelled(server: &McpServer, reason: Option<&str>) {
    let heard = server.heard();
    let called = heard.iter().find(|heard| heard.method == "tools/call").unwrap();
    let told = heard.iter().filter(|heard| heard.method == "notifications/cancelled");
    let told: Vec<&Value> = told.map(|heard| &heard.body["params"]).collect();
    assert_eq!((told.len(), &told[0]["requestId"]), (1, &called.body["id"]));
    let why = told[0]["reason"].as_str().unwrap();
    assert!(reason.is_none_or(|reason| reason == why), "{why}");
}

fn script() -> Value {
    json!({ "sandbox": { "script": [{ "say": "Please book a day." }, { "say": "No, thanks." }] } })
}

on_both! {
    async fn an_agent_calls_a_tool_and_the_talk_goes_on(world: &mut World) {
        let tenant = world.tenant().await;
        for (is_stream, name, number) in [(false, "as_json", "+15002345600"), (true, "as_stream", "+15002345610")] {
            let server = McpServer::start(is_stream, |_, _| None);
            let function = function(&tenant.api, &server, json!({ "name": name })).await;
            let made = server.round_trips().len();
            let agent = booking_agent(&tenant, &function, "monday").await;
            let id = call(&tenant, &agent, number, script()).await;
            world.advance(minutes(2)).await;

            // Three round trips, and nobody waits for the end of the session.
            assert_eq!(server.round_trips()[made..], greeted(&["tools/call"]));
            server.arrived("DELETE", 2).await;
            let heard = server.heard();
            let called = heard.iter().find(|heard| heard.method == "tools/call").unwrap();
            assert_eq!(called.body["params"], json!({ "name": "book.day", "arguments": { "day": "monday" } }), "and nothing of the call");
            assert_eq!((called.headers["authorization"].as_str(), called.headers["mcp-protocol-version"].as_str()), (format!("Bearer {TOKEN}").as_str(), "2025-11-25"));
            assert!(heard.iter().all(|heard| !heard.headers.contains_key("x-function-signature")));
            if is_stream {
                // What the server asks meanwhile is told that nobody does that here.
                server.arrived("reply", 4).await;
                let heard = server.heard();
                let reply = heard.iter().find(|heard| heard.method == "reply").unwrap();
                assert_eq!((&reply.body["id"], &reply.body["error"]["code"]), (&json!("q"), &json!(-32601)));
            }

            let ended = told(&tenant, "session.ended").await.into_iter().find(|ended| ended["session_id"] == *id).unwrap();
            let invocation = &ended["function_invocations"][0];
            assert_eq!((invocation["name"].as_str(), invocation["status"].as_str()), (Some(name), Some("succeeded")));
            let turns = ended["transcript"].as_array().unwrap();
            let answered = turns.iter().find(|turn| turn["role"] == "tool").unwrap();
            assert_eq!(answered["content"], r#"{"booked":true}"#);
            assert!(said(&ended["transcript"]).iter().any(|line| line.contains("Anything else?")));
            assert_eq!(session(&tenant, &id).await["end_reason"], "completed");
            assert!(!ended.to_string().contains(TOKEN));
        }
    }

    async fn arguments_that_do_not_fit_reach_no_server(world: &mut World) {
        let tenant = world.tenant().await;
        let server = McpServer::start(false, |_, _| None);
        let function = function(&tenant.api, &server, json!({})).await;
        let made = server.round_trips();
        let agent = booking_agent(&tenant, &function, "sunday").await;
        call(&tenant, &agent, "+15002345600", script()).await;
        world.advance(minutes(2)).await;
        assert_eq!(server.round_trips(), made);
        assert_eq!(told(&tenant, "session.ended").await[0]["function_invocations"], json!([]));
    }

    /// The whole exchange has one deadline, wherever in it the server stops.
    async fn a_tool_that_takes_too_long_is_not_waited_for(world: &mut World) {
        let tenant = world.tenant().await;
        let is_slow = Arc::new(AtomicBool::new(false));
        let slow = is_slow.clone();
        let server = McpServer::start(false, move |method, _| (method == "tools/call" && slow.load(SeqCst)).then(|| Reply::Stall(": one moment\n".into())));
        let function = function(&tenant.api, &server, json!({ "timeout_ms": 2_000 })).await;
        is_slow.store(true, SeqCst);
        let agent = booking_agent(&tenant, &function, "monday").await;
        let id = call(&tenant, &agent, "+15002345600", script()).await;
        world.advance(minutes(2)).await;
        let timeouts = told(&tenant, "function.timeout").await;
        assert_eq!(timeouts, [json!({ "session_id": id, "function_id": function["id"], "name": "book", "timeout_ms": 2_000 })]);
        let ended = &told(&tenant, "session.ended").await[0];
        assert_eq!(ended["function_invocations"][0]["status"], "timed_out");
        assert_eq!(server.heard().iter().filter(|heard| heard.method == "tools/call").count(), 1, "no second try");
        server.arrived("DELETE", 2).await;
        assert_cancelled(&server, None);
        let last = server.heard().pop().map(|heard| heard.method);
        assert_eq!(last.as_deref(), Some("DELETE"), "in that order");
    }

    /// Whoever leaves need not know a session.
    async fn a_call_that_nobody_waits_for_any_more_is_cancelled(world: &mut World) {
        let tenant = world.tenant().await;
        let server = McpServer::start(false, |method, params| match method {
            "initialize" => {
                let result = json!({ "protocolVersion": params["protocolVersion"], "capabilities": {} });
                Some(Reply::Raw("application/json", json!({ "jsonrpc": "2.0", "id": 1, "result": result }).to_string()))
            }
            "tools/call" => Some(Reply::Hang),
            _ => None,
        });
        let function = function(&tenant.api, &server, json!({})).await;
        let (api, path) = (tenant.api.clone(), format!("{}/test", at(&function)));
        let testing = actix_rt::spawn(async move { api.post(&path, json!({ "arguments": { "day": "tuesday" } })).await });
        server.arrived("tools/call", 1).await;
        testing.abort();
        server.arrived("notifications/cancelled", 1).await;
        assert_cancelled(&server, Some("nobody waits for it any more"));
        assert!(server.heard().iter().all(|heard| heard.method != "DELETE"), "there is no session to be ended");
    }

    async fn what_goes_wrong_is_told_to_the_agent(world: &mut World) {
        let tenant = world.tenant().await;
        let result = Reply::Result;
        let text = |words: &str| json!([{ "type": "text", "text": words }]);
        let long = "x".repeat(70_000);
        let picture = json!({ "type": "image", "data": "A".repeat(300_000), "mimeType": "image/png" });
        for (n, (reply, status, http_status, words)) in [
            (result(json!({ "content": text("no free day"), "isError": true })), "failed", 200, "the tool failed: no free day"),
            (result(json!({ "content": text(&format!("who is Bearer {TOKEN}?")), "isError": true })), "failed", 200, "the tool failed: who is Bearer [secret]"),
            (result(json!({ "content": text(&long) })), "failed", 200, "the answer is larger than 64 KiB"),
            (result(json!({ "content": [{ "type": "image", "data": "AAAA", "mimeType": "image/png" }] })), "failed", 200, "holds nothing that is text"),
            (result(json!("fine")), "failed", 200, "holds no object as its result"),
            (Reply::Error(-32602, "unknown tool"), "failed", 200, "the MCP server refused: unknown tool (-32602)"),
            (Reply::Status(500), "failed", 500, "the MCP server answered 500"),
            (Reply::Status(302), "failed", 302, "the MCP server answered 302"),
            (Reply::Status(202), "failed", 202, "is neither `application/json` nor `text/event-stream`"),
            (Reply::Raw("text/html", "<p>Hello!</p>".into()), "failed", 200, "is neither `application/json` nor `text/event-stream`"),
            (Reply::Raw("application/json", "[".repeat(5_000)), "failed", 200, "is not JSON"),
            (Reply::Endless, "failed", 200, "the answer is larger than 1088 KiB"),
            (Reply::Stall("data: {}".into()), "timed_out", 0, "has not answered yet"),
            (Reply::Hang, "timed_out", 0, "has not answered yet"),
            (result(json!({ "content": text("a word") })), "succeeded", 200, "a word"),
            (result(json!({ "content": text("4.50") })), "succeeded", 200, "\"4.50\""),
            (result(json!({ "content": [picture, { "type": "text", "text": "a word" }] })), "succeeded", 200, "a word"),
            (result(json!({ "content": text("{}"), "structuredContent": { "free": "a word" } })), "succeeded", 200, "a word"),
        ].into_iter().enumerate() {
            let timeout_ms = if status == "timed_out" { 500 } else { 10_000 };
            let server = McpServer::start(n % 2 == 1, move |method, _| (method == "tools/call").then(|| reply.clone()));
            let function = function(&tenant.api, &server, json!({ "name": format!("f{n}"), "timeout_ms": timeout_ms })).await;
            let tested = tenant.api.post(&format!("{}/test", at(&function)), json!({ "arguments": { "day": "tuesday" } })).await.ok();
            assert_eq!((tested["status"].as_str(), tested["http_status"].as_u64()), (Some(status), Some(http_status)), "{words}: {tested}");
            assert!(tested["output"].to_string().contains(words), "{words}: {tested}");
            if status == "timed_out" {
                server.arrived("notifications/cancelled", 1).await;
                assert_cancelled(&server, Some("it took too long"));
            }
            assert!(!tested.to_string().contains(TOKEN), "{tested}");
        }
    }

    async fn a_function_is_made_of_a_tool_and_changed(world: &mut World) {
        let tenant = world.tenant().await;
        let api = &tenant.api;
        let server = McpServer::start(true, |_, _| None);
        let made = function(api, &server, json!({})).await;
        assert_eq!(server.round_trips(), greeted(&["tools/list"]));
        assert_eq!((&made["mcp"], &made["description"], &made["parameters"]), (&json!({ "tool": "book.day" }), &json!("Books a day."), &tool()["inputSchema"]));
        assert_eq!((&made["method"], &made["header_names"]), (&json!("POST"), &json!(["Authorization"])));
        assert!(!made.to_string().contains(TOKEN));
        let own = json!({ "name": "own", "description": "Mine.", "parameters": { "type": "object" } });
        let own = function(api, &server, own).await;
        assert_eq!((&own["description"], &own["parameters"]), (&json!("Mine."), &json!({ "type": "object" })));

        // The server is asked again for what it may have changed, and only then.
        let before = server.round_trips().len();
        let changed = api.patch(&at(&own), json!({ "timeout_ms": 500, "description": "Still mine." })).await.ok();
        assert_eq!((&changed["version"], &changed["description"], server.round_trips().len()), (&json!(2), &json!("Still mine."), before));
        let changed = api.patch(&at(&own), json!({ "description": null, "parameters": null })).await.ok();
        assert_eq!((&changed["description"], &changed["parameters"]), (&made["description"], &made["parameters"]));
        assert_eq!(server.round_trips()[before..], greeted(&["tools/list"]));
        for (patch, param) in [
            (json!({ "mcp": { "tool": "nothing" } }), "mcp.tool"),
            (json!({ "url": "http://127.0.0.1:9/mcp" }), "url"),
            (json!({ "method": "PUT" }), "method"),
            (json!({ "headers": { "Mcp-Session-Id": "x" } }), "headers.Mcp-Session-Id"),
            (json!({ "mcp": null, "parameters": null }), "parameters"),
        ] {
            assert_eq!(api.patch(&at(&own), patch.clone()).await.error(), (422, "validation_failed", Some(param)), "{patch}");
        }
        assert_eq!(api.get(&at(&own)).await.ok(), changed, "what is refused changes nothing");
        let plain = api.patch(&at(&own), json!({ "mcp": null })).await.ok();
        assert_eq!((plain.get("mcp"), &plain["version"]), (None, &json!(4)), "a URL of one's own now");
    }

    async fn another_tool_comes_with_its_own_words_and_schema(world: &mut World) {
        let tenant = world.tenant().await;
        let api = &tenant.api;
        let schema = json!({ "type": "object", "properties": { "order": { "type": "string" } } });
        let tools = json!({ "tools": [tool(), { "name": "orders.cancel", "description": "Cancels an order.", "inputSchema": schema }] });
        let server = McpServer::start(false, move |method, _| (method == "tools/list").then(|| Reply::Result(tools.clone())));
        let made = function(api, &server, json!({})).await;
        let other = json!({ "mcp": { "tool": "orders.cancel" } });
        let changed = api.patch(&at(&made), other.clone()).await.ok();
        assert_eq!((&changed["description"], &changed["parameters"]), (&json!("Cancels an order."), &schema));
        // What the patch names holds.
        let named = json!({ "mcp": { "tool": "book.day" }, "description": "Mine." });
        let changed = api.patch(&at(&made), named).await.ok();
        assert_eq!((&changed["description"], &changed["parameters"]), (&json!("Mine."), &tool()["inputSchema"]));
        let same = api.patch(&at(&made), json!({ "mcp": { "tool": "book.day" } })).await.ok();
        assert_eq!(same["description"], "Mine.", "the same tool is no other one");

        let plain = json!({ "name": "plain", "description": "A URL.", "parameters": { "type": "object" }, "url": server.url });
        let plain = api.post("/v1/functions", plain).await.ok();
        let changed = api.patch(&at(&plain), other).await.ok();
        assert_eq!((&changed["description"], &changed["parameters"]), (&json!("Cancels an order."), &schema));
    }

    async fn a_tool_that_cannot_be_had_makes_no_function(world: &mut World) {
        let tenant = world.tenant().await;
        let schema = |schema: Value| Reply::Result(json!({ "tools": [{ "name": "book.day", "description": "x", "inputSchema": schema }] }));
        let deep = (0..20).fold(json!({}), |inner, _| json!({ "type": "object", "properties": { "a": inner } }));
        let described = |words: &str| Reply::Result(json!({ "tools": [{ "name": "book.day", "description": words, "inputSchema": { "type": "object" } }] }));
        let greeting = |version: &str| Reply::Result(json!({ "protocolVersion": version, "capabilities": {} }));
        for (is_of, reply, param, words) in [
            ("initialize", Reply::Status(401), "headers", "answered 401; give what it asks for"),
            ("initialize", Reply::Status(404), "url", "give the address of an MCP endpoint"),
            ("initialize", Reply::Status(302), "url", "redirects are not followed"),
            ("initialize", Reply::Raw("text/html", "<p>Hello!</p>".into()), "url", "is neither"),
            ("initialize", Reply::Endless, "url", "let it list fewer"),
            ("initialize", greeting("2024-11-05"), "url", "none of these revisions of the protocol: 2025-11-25, 2025-06-18, 2025-03-26"),
            ("initialize", Reply::Error(-32000, "not today"), "url", "the MCP server refused: not today (-32000)"),
            ("notifications/initialized", Reply::Status(400), "url", "answered 400"),
            ("tools/list", Reply::Error(-32601, "method not found"), "url", "refused"),
            ("tools/list", Reply::Result(json!({ "tools": {} })), "url", "holds no list of tools"),
            ("tools/list", Reply::Result(json!({ "tools": [], "nextCursor": "x".repeat(3_000) })), "url", "too long"),
            ("tools/list", Reply::Result(json!({ "tools": [] })), "mcp.tool", "is not a tool of the MCP server; list its tools"),
            ("tools/list", Reply::Result(json!({ "tools": [{ "name": 7 }, { "name": "book\u{7}day" }, "x"] })), "mcp.tool", "is not a tool"),
            ("tools/list", Reply::Result(json!({ "tools": [], "nextCursor": "again" })), "mcp.tool", "is not among the first 500"),
            ("tools/list", Reply::Result(json!({ "tools": ["x".repeat(600_000)] })), "url", "more than 1 MiB"),
            ("tools/list", described(""), "description", "does not describe this tool"),
            ("tools/list", described(&"x".repeat(2_001)), "description", "2001 characters"),
            ("tools/list", schema(json!({ "type": "object", "description": "x".repeat(17_000) })), "parameters", "bytes; 16384 are allowed"),
            ("tools/list", schema(deep), "parameters", "nests deeper"),
            ("tools/list", schema(json!({ "type": "object", "properties": { "a": { "$ref": "http://127.0.0.1:9/schema" } } })), "parameters", "must be local"),
            ("tools/list", schema(json!({ "type": "object", "description": "a\u{0}b" })), "parameters", "NUL"),
            ("tools/list", described("\u{200b}\u{e0041}"), "description", "does not describe this tool"),
            ("tools/list", schema(json!({ "type": "object", "description": "a\u{e0041}b" })), "parameters", "nobody sees and a model reads, such as U+E0041"),
            ("tools/list", schema(Value::Null), "parameters", "must be a JSON Schema object"),
        ] {
            let server = McpServer::start(false, move |method, _| (method == is_of).then(|| reply.clone()));
            let refused = tenant.api.post("/v1/functions", asked(&server, json!({}))).await;
            assert_eq!(refused.error(), (422, "validation_failed", Some(param)), "{words}: {}", refused.body);
            assert!(refused.body["error"]["message"].as_str().unwrap().contains(words), "{words}: {}", refused.body);
            assert!(!refused.body.to_string().contains(TOKEN));
            assert!(server.round_trips().len() <= 12, "pages are bounded");
        }
        assert_eq!(tenant.api.get("/v1/functions").await.ok()["data"], json!([]));
    }

    async fn the_tools_of_a_server_are_listed_page_by_page(world: &mut World) {
        let tenant = world.tenant().await;
        let list = async |url: &str| tenant.api.post("/v1/functions/mcp_tools", json!({ "url": url })).await;
        let named = |name: String| json!({ "name": name, "inputSchema": { "type": "object" } });
        let server = McpServer::start(true, move |method, params| (method == "tools/list").then(|| match params["cursor"].as_str() {
            None => Reply::Result(json!({ "tools": [tool()], "nextCursor": "two" })),
            Some(_) => Reply::Result(json!({ "tools": [named("search".into())] })),
        }));
        let expected = json!([
            { "name": "book.day", "description": "Books a day.", "parameters": tool()["inputSchema"] },
            { "name": "search", "description": null, "parameters": { "type": "object" } },
        ]);
        assert_eq!(list(&server.url).await.ok(), json!({ "tools": expected, "has_more": false }));
        assert_eq!(server.round_trips(), greeted(&["tools/list", "tools/list"]));

        // Neither pages nor tools without end are read to the end.
        let page = |from: usize, count: usize| (from..from + count).map(|n| json!({ "name": format!("t{n}"), "inputSchema": {} })).collect::<Vec<_>>();
        for (count, listed) in [(1, 10), (90, 500), (700, 500)] {
            let server = McpServer::start(false, move |method, _| (method == "tools/list").then(|| Reply::Result(json!({ "tools": page(0, count), "nextCursor": "more" }))));
            let found = list(&server.url).await.ok();
            assert_eq!((found["tools"].as_array().unwrap().len(), &found["has_more"]), (listed, &json!(true)), "{count}");
        }
        for url in ["http://169.254.169.254/mcp", "ftp://example.com/mcp", "http://127.0.0.1:9/mcp"] {
            assert_eq!(list(url).await.error(), (422, "validation_failed", Some("url")), "{url}");
        }
    }

    async fn an_outage_is_not_told_again_when_it_is_over(world: &mut World) {
        let tenant = world.tenant().await;
        let api = &tenant.api;
        let is_down = Arc::new(AtomicBool::new(true));
        let down = is_down.clone();
        let server = McpServer::start(false, move |method, _| (method == "initialize" && down.load(SeqCst)).then_some(Reply::Status(503)));
        let post = async |path: &str, body: Value| api.send(api.request(Method::POST, path).header("Idempotency-Key", path).json(&body)).await;
        for (path, body) in [
            ("/v1/functions", asked(&server, json!({}))),
            ("/v1/functions/mcp_tools", json!({ "url": server.url })),
        ] {
            is_down.store(true, SeqCst);
            assert_eq!(post(path, body.clone()).await.error(), (422, "validation_failed", Some("url")), "{path}");
            is_down.store(false, SeqCst);
            let first = post(path, body.clone()).await;
            assert!(!first.headers.contains_key("idempotent-replayed"), "{path}");
            let first = first.ok();
            let again = post(path, body).await;
            // What changes nothing is asked anew each time.
            assert_eq!(again.headers.contains_key("idempotent-replayed"), path == "/v1/functions", "{path}");
            assert_eq!(again.ok(), first, "{path}");
        }
    }

    /// Five of a workspace at once, as of all that waits for somebody outside.
    async fn a_silent_server_holds_up_a_few_requests_of_its_workspace_only(world: &mut World) {
        let (tenant, other) = (world.tenant().await, world.tenant().await);
        let silent = McpServer::start(false, |_, _| Some(Reply::Hang));
        let asking: Vec<_> = (0..5).map(|_| {
            let (api, body) = (tenant.api.clone(), json!({ "url": silent.url }));
            actix_rt::spawn(async move { api.post("/v1/functions/mcp_tools", body).await })
        }).collect();
        silent.arrived("initialize", 5).await;
        let sixth = tenant.api.post("/v1/functions", asked(&silent, json!({}))).await;
        assert_eq!(sixth.error(), (429, "rate_limited", None));
        let server = McpServer::start(false, |_, _| None);
        function(&other.api, &server, json!({})).await;
        // Whoever does not wait any longer gives its place back.
        asking.into_iter().for_each(|task| task.abort());
    }
}
