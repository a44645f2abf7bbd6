//! All of it against a real server that speaks the protocol.

use super::*;
use crate::brain::{Speech, ToolResult};
pub use crate::local_servers::chat_server;
use chat_server::{Answer as Reply, ChatServer, calls};
use futures_util::StreamExt;
use rules::conversation::tools::Tool;
use serde_json::json;
use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

const KEY: &str = "sk-secret/1234";
const MINUTE: Duration = Duration::from_secs(60);

fn provider(url: &str) -> Provider {
    let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
    Provider::new(url, Some(KEY), "small-model").unwrap()
}

fn chat(server: &ChatServer) -> Chat {
    chat_with(provider(&server.url()), None)
}

fn chat_with(provider: Provider, first_message: Option<&str>) -> Chat {
    let lookup = Tool {
        name: "look_up".into(),
        description: "Finds it".into(),
        parameters: json!({ "type": "object", "properties": {} }),
    };
    let briefing = Briefing {
        instructions: "Be kind.".into(),
        first_message: first_message.map(str::to_owned),
        tools: vec![lookup],
        language: "en".into(),
        voice: None,
    };
    Chat::new(provider, ChatSettings::default(), briefing)
}

fn words(text: &str) -> Heard {
    Heard::Words(Speech {
        text: text.into(),
        audio: None,
    })
}

fn result(call_id: &str, output: &str) -> ToolResult {
    ToolResult {
        call_id: call_id.into(),
        output: output.into(),
    }
}

fn say(text: &str) -> Result<Act, Failure> {
    Ok(Act::Say {
        text: text.into(),
        audio: None,
    })
}

fn call(id: &str, name: &str, arguments: &str) -> Result<Act, Failure> {
    Ok(Act::Call {
        id: id.into(),
        name: name.into(),
        arguments: arguments.into(),
    })
}

async fn think(chat: &mut Chat, heard: Heard) -> Vec<Result<Act, Failure>> {
    chat.think(heard).collect().await
}

/// All that was said, and how it failed.
fn failure(acts: Vec<Result<Act, Failure>>) -> String {
    let Some(Err(failure)) = acts.last() else {
        panic!("no failure: {acts:?}")
    };
    let failure = failure.to_string();
    assert!(!failure.contains(KEY), "{failure}");
    failure
}

/// What a chat makes of a server that always answers so.
async fn answer_to(reply: Reply) -> Vec<Result<Act, Failure>> {
    let server = ChatServer::start_with(move |_, _| reply.clone()).await;
    think(&mut chat(&server), words("Hello?")).await
}

/// The messages of a request after the system message, each as `role: content`, calls by their ids.
fn messages(request: &Value) -> Vec<String> {
    let all = request["messages"].as_array().unwrap();
    assert_eq!(all[0], json!({ "role": "system", "content": "Be kind." }));
    all[1..]
        .iter()
        .map(|message| {
            let calls = message["tool_calls"].as_array().into_iter().flatten();
            let calls: String = calls
                .map(|call| format!(" [{}]", call["id"].as_str().unwrap()))
                .collect();
            let of = message["tool_call_id"]
                .as_str()
                .map(|id| format!(" [{id}]"))
                .unwrap_or_default();
            let content = message["content"].as_str().unwrap_or("nothing");
            format!("{}{of}: {content}{calls}", message["role"].as_str().unwrap())
        })
        .collect()
}

#[tokio::test]
async fn the_first_message_is_said_word_for_word_without_a_request() {
    let server = ChatServer::start().await;
    let mut chat = chat_with(provider(&server.url()), Some("Hi. It is Dr. Who!  Yes?"));
    assert_eq!(
        think(&mut chat, Heard::Opening).await,
        [say("Hi. It is Dr. Who!  Yes?")]
    );
    assert!(server.requests().is_empty());
    assert_eq!(think(&mut chat, words("Ah.")).await, [say("You said: Ah.")]);
    assert_eq!(
        messages(&server.requests()[0]),
        ["assistant: Hi. It is Dr. Who!  Yes?", "user: Ah."]
    );
}

#[tokio::test]
async fn without_a_first_message_the_model_opens() {
    let server = ChatServer::start_with(|_, _| Reply::Words("Good day!".into())).await;
    let mut chat = chat(&server);
    assert_eq!(think(&mut chat, Heard::Opening).await, [say("Good day!")]);
    assert_eq!(messages(&server.requests()[0]), [format!("user: {PICKED_UP}")]);
}

