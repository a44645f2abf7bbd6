//! What a tool answered, as an agent is told of it.
use super::fault::{Fault, shown};
use http::HeaderMap;
use serde_json::Value;

/// The result of `tools/call`: what the tool gives as JSON, else its texts. `limit`: bytes of it.
///
/// Only objects and lists are JSON in a text: a price or an order number that looks like a number stays as it is written.
pub fn output(result: &Value, limit: usize, headers: &HeaderMap) -> Result<Value, Fault> {
    let Some(fields) = result.as_object() else {
        return Err(Fault::Protocol("holds no object as its result"));
    };
    let content = match fields.get("content") {
        Some(Value::Array(content)) => content.as_slice(),
        Some(_) => return Err(Fault::Protocol("holds `content` that is not a list")),
        None => &[],
    };
    let texts: Vec<&str> = content.iter().filter_map(text).collect();
    let words = texts.join("\n");
    let structured = fields.get("structuredContent").filter(|value| !value.is_null());
    if fields.get("isError").and_then(Value::as_bool) == Some(true) {
        let words = match structured {
            Some(structured) if words.trim().is_empty() => structured.to_string(),
            Some(_) | None => words,
        };
        return Err(Fault::Tool(shown(&words, headers)));
    }
    // Servers repeat it as text for clients that do not know it.
    if let Some(structured) = structured {
        return within(structured.to_string().len(), limit).map(|()| structured.clone());
    }
    if texts.is_empty() {
        return match content {
            [] => Ok(Value::Null),
            _ => Err(Fault::Protocol("holds nothing that is text")),
        };
    }
    within(words.len(), limit)?;
    let json = serde_json::from_str::<Value>(&words).ok();
    let json = json.filter(|value| value.is_object() || value.is_array());
    Ok(json.unwrap_or(Value::String(words)))
}

fn within(length: usize, limit: usize) -> Result<(), Fault> {
    if length > limit {
        return Err(Fault::TooLarge(limit));
    }
    Ok(())
}

/// A text, or a resource that comes with its text. Pictures and sound are nothing that can be said.
fn text(content: &Value) -> Option<&str> {
    match content["type"].as_str()? {
        "text" => content["text"].as_str(),
        "resource" => content["resource"]["text"].as_str(),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_result_becomes_what_a_function_would_have_answered() {
        let text = |words: &str| json!({ "type": "text", "text": words });
        let image = json!({ "type": "image", "data": "AAAA", "mimeType": "image/png" });
        let resource = json!({ "type": "resource", "resource": { "uri": "file:///a", "text": "a" } });
        let long = "x".repeat(65);
        for (result, expected) in [
            (json!({ "content": [text("sunny")] }), Ok(json!("sunny"))),
            (
                json!({ "content": [text("{\"free\":[9]}")] }),
                Ok(json!({ "free": [9] })),
            ),
            (json!({ "content": [text("[9, 10]")] }), Ok(json!([9, 10]))),
            (json!({ "content": [text("4.50")] }), Ok(json!("4.50"))),
            (
                json!({ "content": [text("12345678901234567890123")] }),
                Ok(json!("12345678901234567890123")),
            ),
            (json!({ "content": [text("null")] }), Ok(json!("null"))),
            (json!({ "content": [text("\"a\"")] }), Ok(json!("\"a\""))),
            (
                json!({ "content": [text("a"), image, text("b"), resource] }),
                Ok(json!("a\nb\na")),
            ),
            (
                json!({ "content": [text("{}")], "structuredContent": { "free": [9] }, "isError": false }),
                Ok(json!({ "free": [9] })),
            ),
            (json!({ "structuredContent": {} }), Ok(json!({}))),
            (json!({ "content": [] }), Ok(Value::Null)),
            (
                json!({ "content": [image] }),
                Err(Fault::Protocol("holds nothing that is text")),
            ),
            (
                json!({ "content": [{ "type": "resource_link", "uri": "file:///a", "name": "a" }] }),
                Err(Fault::Protocol("holds nothing that is text")),
            ),
            (
                json!({ "content": [text("no such day")], "isError": true }),
                Err(Fault::Tool("no such day".into())),
            ),
            (json!({ "isError": true }), Err(Fault::Tool(String::new()))),
            (
                json!({ "content": [], "structuredContent": { "code": 7 }, "isError": true }),
                Err(Fault::Tool("{\"code\":7}".into())),
            ),
            (json!({ "content": [text(&long)] }), Err(Fault::TooLarge(64))),
            (json!({ "structuredContent": { "a": long } }), Err(Fault::TooLarge(64))),
            (
                json!({ "content": "sunny" }),
                Err(Fault::Protocol("holds `content` that is not a list")),
            ),
            (json!("sunny"), Err(Fault::Protocol("holds no object as its result"))),
        ] {
            assert_eq!(output(&result, 64, &HeaderMap::new()), expected, "{result}");
        }
    }
}
