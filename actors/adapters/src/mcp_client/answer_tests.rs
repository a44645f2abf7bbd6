use super::*;
use proptest::prelude::*;
use serde_json::json;

const JSON: &str = "application/json";
const STREAM: &str = "text/event-stream; charset=utf-8";
const LIMIT: usize = 4096;

type Read = (Result<Value, Wrong>, Vec<(Value, bool)>);

/// What is read of a body that comes in these pieces, up to the first `Break`.
fn read<'a>(content_type: &str, limit: usize, pieces: impl IntoIterator<Item = &'a [u8]>) -> Read {
    let mut reader = AnswerReader::new(7, limit);
    let mut asked = Vec::new();
    for piece in pieces {
        let flow = reader.take(content_type, piece);
        asked.extend(reader.asked());
        if flow.is_break() {
            break;
        }
    }
    (reader.finish(), asked)
}

fn whole(content_type: &str, body: &str) -> Read {
    read(content_type, LIMIT, [body.as_bytes()])
}

fn answer(result: Value) -> String {
    json!({ "jsonrpc": "2.0", "id": 7, "result": result }).to_string()
}

#[test]
fn an_answer_is_found_in_both_forms() {
    let expected = json!({ "tools": [] });
    assert_eq!(whole(JSON, &answer(expected.clone())).0, Ok(expected.clone()));
    // Before it: a comment, an event to resume from, progress, an answer to somebody else, a batch; after it whatever there is.
    let stream = format!(
        ": hi\n\nid: 1\nretry: 10\ndata:\n\nevent: message\ndata: {}\n\ndata: {}\r\n\r\nevent: other\ndata: not JSON\n\ndata: [{},\ndata: {}]\n\ndata: not JSON\n\n",
        json!({ "jsonrpc": "2.0", "method": "notifications/progress", "params": {} }),
        json!({ "jsonrpc": "2.0", "id": "7", "result": "another's" }),
        json!({ "jsonrpc": "2.0", "method": "notifications/message" }),
        answer(expected.clone()),
    );
    assert_eq!(whole(STREAM, &stream), (Ok(expected), Vec::new()));
}

#[test]
fn what_a_server_asks_is_noted_up_to_a_limit() {
    let asked = |n: usize| {
        format!(
            "data: {}\n\n",
            json!({ "jsonrpc": "2.0", "id": n, "method": "sampling/createMessage" })
        )
    };
    let ping = format!("data: {}\n\n", json!({ "jsonrpc": "2.0", "id": "p", "method": "ping" }));
    let many: String = (0..20).map(asked).collect();
    let (result, noted) = whole(STREAM, &format!("{ping}{many}data: {}\n\n", answer(json!(1))));
    assert_eq!(result, Ok(json!(1)));
    assert_eq!((noted.len(), &noted[0]), (MAX_ASKED, &(json!("p"), true)));
    assert_eq!(noted[1], (json!(0), false));
}

#[test]
fn every_wrong_answer_has_a_name() {
    let refusal = |code, message: &str| {
        Err(Wrong::Refused(Refusal {
            code,
            message: message.into(),
        }))
    };
    let no_answer = Err(Wrong::Protocol("holds no answer to what was asked"));
    let not_rpc = Err(Wrong::Protocol("is not a JSON-RPC 2.0 message"));
    let error = json!({ "code": -32602, "message": "unknown tool" });
    for (content_type, body, expected) in [
        (
            JSON,
            json!({ "jsonrpc": "2.0", "id": 7, "error": error }).to_string(),
            refusal(-32602, "unknown tool"),
        ),
        (
            JSON,
            json!({ "jsonrpc": "2.0", "id": null, "error": error }).to_string(),
            refusal(-32602, "unknown tool"),
        ),
        (
            JSON,
            json!({ "jsonrpc": "2.0", "id": 8, "error": error }).to_string(),
            no_answer.clone(),
        ),
        (
            JSON,
            json!({ "jsonrpc": "2.0", "id": 7, "error": "odd" }).to_string(),
            refusal(0, ""),
        ),
        (
            JSON,
            json!({ "jsonrpc": "1.0", "id": 7, "result": 1 }).to_string(),
            not_rpc.clone(),
        ),
        (JSON, json!({ "jsonrpc": "2.0", "id": 7 }).to_string(), not_rpc.clone()),
        (JSON, "[]".into(), no_answer.clone()),
        (JSON, "17".into(), not_rpc.clone()),
        (JSON, "<html>".into(), Err(Wrong::Protocol("is not JSON"))),
        (JSON, "[".repeat(1_000), Err(Wrong::Protocol("is not JSON"))),
        (JSON, answer(json!("x".repeat(LIMIT))), Err(Wrong::TooLarge(LIMIT))),
        (JSON, String::new(), no_answer.clone()),
        (STREAM, String::new(), no_answer.clone()),
        (STREAM, "data: {\n\n".into(), Err(Wrong::Protocol("is not JSON"))),
        (STREAM, ": nothing\n".repeat(1_000), Err(Wrong::TooLarge(LIMIT))),
        (STREAM, "x".repeat(LIMIT + 1), Err(Wrong::TooLarge(LIMIT))),
        (
            "text/html",
            "<p>hello</p>".into(),
            Err(Wrong::Protocol("is neither `application/json` nor `text/event-stream`")),
        ),
    ] {
        assert_eq!(whole(content_type, &body).0, expected, "{content_type}: {body:.80}");
    }
}

/// Pieces of streams that are good, and bytes that are anything.
fn bodies() -> impl Strategy<Value = Vec<u8>> {
    let line = prop_oneof![
        Just("data: {\"jsonrpc\":\"2.0\",\"id\":7,\"result\":{\"ü\":1}}".to_owned()),
        Just("data: {\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}".to_owned()),
        Just("data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\"}".to_owned()),
        Just("event: message".to_owned()),
        Just(String::new()),
        "[a-z:{} ]{0,20}",
    ];
    let end = prop_oneof![Just("\n"), Just("\r"), Just("\r\n")];
    let lines = prop::collection::vec((line, end), 0..30);
    let stream = lines.prop_map(|lines| {
        lines
            .into_iter()
            .flat_map(|(line, end)| (line + end).into_bytes())
            .collect()
    });
    prop_oneof![stream, prop::collection::vec(any::<u8>(), 0..300)]
}

proptest! {
    /// Also where the limit lies within it.
    #[test]
    fn however_a_body_is_cut_the_same_is_read(
        body in bodies(), cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..8), is_stream: bool, limit in 0..600_usize,
    ) {
        let content_type = if is_stream { STREAM } else { JSON };
        let mut places: Vec<usize> = cuts.iter().map(|cut| cut.index(body.len() + 1)).collect();
        places.extend([0, body.len()]);
        places.sort_unstable();
        let pieces = places.windows(2).map(|ends| &body[ends[0]..ends[1]]);
        let at_once = read(content_type, limit, [&body[..]]);
        prop_assert_eq!(read(content_type, limit, pieces), at_once);
    }
}