#[tokio::test]
async fn a_request_has_what_the_settings_say() {
    let server = ChatServer::start().await;
    let mut chat = chat(&server);
    think(&mut chat, words("1")).await;
    chat.settings = ChatSettings {
        model: Some("big-model".into()),
        temperature: Some(0.5),
        max_tokens: Some(70),
    };
    chat.tools.clear();
    think(&mut chat, words("2")).await;
    let requests = server.requests();
    let tool = json!({ "type": "function", "function": {
        "name": "look_up", "description": "Finds it", "parameters": { "type": "object", "properties": {} },
    } });
    assert_eq!(
        requests[0],
        json!({ "model": "small-model", "stream": true, "tools": [tool], "messages": requests[0]["messages"] })
    );
    assert_eq!(
        requests[1],
        json!({ "model": "big-model", "stream": true, "temperature": 0.5, "max_tokens": 70, "messages": requests[1]["messages"] })
    );
    assert_eq!(server.authorizations(), vec![Some(format!("Bearer {KEY}")); 2]);
}

#[tokio::test]
async fn words_come_in_sentences_whatever_the_pieces() {
    let text = "Grüß Sie, Herr Müller! Es kostet 3.5 Euro… 您好。再见！\nOK?";
    let expected = [
        "Grüß Sie, Herr Müller!",
        "Es kostet 3.5 Euro…",
        "您好。",
        "再见！",
        "OK?",
    ]
    .map(say);
    assert_eq!(answer_to(Reply::Words(text.into())).await, expected);
    assert_eq!(answer_to(Reply::UnknownEvents(text.into())).await, expected);
    assert_eq!(
        answer_to(Reply::Drip("One. Two.".into())).await,
        [say("One."), say("Two.")]
    );
}

#[tokio::test]
async fn a_sentence_is_said_while_the_model_still_thinks_of_the_next() {
    let server = ChatServer::start_with(|_, nth| match nth {
        0 => Reply::Stall("One moment. I am loo".into()),
        _ => Reply::Words("Fine.".into()),
    })
    .await;
    let mut chat = chat(&server);
    let mut answer = chat.think(words("Well?"));
    assert_eq!(answer.next().await, Some(say("One moment.")));
    drop(answer);
    server.abandoned(1).await;
    // What was not handed out was not said.
    think(&mut chat, words("Hello?")).await;
    assert_eq!(
        messages(&server.requests()[1]),
        ["user: Well?", "assistant: One moment.", "user: Hello?"]
    );
}

/// The voice need not wait for the end of a long sentence.
#[tokio::test]
async fn the_first_clause_of_an_answer_comes_before_its_sentence() {
    let text = "I can certainly do that for you, if you tell me the day. Which one, of all of them, is it?";
    let pieces = [
        "I can certainly do that for you,",
        "if you tell me the day.",
        "Which one, of all of them, is it?",
    ];
    assert_eq!(answer_to(Reply::Words(text.into())).await, pieces.map(say));
    let server = ChatServer::start_with(move |_, _| Reply::Stall("I can certainly do that for you, i".into())).await;
    let mut chat = chat(&server);
    let mut answer = chat.think(words("Well?"));
    assert_eq!(answer.next().await, Some(say(pieces[0])));
    drop(answer);
    let noted = serde_json::to_value(chat.history.for_request()).unwrap();
    assert_eq!(
        messages(&json!({ "messages": noted })),
        ["user: Well?", "assistant: I can certainly do that for you,"]
    );
}

/// Half a sentence was thought about; nothing of that was heard.
#[tokio::test]
async fn what_was_not_said_to_its_end_is_not_in_the_history() {
    let server = ChatServer::start_with(|_, nth| match nth {
        0 => Reply::Words("Good day!".into()),
        1 => Reply::WordsAndCalls("Sure. On which day?".into(), calls([("look_up", "{}")])),
        _ => Reply::Words("On Monday it is.".into()),
    })
    .await;
    let mut chat = chat(&server);
    think(&mut chat, words("Hello.")).await;
    think(&mut chat, words("I would like to book")).await;
    chat.retract().await;
    // One that was dropped before the model has said anything.
    let mut answer = chat.think(words("I would like to book a table"));
    assert_eq!(answer.next().now_or_never(), None);
    drop(answer);
    chat.retract().await;
    think(&mut chat, words("I would like to book a table on Monday.")).await;
    let noted = serde_json::to_value(chat.history.for_request()).unwrap();
    assert_eq!(
        messages(&json!({ "messages": noted })),
        [
            "user: Hello.",
            "assistant: Good day!",
            "user: I would like to book a table on Monday.",
            "assistant: On Monday it is.",
        ]
    );
}

