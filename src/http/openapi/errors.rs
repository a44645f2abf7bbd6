//! How errors read: their schema, and an example of each that an operation may answer.
use super::{contracts::PREFIX, marks::MEANINGS};
use crate::http::{caller::Access, error::Code, routes::Route};
use actix_web::http::Method;
use entities::error::{FaultCode, MOST_FAULTS};
use serde_json::{Map, Value, json};

/// What every error looks like.
const RESPONSE: &str = "ErrorResponse";

pub(super) fn schemas() -> [(String, Value); 3] {
    let codes: Vec<&str> = Code::ALL.iter().map(|code| code.as_str()).collect();
    let statuses: Map<String, Value> = Code::ALL
        .iter()
        .map(|code| {
            (
                code.as_str().to_owned(),
                format!("With status {}.", code.status().as_u16()).into(),
            )
        })
        .collect();
    let code = json!({
        "type": "string",
        "description": "What is wrong, for programs. There may be more of them in a later version.",
        "enum": codes,
        MEANINGS: statuses,
    });
    let error = json!({
        "type": "object",
        "description": "What every error looks like.",
        "required": ["error"],
        "properties": { "error": {
            "type": "object",
            "required": ["code", "message", "request_id"],
            "properties": {
                "code": { "$ref": "#/components/schemas/ErrorCode" },
                "message": { "type": "string", "description": "What is wrong and what to do." },
                "param": { "type": "string", "description": "The field that is wrong; of several the first." },
                "details": {
                    "type": "array", "maxItems": MOST_FAULTS, "items": { "$ref": "#/components/schemas/ErrorDetail" },
                    "description": "Of `validation_failed`: all that is wrong; the first is what `message` and `param` say.",
                },
                "request_id": { "type": "string", "description": "Also in the header `X-Request-Id`." },
            },
        } },
    });
    let detail = json!({
        "type": "object",
        "description": "One of the things that are wrong with a request.",
        "required": ["code", "message"],
        "properties": {
            "param": { "type": "string", "description": "The field, as `pacing.calls_per_second`; absent: the whole." },
            "code": { "type": "string", "enum": FaultCode::ALL.map(FaultCode::as_str) },
            "message": { "type": "string", "description": "What is wrong and what to do." },
        },
    });
    [
        ("ErrorCode".into(), code),
        (RESPONSE.into(), error),
        ("ErrorDetail".into(), detail),
    ]
}

/// What the service itself fails with.
pub(super) const OURS: [&str; 2] = ["InternalError", "Unavailable"];

/// The errors of the client's that an operation shows, by the names of their examples.
pub(super) fn of(route: &Route) -> Vec<&'static str> {
    let takes_body = route.request.is_some();
    let is_list = route.method == Method::GET && route.summary.starts_with("List ");
    let changes = route.method == Method::POST || route.method == Method::DELETE;
    let shown = [
        ("Unauthenticated", route.access != Access::Public),
        (
            "Forbidden",
            !matches!(route.access, Access::Public | Access::AnyKey | Access::SignedIn),
        ),
        ("NotFound", route.path.contains('{')),
        ("InvalidState", changes && route.path.contains("{id}/")),
        ("ValidationFailed", takes_body),
        ("BadParameter", is_list),
        ("RateLimited", true),
    ];
    shown
        .into_iter()
        .filter(|(_, is_shown)| *is_shown)
        .map(|(name, _)| name)
        .collect()
}

pub(super) fn answer(description: &str, examples: &[&str]) -> Value {
    let examples: Map<String, Value> = examples
        .iter()
        .map(|name| {
            let reference = json!({ "$ref": format!("#/components/examples/{name}") });
            ((*name).to_owned(), reference)
        })
        .collect();
    let schema = json!({ "$ref": format!("{PREFIX}{RESPONSE}") });
    json!({ "description": description, "content": { "application/json": { "schema": schema, "examples": examples } } })
}

/// Name, code, message, and the field.
const EXAMPLES: [(&str, Code, &str, Option<&str>); 8] = [
    (
        "Unauthenticated",
        Code::Unauthenticated,
        "this API key is not valid: it is unknown, revoked or expired",
        None,
    ),
    (
        "Forbidden",
        Code::Forbidden,
        "this key lacks the scope `agents:write`; use a key that has it",
        None,
    ),
    (
        "NotFound",
        Code::NotFound,
        "there is no object with this id; ids are UUIDs",
        None,
    ),
    (
        "InvalidState",
        Code::InvalidState,
        "a draft campaign cannot start: it has no contacts: add some first",
        None,
    ),
    (
        "BadParameter",
        Code::ValidationFailed,
        "`limit` must be a number from 1 to 100, not `900`",
        Some("limit"),
    ),
    (
        "RateLimited",
        Code::RateLimited,
        "at most 50 requests a second per key, bursts of 100",
        None,
    ),
    (
        "InternalError",
        Code::InternalError,
        "this is a fault of the service; the operator finds it in the log by the request id",
        None,
    ),
    (
        "Unavailable",
        Code::Unavailable,
        "the service cannot do this now; try again shortly",
        None,
    ),
];

/// For the document's components.
pub(super) fn examples() -> Map<String, Value> {
    let request_id = "req_0198c2f47d3a7c1e9b2a5f0c6d1e8a47";
    let detail = |param: &str, code: FaultCode, message: &str| json!({ "param": param, "code": code.as_str(), "message": message });
    let mut all: Map<String, Value> = EXAMPLES
        .iter()
        .map(|(name, code, message, param)| {
            let (status, code) = (code.status().as_u16(), code.as_str());
            let mut error = json!({ "code": code, "message": message, "request_id": request_id });
            if let Some(param) = param {
                error["param"] = (*param).into();
                error["details"] = json!([detail(param, FaultCode::InvalidValue, message)]);
            }
            let value = json!({ "error": error });
            (
                (*name).to_owned(),
                json!({ "summary": format!("{status} {code}"), "value": value }),
            )
        })
        .collect();
    let value = json!({ "error": {
        "code": Code::ValidationFailed.as_str(),
        "message": "`name` is required",
        "param": "name",
        "details": [
            detail("name", FaultCode::Required, "`name` is required"),
            detail("metadata", FaultCode::InvalidType, "`metadata` must be an object, not a list"),
        ],
        "request_id": request_id,
    } });
    all.insert(
        "ValidationFailed".into(),
        json!({ "summary": "422 validation_failed", "value": value }),
    );
    all
}
