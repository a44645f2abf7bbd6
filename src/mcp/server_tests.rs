use super::*;
use crate::{
    http::routes,
    mcp::{
        api::{ApiAnswer, ApiRequest, MAX_ANSWER, MAX_LONG_ANSWER, Method},
        arguments, cut,
        message::{Incoming, METHOD_NOT_FOUND, PARSE_ERROR, read},
        tool::{Kind, Place},
    },
};
use entities::{
    law::{Audience, ConsentTier, Purpose, Vertical},
    values::Scope,
};
use futures_util::{FutureExt, future::LocalBoxFuture};
use rand::{Rng, SeedableRng, rngs::StdRng};
use sea_orm::Iterable;
use serde::Serialize;
use std::cell::RefCell;

/// A server that gives everybody the same answer, and notes what it was asked.
struct Peer {
    status: u16,
    body: Value,
    asked: RefCell<Vec<String>>,
}

impl Peer {
    fn new(status: u16, body: Value) -> Self {
        Peer {
            status,
            body,
            asked: RefCell::default(),
        }
    }

    /// One at which a key has these scopes.
    fn with(scopes: &[Scope]) -> Self {
        Peer::new(200, json!({ "scopes": scopes }))
    }
}

impl Api for Peer {
    fn send<'a>(&'a self, request: &'a ApiRequest) -> LocalBoxFuture<'a, Result<ApiAnswer, String>> {
        self.asked
            .borrow_mut()
            .push(format!("{} {}", request.method.as_str(), request.target));
        let answer = ApiAnswer {
            status: self.status,
            body: self.body.to_string().into_bytes(),
            ..ApiAnswer::default()
        };
        Box::pin(async move {
            match answer.status {
                0 => Err("nothing listens there".into()),
                _ => Ok(answer),
            }
        })
    }
}

/// What goes back to a text. Nothing here waits.
fn said(peer: &Peer, version: Version, text: &[u8]) -> Vec<Value> {
    let messages = match read(text, version) {
        Incoming::One(message) => vec![message],
        Incoming::Batch(messages) => messages,
    };
    let answer = |message| answer(peer, version, message).now_or_never().unwrap();
    messages.into_iter().filter_map(answer).collect()
}

fn ask(peer: &Peer, method: &str, params: Value) -> Value {
    let text = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params }).to_string();
    let mut all = said(peer, Version::LATEST, text.as_bytes());
    assert_eq!((all.len(), &all[0]["id"]), (1, &json!(1)));
    all.remove(0)
}

fn call(peer: &Peer, name: &str, given: Value) -> Value {
    ask(peer, "tools/call", json!({ "name": name, "arguments": given }))["result"].clone()
}

#[test]
fn each_method_is_answered() {
    let peer = Peer::with(&[]);
    for (asked, spoken) in [
        ("2025-11-25", "2025-11-25"),
        ("2025-06-18", "2025-06-18"),
        ("2025-03-26", "2025-03-26"),
        ("2024-11-05", "2024-11-05"),
        ("2026-07-28", "2025-11-25"),
        ("", "2025-11-25"),
    ] {
        let client =
            json!({ "protocolVersion": asked, "capabilities": {}, "clientInfo": { "name": "x", "version": "1" } });
        let result = &ask(&peer, "initialize", client)["result"];
        assert_eq!(result["protocolVersion"], spoken, "{asked}");
        assert_eq!(result["capabilities"], json!({ "tools": { "listChanged": false } }));
        assert_eq!(result["serverInfo"]["name"], "callboard");
    }
    assert_eq!(
        ask(&peer, "ping", json!({})),
        json!({ "jsonrpc": "2.0", "id": 1, "result": {} })
    );
    for (method, params, code) in [
        ("initialize", json!({}), message::INVALID_PARAMS),
        ("initialize", json!({ "protocolVersion": 1 }), message::INVALID_PARAMS),
        ("resources/list", json!({}), METHOD_NOT_FOUND),
        ("server/discover", json!({}), METHOD_NOT_FOUND),
        ("notifications/initialized", json!({}), METHOD_NOT_FOUND),
        ("tools/list", json!({ "cursor": "x" }), message::INVALID_PARAMS),
        ("tools/call", json!({}), message::INVALID_PARAMS),
        (
            "tools/call",
            json!({ "name": "start_campaign" }),
            message::INVALID_PARAMS,
        ),
        (
            "tools/call",
            json!({ "name": "get_call", "arguments": [1] }),
            message::INVALID_PARAMS,
        ),
    ] {
        assert_eq!(
            ask(&peer, method, params.clone())["error"]["code"],
            code,
            "{method} {params}"
        );
    }
    assert_eq!(peer.asked.borrow().len(), 0, "none of these needs the API");
    for silent in [
        r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}"#,
        r#"{"jsonrpc":"2.0","method":"tools/call","params":{"name":"get_credits"}}"#,
        r#"{"jsonrpc":"2.0","id":5,"result":{}}"#,
    ] {
        assert_eq!(
            said(&peer, Version::LATEST, silent.as_bytes()),
            Vec::<Value>::new(),
            "{silent}"
        );
    }
}