#[tokio::test]
async fn calls_are_put_together_and_answered() {
    let server = ChatServer::start_with(|_, nth| match nth {
        0 => Reply::WordsAndCalls(
            "Let me see.".into(),
            calls([
                ("look_up", "{\"city\":\"Köln\"}"),
                ("no time!", "{\"a\":"),
                ("hang_up", ""),
            ]),
        ),
        _ => Reply::Words("Done.".into()),
    })
    .await;
    let mut chat = chat(&server);
    assert_eq!(
        think(&mut chat, words("Well?")).await,
        [
            say("Let me see."),
            call("id_0", "look_up", "{\"city\":\"Köln\"}"),
            call("id_1", "no time!", "{\"a\":"),
            call("id_2", "hang_up", "{}"),
        ]
    );
    // One result too many, and one too few.
    let results = vec![result("id_1", "no"), result("id_9", "?"), result("id_0", "{\"ok\":1}")];
    assert_eq!(think(&mut chat, Heard::Results(results)).await, [say("Done.")]);
    let request = &server.requests()[1];
    assert_eq!(
        messages(request),
        [
            "user: Well?",
            "assistant: Let me see. [id_0] [id_1] [id_2]",
            "tool [id_1]: no",
            "tool [id_0]: {\"ok\":1}",
            "tool [id_2]: {\"error\":\"canceled\"}",
        ]
    );
    let sent = &request["messages"][2]["tool_calls"];
    assert_eq!(
        sent[0],
        json!({ "id": "id_0", "type": "function", "function": { "name": "look_up", "arguments": "{\"city\":\"Köln\"}" } })
    );
    assert_eq!(sent[1]["function"], json!({ "name": "no_time_", "arguments": "{}" }));
}

#[tokio::test]
async fn calls_that_were_cut_off_are_canceled_in_the_history() {
    let server = ChatServer::start_with(|_, nth| match nth {
        0 => Reply::Calls(calls([("look_up", "{}"), ("look_up", "{}")])),
        _ => Reply::Words("Fine.".into()),
    })
    .await;
    let mut chat = chat(&server);
    let mut answer = chat.think(words("Well?"));
    assert_eq!(answer.next().await, Some(call("id_0", "look_up", "{}")));
    drop(answer);
    chat.interrupted("", 0).await;
    think(&mut chat, words("Stop!")).await;
    // Too late.
    think(&mut chat, Heard::Results(vec![result("id_0", "1")])).await;
    let canceled = [
        "user: Well?",
        "assistant: nothing [id_0] [id_1]",
        "tool [id_0]: {\"error\":\"canceled\"}",
        "tool [id_1]: {\"error\":\"canceled\"}",
        "user: Stop!",
        "assistant: Fine.",
    ];
    assert_eq!(messages(&server.requests()[1]), canceled[..5]);
    assert_eq!(messages(&server.requests()[2]), canceled);
}

#[tokio::test]
async fn at_most_nine_calls_are_passed_on() {
    let many = (0..11).map(|n| (format!("tool_{n}"), "{}".to_owned())).collect();
    let acts = answer_to(Reply::Calls(many)).await;
    let expected: Vec<_> = (0..9)
        .map(|n| call(&format!("id_{n}"), &format!("tool_{n}"), "{}"))
        .collect();
    assert_eq!(acts, expected);
}

