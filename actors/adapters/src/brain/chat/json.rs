//! One question with an answer in JSON: for what is decided about a call after it.
use super::{
    protocol::{Completion, Message, Request, error_message},
    provider::{Limits, MAX_BODY, Patience, Provider, Refusal, read},
};
use crate::brain::Failure;
use entities::boxed;
use serde_json::{Value, json};
use std::time::Duration;

/// Asks for JSON of this schema. Gives it with the name of the model that answered; whether it fits the schema is for the
/// caller to check. `timeout` is for all of it. A server without `response_format` is asked again in words.
#[boxed]
pub async fn complete_json(
    provider: &Provider,
    model: Option<&str>,
    system: &str,
    user: &str,
    schema_name: &str,
    schema: &Value,
    timeout: Duration,
) -> Result<(Value, String), Failure> {
    let model = model.unwrap_or(&provider.model);
    // Nothing comes before all of it has been thought of.
    let mut patience = Patience::new(Limits {
        first_byte: timeout,
        silence: timeout,
        whole: timeout,
    });
    let strict =
        json!({ "type": "json_schema", "json_schema": { "name": schema_name, "schema": schema, "strict": true } });
    let body = match ask(provider, &mut patience, model, system, user, Some(strict)).await {
        Err(Refusal {
            status: Some(status), ..
        }) if matches!(status.as_u16(), 400 | 422) => {
            let system =
                format!("{system}\n\nAnswer with one JSON object of this JSON Schema and nothing else:\n{schema}");
            ask(provider, &mut patience, model, &system, user, None).await
        }
        decided => decided,
    };
    let body = body.map_err(|refusal| provider.failure(&refusal.words))?;
    let (value, answered_by) = parse(&body).map_err(|words| provider.failure(&words))?;
    Ok((value, answered_by.unwrap_or_else(|| model.to_owned())))
}

async fn ask(
    provider: &Provider,
    patience: &mut Patience,
    model: &str,
    system: &str,
    user: &str,
    response_format: Option<Value>,
) -> Result<Vec<u8>, Refusal> {
    let messages = [
        Message::System { content: system.into() },
        Message::User { content: user.into() },
    ];
    let request = Request {
        model,
        messages: &messages,
        tools: &[],
        stream: false,
        temperature: None,
        max_tokens: None,
        response_format,
    };
    let response = provider.send(&request, patience).await?;
    read(response, MAX_BODY, patience)
        .await
        .map_err(|words| Refusal::of(&words))
}

/// The JSON in an answer, and the model's name.
fn parse(body: &[u8]) -> Result<(Value, Option<String>), String> {
    let garbage =
        |_| "it does not speak the protocol: its answer is not JSON of the right form; check its address".to_owned();
    let completion: Completion = serde_json::from_slice(body).map_err(garbage)?;
    if let Some(error) = &completion.error {
        return Err(error_message(error).unwrap_or_else(|| error.to_string()));
    }
    let choice = completion.choices.into_iter().flatten().next();
    let (delta, finish) = choice.ok_or("its answer holds no completion")?.take();
    if let Some(refusal) = &delta.refusal {
        return Err(format!("the model refused: {refusal}"));
    }
    let text = delta.text();
    let value = serde_json::from_str(unfenced(&text)).map_err(|_| match finish.as_deref() {
        Some("length") => "the model's answer was cut off at its limit of tokens".to_owned(),
        _ => "the model did not answer in JSON".to_owned(),
    })?;
    Ok((value, completion.model.filter(|model| !model.is_empty())))
}

/// What stands between the fences of Markdown, if there are any.
fn unfenced(text: &str) -> &str {
    let text = text.trim();
    // JSON may itself contain fences, within a string.
    let fenced = (!text.starts_with(['{', '[']))
        .then(|| text.split_once("```"))
        .flatten();
    let Some((_, after)) = fenced else { return text };
    let inner = after.rsplit_once("```").map_or(after, |(inner, _)| inner);
    inner.strip_prefix("json").unwrap_or(inner).trim()
}