#[test]
fn a_key_sees_the_tools_of_its_scopes() {
    let names = |scopes: &[Scope]| {
        let listed = ask(&Peer::with(scopes), "tools/list", json!({}))["result"]["tools"].clone();
        let names = listed
            .as_array()
            .unwrap()
            .iter()
            .map(|tool| tool["name"].as_str().unwrap().to_owned());
        names.collect::<Vec<_>>()
    };
    assert_eq!(names(&[]), ["get_workspace"]);
    assert_eq!(names(&[Scope::CreditsRead]), ["get_workspace", "get_credits"]);
    assert_eq!(names(&[Scope::CampaignsWrite]), ["get_workspace", "preflight_campaign"]);
    assert_eq!(names(Scope::ALL).len(), tools::TOOLS.len());
    let refused = Peer::new(
        401,
        json!({ "error": { "code": "unauthenticated", "message": "not valid" } }),
    );
    let error = &ask(&refused, "tools/list", json!({}))["error"];
    assert_eq!(
        (&error["code"], &error["message"]),
        (&json!(INTERNAL_ERROR), &json!("not valid"))
    );
    assert_eq!(error["data"]["status"], 401);
    let away = Peer::new(0, Value::Null);
    assert_eq!(
        ask(&away, "tools/list", json!({}))["error"]["message"],
        "nothing listens there"
    );
    let other = Peer::new(200, json!({ "hello": "world" }));
    assert!(ask(&other, "tools/list", json!({}))["error"]["message"].is_string());
}

#[test]
fn arguments_become_requests() {
    const ID: &str = "0190a1b2-0000-7000-8000-000000000001";
    for (name, given, expected) in [
        ("get_workspace", json!({}), vec!["GET /v1/me".to_owned()]),
        ("list_agents", json!({}), vec!["GET /v1/agents?limit=20".into()]),
        (
            "list_agents",
            json!({ "name": "A & B+ß", "limit": 3, "cursor": null }),
            vec!["GET /v1/agents?name=A+%26+B%2B%C3%9F&limit=3".into()],
        ),
        (
            "search_calls",
            json!({ "phone_number": "+15002340001", "kind": "phone" }),
            vec!["GET /v1/sessions?phone_number=%2B15002340001&type=phone&limit=20".into()],
        ),
        (
            "get_call_transcript",
            json!({ "id": ID, "first_turn": 7 }),
            vec![format!("GET /v1/sessions/{ID}/transcript.json")],
        ),
        (
            "get_call_evaluation",
            json!({ "id": ID }),
            vec![
                format!("GET /v1/sessions/{ID}"),
                format!("GET /v1/sessions/{ID}/answers"),
            ],
        ),
        (
            "explain_contact_eligibility",
            json!({ "id": ID, "contact_id": ID }),
            vec![format!("GET /v1/campaigns/{ID}/contacts/{ID}/eligibility")],
        ),
        (
            "preflight_campaign",
            json!({ "id": ID.to_uppercase() }),
            vec![format!("POST /v1/campaigns/{ID}/preflight")],
        ),
    ] {
        let peer = Peer::new(200, json!({ "data": [] }));
        call(&peer, name, given.clone());
        assert_eq!(*peer.asked.borrow(), expected, "{name} {given}");
    }
}