/// As servers do it that know the interface from hearsay.
#[tokio::test]
async fn calls_without_ids_or_indexes_are_told_apart() {
    let piece = |call: Value| {
        format!(
            "data: {}\n\n",
            json!({ "choices": [{ "delta": { "tool_calls": [call] } }] })
        )
    };
    let whole = |index: Value, id: &str| {
        piece(json!({ "index": index, "id": id, "function": { "name": "t", "arguments": { "of": id } } }))
    };
    for (body, expected) in [
        // The same index for all, or none.
        (
            whole(json!(0), "a") + &whole(json!(0), "b"),
            vec![call("a", "t", "{\"of\":\"a\"}"), call("b", "t", "{\"of\":\"b\"}")],
        ),
        (
            whole(Value::Null, "a") + &whole(Value::Null, "b"),
            vec![call("a", "t", "{\"of\":\"a\"}"), call("b", "t", "{\"of\":\"b\"}")],
        ),
        // No ids; and a fragment without an index.
        (
            piece(json!({ "index": 0, "function": { "name": "t" } }))
                + &piece(json!({ "function": { "arguments": "{ }" } }))
                + &piece(json!({ "index": 1, "id": "", "function": { "name": "u" } })),
            vec![call("call_1", "t", "{ }"), call("call_2", "u", "{}")],
        ),
        // What belongs to a tenth goes with it.
        (
            "abcdefghij"
                .chars()
                .map(|id| whole(Value::Null, &id.to_string()))
                .collect::<String>()
                + &piece(json!({ "function": { "arguments": "!" } })),
            "abcdefghi"
                .chars()
                .map(|id| call(&id.to_string(), "t", &json!({ "of": id }).to_string()))
                .collect(),
        ),
        // The same id twice.
        (
            piece(json!({ "index": 0, "id": "x", "function": { "name": "t" } }))
                + &piece(json!({ "index": 1, "id": "x", "function": { "name": "u" } })),
            vec![call("x", "t", "{}"), call("call_1", "u", "{}")],
        ),
    ] {
        assert_eq!(
            answer_to(Reply::Raw("text/event-stream", body + "data: [DONE]")).await,
            expected
        );
    }
}

#[tokio::test]
async fn of_interrupted_words_the_history_keeps_what_was_heard() {
    let server = ChatServer::start_with(|_, nth| match nth {
        0 => Reply::Words("There are three dates. The first is Monday.".into()),
        _ => Reply::Hang,
    })
    .await;
    let mut chat = chat(&server);
    think(&mut chat, words("When?")).await;
    chat.interrupted("There are three ", 900).await;
    let mut answer = chat.think(words("Which?"));
    assert_eq!(answer.next().now_or_never(), None);
    drop(answer);
    // Nothing of the next answer was said: the one before stays as it is.
    chat.interrupted("", 0).await;
    let noted = serde_json::to_value(chat.history.for_request()).unwrap();
    assert_eq!(
        messages(&json!({ "messages": noted })),
        ["user: When?", "assistant: There are three—", "user: Which?"]
    );
}

/// The service has put the truth in the place of a claim, has answered a question, and has reminded the other side.
#[tokio::test]
async fn the_history_says_what_was_said_in_the_models_place() {
    let server = ChatServer::start_with(|_, nth| match nth {
        0 => Reply::Words("Sure. I am human.".into()),
        1 => Reply::Calls(calls([("look_up", "{}")])),
        _ => Reply::Words("Friday, then.".into()),
    })
    .await;
    let mut chat = chat(&server);
    think(&mut chat, words("Well?")).await;
    chat.corrected("Sure. I am an AI.").await;
    chat.spoken_for("A reminder.").await;
    think(&mut chat, words("Look it up.")).await;
    // A call that nobody has answered stays before it.
    chat.spoken_for("A reminder.").await;
    let speech = Speech {
        text: "Are you a robot?".into(),
        audio: None,
    };
    let answer = "Yes. I am an AI.".to_owned();
    think(&mut chat, Heard::Answered { speech, answer }).await;
    let asked =
        "user: Are you a robot?\n[you have just answered this: \"Yes. I am an AI.\" Do not answer it again; go on]";
    assert_eq!(
        messages(&server.requests()[2]),
        [
            "user: Well?",
            "assistant: Sure. I am an AI. A reminder.",
            "user: Look it up.",
            "assistant: nothing [id_0]",
            "tool [id_0]: {\"error\":\"canceled\"}",
            "assistant: A reminder.",
            asked,
        ]
    );
}

/// What was said before a tool answered was heard: what is cut then is the next answer, of which nothing was said yet.
#[tokio::test]
async fn words_before_a_tools_answer_stay_as_they_are() {
    let server = ChatServer::start_with(|_, nth| match nth {
        0 => Reply::WordsAndCalls("One moment.".into(), vec![("look_up".into(), "{}".into())]),
        _ => Reply::Hang,
    })
    .await;
    let mut chat = chat(&server);
    think(&mut chat, words("Which?")).await;
    let mut answer = chat.think(Heard::Results(vec![result("id_0", "1")]));
    assert_eq!(answer.next().now_or_never(), None);
    drop(answer);
    chat.interrupted("", 0).await;
    let noted = serde_json::to_value(chat.history.for_request()).unwrap();
    let expected = ["user: Which?", "assistant: One moment. [id_0]", "tool [id_0]: 1"];
    assert_eq!(messages(&json!({ "messages": noted })), expected);
}

