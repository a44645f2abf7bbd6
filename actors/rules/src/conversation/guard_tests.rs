use super::*;
use entities::{
    agent::{Disposition, Question, QuestionType},
    function::Definition,
    ids::{FunctionId, TenantId},
    values::Moment,
};
use serde_json::json;
use uuid::Uuid;

fn function(name: &str, parameters: Value) -> Function {
    let definition = json!({
        "name": name,
        "description": "Finds a free day.",
        "parameters": parameters,
        "url": "https://example.com/hook",
    });
    let definition: Definition = serde_json::from_value(definition).unwrap();
    let at = Moment::from_millis(0);
    Function {
        id: FunctionId(Uuid::from_u128(1)),
        tenant_id: TenantId(Uuid::from_u128(2)),
        name: name.to_owned(),
        definition,
        sealed_headers: String::new(),
        sealed_secret: String::new(),
        secret_hint: String::new(),
        version: 1,
        created_at: at,
        updated_at: at,
        deleted_at: None,
    }
}

fn question(key: &str, kind: QuestionType, required: bool) -> Question {
    let question = json!({ "key": key, "text": format!("{key}?"), "type": kind, "required": required });
    serde_json::from_value(question).unwrap()
}

fn disposition(code: &str) -> Disposition {
    serde_json::from_value(json!({ "code": code })).unwrap()
}

/// One function, two targets, one disposition, and two questions of which `seats` is required.
fn tool_set() -> ToolSet {
    let day = json!({ "type": "object", "properties": { "day": { "type": "string" } }, "required": ["day"] });
    let target = |name: &str, number: &str| (name.to_owned(), number.parse().unwrap());
    ToolSet {
        functions: vec![function("find_day", day)],
        targets: vec![target("default", "+14155550100"), target("sales", "+14155550199")],
        dispositions: vec![disposition("sold")],
        questions: vec![
            question("seats", QuestionType::Number, true),
            question("colour", QuestionType::Text, false),
        ],
    }
}

fn look(name: &str, arguments: &str) -> Result<Allowed, String> {
    ToolPolicy::default().look(&tool_set(), &[], name, arguments)
}

fn refusal(name: &str, arguments: &str) -> String {
    match look(name, arguments) {
        Ok(allowed) => panic!("{name} {arguments}: {allowed:?}"),
        Err(why) => why,
    }
}

#[test]
fn a_function_gets_arguments_that_fit_it_and_no_others() {
    let Ok(Allowed::Function(function, arguments)) = look("find_day", r#"{"day":"monday"}"#) else {
        panic!("it fits")
    };
    assert_eq!(
        (function.name.as_str(), arguments),
        ("find_day", json!({ "day": "monday" }))
    );
    for arguments in ["", "{}", "[]", "{", r#"{"day":7}"#] {
        assert!(!refusal("find_day", arguments).is_empty(), "{arguments}");
    }
}