#[test]
fn more_is_read_of_what_is_shown_part_by_part() {
    let given = json!({ "id": "0190a1b2-0000-7000-8000-000000000001" });
    for (name, most) in [
        ("get_call_transcript", MAX_LONG_ANSWER),
        ("get_call_timeline", MAX_LONG_ANSWER),
        ("get_call", MAX_ANSWER),
        ("get_campaign_report", cut::ROOM),
    ] {
        let requests = tools::find(name).unwrap().requests(given.as_object().unwrap()).unwrap();
        assert_eq!(requests[0].most, most, "{name}");
    }
}

#[test]
fn arguments_that_do_not_fit_ask_nothing() {
    let peer = Peer::new(200, json!({}));
    for (name, given, argument) in [
        ("get_call", json!({}), "id"),
        ("get_call", json!({ "id": "../credits" }), "id"),
        ("get_call", json!({ "id": 7 }), "id"),
        ("get_call", json!({ "id": null }), "id"),
        ("get_call", json!({ "ID": "x" }), "ID"),
        ("get_credits", json!({ "id": "x" }), "id"),
        ("list_agents", json!({ "limit": 0 }), "limit"),
        ("list_agents", json!({ "limit": 51 }), "limit"),
        ("list_agents", json!({ "limit": -1 }), "limit"),
        ("list_agents", json!({ "limit": 1.5 }), "limit"),
        ("list_agents", json!({ "limit": "20" }), "limit"),
        ("list_agents", json!({ "name": "" }), "name"),
        ("list_agents", json!({ "name": "x".repeat(201) }), "name"),
        ("list_agents", json!({ "order": "DESC" }), "order"),
        (
            "get_call_transcript",
            json!({ "id": "0190a1b2-0000-7000-8000-000000000001", "max_turns": 501 }),
            "max_turns",
        ),
        (
            "get_call_timeline",
            json!({ "id": "0190a1b2-0000-7000-8000-000000000001", "max_entries": 0 }),
            "max_entries",
        ),
    ] {
        let result = call(&peer, name, given.clone());
        let error = &result["structuredContent"]["error"];
        assert_eq!(result["isError"], true, "{name} {given}");
        assert_eq!(
            (&error["code"], &error["param"]),
            (&json!("validation_failed"), &json!(argument))
        );
    }
    assert_eq!(peer.asked.borrow().len(), 0);
}