/// Words that nobody heard were not said: a dash in their place would only tell the model that it spoke.
#[tokio::test]
async fn words_that_were_cut_before_the_first_sound_are_not_in_the_history() {
    let server = ChatServer::start_with(|_, nth| match nth {
        0 => Reply::Words("There are three dates.".into()),
        _ => Reply::WordsAndCalls("One moment.".into(), vec![("look_up".into(), "{}".into())]),
    })
    .await;
    let mut chat = chat(&server);
    think(&mut chat, words("When?")).await;
    chat.interrupted(" ", 0).await;
    think(&mut chat, words("Which?")).await;
    chat.interrupted("", 0).await;
    let noted = serde_json::to_value(chat.history.for_request()).unwrap();
    let expected = [
        "user: When?",
        "user: Which?",
        "assistant: nothing [id_0]",
        "tool [id_0]: {\"error\":\"canceled\"}",
    ];
    assert_eq!(messages(&json!({ "messages": noted })), expected);
}

#[tokio::test]
async fn whole_completions_are_taken_as_well() {
    let message = json!({ "role": "assistant", "content": [{ "type": "text", "text": "One. Two." }], "tool_calls": [
        { "id": "x", "type": "function", "function": { "name": "look_up", "arguments": "{}" } },
    ] });
    let whole = json!({ "choices": [{ "message": message, "finish_reason": "tool_calls" }] });
    assert_eq!(
        answer_to(Reply::Whole(whole)).await,
        [say("One."), say("Two."), call("x", "look_up", "{}")]
    );
    let nothing = answer_to(Reply::Whole(json!({ "hello": "there" }))).await;
    assert!(failure(nothing).contains("no completion"));
    let error = answer_to(Reply::Whole(json!({ "error": format!("bad key {KEY}") }))).await;
    assert_eq!(failure(error), "the provider failed: it broke off: bad key [key]");
}

#[tokio::test]
async fn failures_are_in_words_that_help() {
    for (reply, expected) in [
        (
            Reply::Status(401, format!("No such key: {KEY}")),
            "it answered 401; check the API key: No such key: [key]",
        ),
        (
            Reply::Status(404, String::new()),
            "it answered 404; check the address and the name of the model",
        ),
        (
            Reply::Status(302, "x".into()),
            "it answered 302; redirects are not followed, set its final address: x",
        ),
        (Reply::Garbage, "its answer holds no completion; check its address"),
        (
            Reply::Raw(
                "text/event-stream",
                "data: {\"choices\":[{\"finish_reason\":\"content_filter\"}]}\n\n".into(),
            ),
            "its content filter held the answer back",
        ),
        (
            Reply::Raw("text/event-stream", "event: error\ndata: too busy\n\n".into()),
            "it broke off: too busy",
        ),
        (
            Reply::Raw("text/event-stream", "data: <\n\n".into()),
            "it does not speak the protocol: its answer is not JSON of the right form; check its address",
        ),
        (
            Reply::Raw(
                "text/event-stream",
                "event: error\ndata: {\"message\":\"full\"}\n\n".into(),
            ),
            "it broke off: full",
        ),
    ] {
        let acts = answer_to(reply).await;
        assert_eq!(acts.len(), 1);
        assert_eq!(failure(acts), format!("the provider failed: {expected}"));
    }
}

#[tokio::test]
async fn what_was_said_before_a_failure_counts() {
    for (reply, expected) in [
        (Reply::CutOff("Yes. Of cou".into()), "its answer was cut off"),
        (
            Reply::Unfinished("Yes. Of cou".into()),
            "its answer ended in the middle",
        ),
    ] {
        let server = ChatServer::start_with(move |_, nth| if nth == 0 { reply.clone() } else { Reply::Hang }).await;
        let mut chat = chat(&server);
        let acts = think(&mut chat, words("Well?")).await;
        assert_eq!((acts.len(), &acts[0]), (2, &say("Yes.")));
        let failure = failure(acts);
        assert!(failure.contains(expected), "{failure}");
        let noted = serde_json::to_value(chat.history.for_request()).unwrap();
        assert_eq!(
            messages(&json!({ "messages": noted })),
            ["user: Well?", "assistant: Yes."]
        );
    }
    let acts = answer_to(Reply::StreamError(format!("overloaded {KEY}"))).await;
    assert_eq!(failure(acts), "the provider failed: it broke off: overloaded [key]");
}