#[test]
fn only_the_agents_own_tools_are_known() {
    for name in ["", "find_day ", "FIND_DAY", "delete_everything", "transfer"] {
        assert_eq!(
            refusal(name, "{}"),
            format!("`{name}` is not one of this agent's tools")
        );
    }
    // A built-in tool is none of an agent that has nothing for it.
    for (name, arguments) in [
        (tools::TRANSFER, "{}"),
        (tools::DISPOSE, r#"{"code":"sold"}"#),
        (tools::ANSWER, r#"{"key":"seats","value":1}"#),
    ] {
        let why = ToolPolicy::default()
            .look(&ToolSet::default(), &[], name, arguments)
            .unwrap_err();
        assert!(why.ends_with("is not one of this agent's tools"), "{why}");
    }
    assert!(matches!(
        ToolPolicy::default().look(&ToolSet::default(), &[], tools::END, ""),
        Ok(Allowed::End)
    ));
    // What a model calls it is shown to people: short, and in plain letters.
    let why = refusal(&format!("\u{1b}[31m{}", "x".repeat(1_000)), "{}");
    assert!(why.chars().count() < 120 && !why.contains('\u{1b}'), "{why}");
}

#[test]
fn a_call_is_handed_over_only_to_the_agents_own_targets() {
    for (arguments, number) in [
        ("", "+14155550100"),
        ("{}", "+14155550100"),
        (r#"{"target":"default"}"#, "+14155550100"),
        (r#"{"target":"sales"}"#, "+14155550199"),
    ] {
        match look(tools::TRANSFER, arguments) {
            Ok(Allowed::Transfer(to)) => assert_eq!(to, number.parse().unwrap(), "{arguments}"),
            outcome => panic!("{arguments}: {outcome:?}"),
        }
    }
    for (arguments, why) in [
        (
            r#"{"target":"+19005550100"}"#,
            "`target` is not one of this agent's targets",
        ),
        (r#"{"target":"Sales"}"#, "`target` is not one of this agent's targets"),
        (r#"{"target":7}"#, "an argument is not text"),
        (
            r#"{"number":"+19005550100"}"#,
            "`number` is not an argument of this tool",
        ),
    ] {
        assert_eq!(refusal(tools::TRANSFER, arguments), why, "{arguments}");
    }
}

#[test]
fn a_disposition_is_one_of_the_agents_with_a_note_that_has_an_end() {
    let note = format!("a\u{0}b\n{}", "x".repeat(2_000));
    let arguments = json!({ "code": "sold", "note": note }).to_string();
    let Ok(Allowed::Dispose { code, note }) = look(tools::DISPOSE, &arguments) else {
        panic!("it is allowed")
    };
    assert_eq!((code.as_str(), note.chars().count()), ("sold", 1_000));
    assert!(note.starts_with("ab\nx"), "{note}");
    for arguments in [
        "{}",
        r#"{"code":"lost"}"#,
        r#"{"code":"sold","by":"me"}"#,
        r#"{"code":["sold"]}"#,
    ] {
        refusal(tools::DISPOSE, arguments);
    }
}

#[test]
fn an_answer_is_kept_as_its_question_wants_it() {
    for (arguments, key, value) in [
        (json!({ "key": "seats", "value": 3 }), "seats", json!(3)),
        (json!({ "key": "seats", "value": "3" }), "seats", json!(3.0)),
        (json!({ "key": "colour", "value": " red " }), "colour", json!("red")),
    ] {
        match look(tools::ANSWER, &arguments.to_string()) {
            Ok(Allowed::Answer {
                key: known,
                question,
                value: kept,
            }) => assert_eq!(
                (known.as_str(), question, kept),
                (key, format!("{key}?"), value),
                "{arguments}"
            ),
            outcome => panic!("{arguments}: {outcome:?}"),
        }
    }
    for (arguments, why) in [
        (
            json!({ "key": "age", "value": 3 }),
            "`key` is not one of this agent's questions",
        ),
        (json!({ "value": 3 }), "`key` is not one of this agent's questions"),
        (
            json!({ "key": "seats", "value": "many" }),
            "`value` does not fit the question's type",
        ),
        (json!({ "key": "seats" }), "`value` does not fit the question's type"),
        (
            json!({ "key": "colour", "value": "" }),
            "`value` does not fit the question's type",
        ),
        (
            json!({ "key": "seats", "value": 3, "sure": true }),
            "`sure` is not an argument of this tool",
        ),
    ] {
        assert_eq!(refusal(tools::ANSWER, &arguments.to_string()), why, "{arguments}");
    }
}

#[test]
fn arguments_are_an_object_of_16_kib_at_most() {
    let padded = |bytes: usize| format!("{{{}}}", " ".repeat(bytes - 2));
    let calm = || ToolPolicy::default();
    assert!(
        calm()
            .look(&ToolSet::default(), &[], tools::END, &padded(16 * 1024))
            .is_ok()
    );
    let why = calm()
        .look(&ToolSet::default(), &[], tools::END, &padded(16 * 1024 + 1))
        .unwrap_err();
    assert_eq!(why, "the arguments are larger than 16 KiB");
    for (arguments, why) in [
        ("7", "the arguments are not a JSON object"),
        ("null", "the arguments are not a JSON object"),
        ("{", "the arguments are not JSON"),
        ("end the call", "the arguments are not JSON"),
        (r#"{"now":true}"#, "`now` is not an argument of this tool"),
    ] {
        assert_eq!(refusal(tools::END, arguments), why, "{arguments}");
    }
}

#[test]
fn an_agent_that_forgot_a_required_question_is_reminded_once() {
    let tool_set = tool_set();
    let mut tool_policy = ToolPolicy::default();
    let why = tool_policy.look(&tool_set, &[], tools::END, "").unwrap_err();
    assert_eq!(why, "ask first: seats? (`seats`)");
    assert!(
        matches!(tool_policy.look(&tool_set, &[], tools::END, ""), Ok(Allowed::End)),
        "the person may not want to answer"
    );
    // An optional one is nobody's business.
    let answered = ["seats".to_owned()];
    assert!(matches!(
        ToolPolicy::default().look(&tool_set, &answered, tools::END, ""),
        Ok(Allowed::End)
    ));
    let other = ["colour".to_owned()];
    assert!(ToolPolicy::default().look(&tool_set, &other, tools::END, "").is_err());
}

#[test]
fn a_talk_has_60_tool_calls_refused_ones_count_and_it_may_always_end() {
    let tool_set = tool_set();
    let mut tool_policy = ToolPolicy::default();
    for nth in 0..MAX_CALLS {
        let (name, arguments) = if nth % 2 == 0 {
            ("find_day", r#"{"day":"monday"}"#)
        } else {
            ("nothing", "{}")
        };
        let outcome = tool_policy.look(&tool_set, &[], name, arguments);
        assert_eq!(outcome.is_ok(), nth % 2 == 0, "{nth}: {outcome:?}");
    }
    let why = tool_policy
        .look(&tool_set, &[], "find_day", r#"{"day":"monday"}"#)
        .unwrap_err();
    assert_eq!(why, "more than 60 tool calls in one talk");
    let answered = ["seats".to_owned()];
    let end = tool_policy.look(&tool_set, &answered, tools::END, "");
    assert!(matches!(end, Ok(Allowed::End)), "{end:?}");
    let why = tool_policy.look(&tool_set, &answered, tools::DISPOSE, r#"{"code":"sold"}"#);
    assert!(why.is_err(), "nothing else is: {why:?}");
}

#[test]
fn words_are_cleaned_of_what_nobody_says() {
    for (words, longest, clean_words) in [
        ("Hello.", 100, "Hello."),
        ("a\tb\r\nc\u{7f}\u{0}\u{85}", 100, "ab\nc"),
        ("äöü→日本", 4, "äöü→"),
        ("anything", 0, ""),
        ("", 10, ""),
    ] {
        assert_eq!(clean(words, longest), clean_words, "{words:?}");
    }
}