/// What an assistant is talked into, it cannot do. Each tool is a route of the API, and needs the route's own scope.
#[test]
fn no_tool_changes_anything() {
    let routes = routes::all();
    let route = |method: &str, path: &str| {
        let found = routes.iter().find(|route| route.method == method && route.path == path);
        found.unwrap_or_else(|| panic!("{method} {path} is no route"))
    };
    let mut names = std::collections::BTreeSet::new();
    for tool in tools::TOOLS {
        assert!(names.insert(tool.name), "{} is there twice", tool.name);
        assert!(tool.name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_') && tool.name.len() <= 64);
        let only_reads = tool.method == Method::Get || tool.path == "/v1/campaigns/{id}/preflight";
        assert!(only_reads, "{}", tool.name);
        let asked = [
            Some((tool.method.as_str(), tool.path)),
            tool.also.map(|also| ("GET", also)),
        ];
        for (method, path) in asked.into_iter().flatten() {
            use crate::http::caller::Access;
            match (route(method, path).access, tool.scope) {
                (Access::AnyKey, None) => {}
                (Access::Needs(needed), Some(scope)) => assert_eq!(needed, scope, "{}", tool.name),
                (access, _) => panic!("{}: {access:?}", tool.name),
            }
            assert!(tools::asks(method, path));
            let places = path
                .split('/')
                .filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'));
            for place in places {
                let taken = tool
                    .arguments
                    .iter()
                    .any(|argument| argument.name == place && argument.place == Place::Path);
                assert!(taken, "{} takes no {place}", tool.name);
            }
        }
        let listed = tool.listed();
        assert_eq!(listed["annotations"]["readOnlyHint"], true);
        assert!(listed["inputSchema"]["additionalProperties"] == false && listed["inputSchema"]["type"] == "object");
        assert!(jsonschema::validator_for(&listed["inputSchema"]).is_ok(), "{listed}");
    }
    let reached = routes
        .iter()
        .filter(|route| tools::asks(route.method.as_str(), route.path));
    assert!(reached.count() <= tools::TOOLS.len() + 1);
}

/// A word that the law learns is offered here, too.
#[test]
fn the_law_is_asked_in_its_own_words() {
    fn words<T: Iterable + Serialize>() -> Vec<Value> {
        T::iter().map(|word| json!(word)).collect()
    }
    for (argument, expected) in [
        (arguments::PURPOSE, words::<Purpose>()),
        (arguments::AUDIENCE, words::<Audience>()),
        (arguments::VERTICAL, words::<Vertical>()),
        (arguments::CONSENT, words::<ConsentTier>()),
    ] {
        let Kind::Choice(offered) = argument.kind else {
            panic!("{} is not a choice", argument.name)
        };
        assert_eq!(json!(offered), Value::from(expected), "{}", argument.name);
    }
}

/// Whatever a line holds, it is answered as JSON-RPC or not at all.
#[test]
fn any_line_is_answered_or_passed_over() {
    const SEEDS: [&str; 6] = [
        r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{}}}"#,
        r#"{"jsonrpc":"2.0","id":"a","method":"tools/list","params":{"_meta":{"progressToken":1}}}"#,
        r#"{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"search_calls","arguments":{"limit":20,"status":"busy"}}}"#,
        r#"[{"jsonrpc":"2.0","id":4,"method":"ping"},{"jsonrpc":"2.0","method":"notifications/initialized"}]"#,
        r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"a"}}"#,
        r#"{"jsonrpc":"2.0","id":5,"error":{"code":-1,"message":"\ud83d\ude00\u0000"}}"#,
    ];
    const PIECES: [&str; 14] = [
        "null", "[", "]", "{", "}", "\"", ":", ",", "1e999", "-1", "\\u0000", "\"id\"", "true", "\u{fe}",
    ];
    let mut chance = StdRng::seed_from_u64(20_251_125);
    let (mut answered, mut refused, mut silent) = (0, 0, 0);
    for round in 0..20_000 {
        let mut line = SEEDS[round % SEEDS.len()].as_bytes().to_vec();
        for _ in 0..chance.random_range(0..4) {
            let at = chance.random_range(0..=line.len());
            let until = (at + chance.random_range(0..8)).min(line.len());
            let piece = match chance.random_range(0..3) {
                0 => vec![chance.random::<u8>()],
                1 => Vec::new(),
                _ => PIECES[chance.random_range(0..PIECES.len())].into(),
            };
            line.splice(at..until, piece).for_each(drop);
        }
        let peer = Peer::new(200, json!({ "scopes": ["agents:read"], "data": [] }));
        for version in Version::ALL {
            let answers = said(&peer, version, &line);
            silent += usize::from(answers.is_empty());
            for answer in answers {
                let shown = String::from_utf8_lossy(&line);
                assert_eq!(answer["jsonrpc"], "2.0", "{shown}");
                assert!(
                    answer["id"].is_null() || answer["id"].is_string() || answer["id"].is_number(),
                    "{shown}"
                );
                assert_ne!(answer.get("result").is_some(), answer.get("error").is_some(), "{shown}");
                assert!(!answer.to_string().contains('\n'), "{shown}");
                answered += usize::from(answer.get("result").is_some());
                refused += usize::from(answer["error"]["code"] == PARSE_ERROR);
            }
        }
    }
    assert!(
        answered > 1_000 && refused > 1_000 && silent > 1_000,
        "{answered} {refused} {silent}"
    );
}