#[tokio::test]
async fn bad_luck_is_tried_again_once_and_refusals_are_not() {
    for (status, tries) in [
        (408, 2),
        (429, 2),
        (500, 2),
        (503, 2),
        (400, 1),
        (401, 1),
        (404, 1),
        (301, 1),
    ] {
        let always = ChatServer::start_with(move |_, _| Reply::Status(status, "no".into())).await;
        failure(think(&mut chat(&always), words("Well?")).await);
        assert_eq!(always.requests().len(), tries, "{status}");
        let once = ChatServer::start_with(move |_, nth| match nth {
            0 => Reply::Status(status, "no".into()),
            _ => Reply::Words("Yes.".into()),
        })
        .await;
        let acts = think(&mut chat(&once), words("Well?")).await;
        assert_eq!(acts == [say("Yes.")], tries == 2, "{status}: {acts:?}");
    }
    let reset = ChatServer::start_with(|_, nth| {
        if nth == 0 {
            Reply::Reset
        } else {
            Reply::Words("Yes.".into())
        }
    })
    .await;
    assert_eq!(think(&mut chat(&reset), words("Well?")).await, [say("Yes.")]);
}

#[tokio::test]
async fn it_is_reached_where_it_answers_and_takes_the_key() {
    let server = ChatServer::start().await;
    assert_eq!(chat(&server).reach().await, Ok(()));
    // One that keeps no list of models is there all the same.
    for (status, words) in [
        (404, "no"),
        (405, "no"),
        (429, "later"),
        (501, "no"),
        (401, "You have insufficient permissions for this operation."),
        (403, "Missing scopes: api.model.read"),
        (403, "PERMISSION_DENIED"),
    ] {
        server.answer_models(Reply::Status(status, words.into()));
        assert_eq!(chat(&server).reach().await, Ok(()), "{status}");
    }
    for (reply, expected) in [
        (
            Reply::Status(401, format!("Incorrect API key provided: {KEY}.")),
            "check the API key",
        ),
        (
            Reply::Status(503, "Out of order".into()),
            "it answered 503: Out of order",
        ),
        (Reply::Reset, "it cannot be reached"),
    ] {
        server.answer_models(reply);
        let failure = failure(vec![Err(chat(&server).reach().await.unwrap_err())]);
        assert!(failure.contains(expected), "{failure}");
    }
    let _held = server.hold_models();
    let mut provider = provider(&server.url());
    provider.limits.first_byte = Duration::from_millis(50);
    let late = chat_with(provider, None).reach().await.unwrap_err();
    assert!(late.to_string().contains("it did not answer in time"), "{late}");
    assert_eq!(server.requests(), Vec::<Value>::new(), "nothing was generated");
}

#[tokio::test]
async fn a_provider_that_is_not_there_is_named_without_its_address() {
    let listener = tokio::net::TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let url = format!("http://{}/v1/", listener.local_addr().unwrap());
    drop(listener);
    let failure = failure(think(&mut chat_with(provider(&url), None), words("Well?")).await);
    assert!(
        failure.contains("it cannot be reached: nothing listens on its address (connection refused)"),
        "{failure}"
    );
    assert!(!failure.contains("http://"), "{failure}");
}

#[tokio::test]
async fn nobody_waits_for_ever() {
    let short = Duration::from_millis(100);
    let long = Duration::from_secs(60);
    let limits = |first_byte, silence, whole| Limits {
        first_byte,
        silence,
        whole,
    };
    for (reply, limits, expected) in [
        (Reply::Hang, limits(short, long, long), "did not answer in time"),
        (
            Reply::Stall("Yes".into()),
            limits(long, short, long),
            "stopped in the middle",
        ),
        // Ten seconds of talk.
        (
            Reply::Drip("Yes ".repeat(250)),
            limits(long, long, 10 * short),
            "stopped in the middle",
        ),
    ] {
        let server = ChatServer::start_with(move |_, _| reply.clone()).await;
        let mut chat = chat(&server);
        chat.provider.limits = limits;
        let failure = failure(think(&mut chat, words("Well?")).await);
        assert!(failure.contains(expected), "{failure}");
    }
}

#[tokio::test]
async fn a_stream_that_stays_open_after_the_end_holds_nothing_up() {
    let last = json!({ "choices": [{ "delta": { "content": "Bye", "tool_calls": [{ "function": { "name": "t" } }] }, "finish_reason": "stop" }] });
    let server = ChatServer::start_with(move |_, _| Reply::Open(format!("data: {last}\n\n"))).await;
    let mut chat = chat(&server);
    chat.provider.limits.silence = 60 * MINUTE;
    chat.provider.limits.whole = 60 * MINUTE;
    let acts = tokio::time::timeout(MINUTE, think(&mut chat, words("Bye."))).await;
    assert_eq!(acts.unwrap(), [say("Bye"), call("call_1", "t", "{}")]);
    server.abandoned(1).await;
}

#[tokio::test]
async fn every_answer_has_a_limit() {
    // Words: 8,000 characters, and no failure.
    let acts = answer_to(Reply::Words("ä".repeat(9_000))).await;
    let said: usize = acts
        .iter()
        .map(|act| {
            if let Ok(Act::Say { text, .. }) = act {
                text.chars().count()
            } else {
                0
            }
        })
        .sum();
    assert_eq!((said, acts.len()), (8_000, 20));
    // A line, and a body.
    let line = answer_to(Reply::Raw(
        "text/event-stream",
        format!(": {}\n", "x".repeat(256 * 1024)),
    ))
    .await;
    assert!(failure(line).contains("a line of its event stream is too long"));
    let body = answer_to(Reply::Raw("text/event-stream", ": hello\n".repeat(256 * 1024 + 1))).await;
    assert!(failure(body).contains("2 MiB"));
    let whole = answer_to(Reply::Whole(
        json!({ "choices": [], "more": "x".repeat(2 * 1024 * 1024) }),
    ))
    .await;
    assert!(failure(whole).contains("too large"));
}

#[tokio::test]
async fn the_oldest_exchanges_are_forgotten_whole() {
    let server = ChatServer::start_with(|request, _| {
        match request["messages"].as_array().unwrap().last().unwrap()["role"].as_str() {
            Some("user") => Reply::Calls(calls([("look_up", "{}"), ("look_up", "{}")])),
            _ => Reply::Words("Here.".into()),
        }
    })
    .await;
    let mut chat = chat(&server);
    for turn in 0..45 {
        think(&mut chat, words(&format!("turn {turn}"))).await;
        think(
            &mut chat,
            Heard::Results(vec![result("id_0", "a"), result("id_1", "b")]),
        )
        .await;
    }
    // Each turn has 5 messages; 199 go beside the system message.
    let last = messages(&server.requests()[89]);
    assert_eq!(last.len(), 199);
    assert_eq!(last[0], "user: turn 5");
    let before = messages(&server.requests()[88]);
    assert_eq!((before.len(), before[0].as_str()), (196, "user: turn 5"));

    // By size: every word counts, and what is said at once is bounded too.
    let long = json!({ "choices": [{ "message": { "content": "ß".repeat(9_000) } }] });
    let server = ChatServer::start_with(move |_, _| Reply::Whole(long.clone())).await;
    let mut chat = chat_with(provider(&server.url()), None);
    for _ in 0..15 {
        think(&mut chat, words(&"ß".repeat(20_000))).await;
    }
    let last = messages(&server.requests()[14]);
    // 16,000 heard and 8,000 said at a turn: seven whole ones and what was heard last.
    assert_eq!(last.len(), 15);
    assert!(last[0].starts_with("user: ß") && last[0].chars().count() == 16_006);
}

#[tokio::test]
async fn a_turn_that_never_ends_loses_its_beginning() {
    let server = ChatServer::start_with(|_, _| Reply::Calls(calls([("look_up", "{}")]))).await;
    let mut chat = chat(&server);
    think(&mut chat, words("Go on.")).await;
    for _ in 0..101 {
        think(&mut chat, Heard::Results(vec![result("id_0", "a")])).await;
    }
    let last = messages(&server.requests()[101]);
    assert_eq!(last.len(), 198);
    assert_eq!(last[..2], ["assistant: nothing [id_0]", "tool [id_0]: a"]);
}

/// What another module asks after a call.
async fn classify(server: &ChatServer, timeout: Duration) -> Result<(Value, String), Failure> {
    let schema = json!({ "type": "object", "required": ["code"] });
    complete_json(
        &provider(&server.url()),
        None,
        "Classify.",
        "A talk.",
        "outcome",
        &schema,
        timeout,
    )
    .await
}

#[tokio::test]
async fn json_is_asked_for_by_its_schema() {
    let server = ChatServer::start_with(|_, _| Reply::Words("{\"code\":\"``` won\"}".into())).await;
    assert_eq!(
        classify(&server, MINUTE).await,
        Ok((json!({ "code": "``` won" }), "local".into()))
    );
    assert_eq!(
        server.requests(),
        [json!({
            "model": "small-model", "stream": false,
            "messages": [{ "role": "system", "content": "Classify." }, { "role": "user", "content": "A talk." }],
            "response_format": { "type": "json_schema", "json_schema": {
                "name": "outcome", "strict": true, "schema": { "type": "object", "required": ["code"] },
            } },
        })]
    );
}

#[tokio::test]
async fn a_server_without_schemas_is_asked_in_words() {
    let server = ChatServer::start_with(|request, _| match request["response_format"].is_null() {
        false => Reply::Status(400, "response_format?".into()),
        true => Reply::Words("Here it is:\n```json\n{ \"code\": 1 }\n```\nBye".into()),
    })
    .await;
    assert_eq!(
        classify(&server, MINUTE).await,
        Ok((json!({ "code": 1 }), "local".into()))
    );
    let asked = &server.requests()[1]["messages"][0]["content"];
    assert!(
        asked
            .as_str()
            .unwrap()
            .ends_with("{\"type\":\"object\",\"required\":[\"code\"]}"),
        "{asked}"
    );
}

#[tokio::test]
async fn json_that_does_not_come_is_a_failure() {
    for (reply, timeout, expected) in [
        (
            Reply::Words("I would say: won.".into()),
            MINUTE,
            "did not answer in JSON",
        ),
        (
            Reply::Whole(json!({ "choices": [{ "message": { "content": "{" }, "finish_reason": "length" }] })),
            MINUTE,
            "limit of tokens",
        ),
        (
            Reply::Whole(json!({ "choices": [{ "message": { "refusal": "I may not" } }] })),
            MINUTE,
            "refused: I may not",
        ),
        (Reply::Whole(json!({ "choices": [] })), MINUTE, "no completion"),
        (Reply::StreamError(format!("no {KEY}")), MINUTE, "no [key]"),
        (Reply::Status(400, "no".into()), MINUTE, "answered 400: no"),
        (Reply::Garbage, MINUTE, "does not speak the protocol"),
        (Reply::Hang, Duration::from_millis(100), "did not answer in time"),
    ] {
        let server = ChatServer::start_with(move |_, _| reply.clone()).await;
        let failure = failure(vec![Err(classify(&server, timeout).await.unwrap_err())]);
        assert!(failure.contains(expected), "{failure}");
    }
}

#[test]
fn a_provider_is_checked_and_does_not_show_its_key() {
    let shown = format!("{:?}", chat_with(provider("https://example.com/v1"), None));
    assert!(shown.contains("example.com") && !shown.contains(KEY), "{shown}");
    for (url, key, model) in [
        ("example.com/v1", None, "m"),
        ("ftp://example.com/v1", None, "m"),
        ("https://me:secret@example.com/v1", None, "m"),
        ("https://example.com/v1?key=secret", None, "m"),
        ("https://example.com/v1", Some("two words"), "m"),
        ("https://example.com/v1", Some("line\nbreak"), "m"),
        ("https://example.com/v1", None, " "),
    ] {
        let error = Provider::new(url, key, model).unwrap_err();
        assert!(!error.contains("secret"), "{error}");
    }
    assert!(provider("https://example.com/v1").api_key.is_some());
    assert!(
        Provider::new("http://localhost:11434/v1/", Some(" "), "m")
            .unwrap()
            .api_key
            .is_none()
    );
}

/// Whatever it begins with, and once; of an answer that never comes nothing is told.
#[tokio::test]
async fn the_first_of_an_answer_is_told() {
    let server = ChatServer::start_with(|_, nth| match nth {
        0 => Reply::Paced {
            first: Duration::ZERO,
            each: Duration::ZERO,
            words: "Well. It is noon. Anything else?".into(),
        },
        1 => Reply::Calls(calls([("look_up", "{}")])),
        _ => Reply::Status(400, "no".into()),
    })
    .await;
    let mut chat = chat(&server);
    let told = Arc::new(AtomicUsize::new(0));
    let count = told.clone();
    chat.on_first_token(FirstToken::new(move || {
        count.fetch_add(1, Ordering::Relaxed);
    }));
    for (heard, wanted) in [
        (words("When?"), 1),
        (words("Are you sure?"), 2),
        (Heard::Results(vec![result("id_0", "12")]), 2),
    ] {
        let acts = think(&mut chat, heard).await;
        assert_eq!(told.load(Ordering::Relaxed), wanted, "{acts:?}");
    }
}
