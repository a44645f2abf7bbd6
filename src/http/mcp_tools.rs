//! Tools of MCP servers: listed for whoever makes a function of one, and described by their servers when one is made.
use super::{
    caller::Caller,
    error::{ApiError, ApiResult, NotKept},
    extract::{self, Json},
    target,
};
use crate::state::State;
use actix_web::{HttpResponse, web::Data};
use adapters::mcp_client::{self, Fault, Listing, MAX_TOOLS, Server, Tool};
use entities::{
    Error,
    function::{McpTool, McpToolName},
    values::{Text, WebhookUrl},
    webhook_endpoint::Headers,
};
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use rules::{conversation::schema::Parameters, delivery::failure::Failure};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// For all that is asked of a server when its tools are listed, or a function is made of one.
const PATIENCE: Duration = Duration::from_secs(10);

/// Whom to ask.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct McpServer {
    /// The server's MCP endpoint (streamable HTTP): `https://` and a public address.
    pub url: WebhookUrl,
    /// Sent with every request, such as a bearer token; at most 16. They are not kept.
    #[serde(default)]
    pub headers: Headers,
}

#[derive(Serialize, JsonSchema)]
pub struct McpToolsView {
    /// At most 500.
    pub tools: Vec<McpToolView>,
    /// The server has more tools than are listed.
    pub has_more: bool,
}

/// A tool, as its server describes it.
#[derive(Serialize, JsonSchema)]
pub struct McpToolView {
    pub name: McpToolName,
    pub description: Option<String>,
    /// Its `inputSchema`. Whether it can be a function's `parameters` is told when a function is made of it.
    pub parameters: serde_json::Value,
}

/// POST /v1/functions/mcp_tools. It changes nothing, so it is never answered from what is kept under an `Idempotency-Key`.
pub async fn list(state: Data<State>, caller: Caller, Json(asked): Json<McpServer>) -> ApiResult<HttpResponse> {
    let listed = listed(&state, &caller, &asked).await;
    let listed = listed.map_err(|refused| match refused {
        ApiError::Service(error) => ApiError::Passing(error),
        refused => refused,
    })?;
    let mut answer = HttpResponse::Ok().json(listed);
    answer.extensions_mut().insert(NotKept);
    Ok(answer)
}

async fn listed(state: &State, caller: &Caller, asked: &McpServer) -> ApiResult<McpToolsView> {
    target::check_url(state, &asked.url)?;
    target::check_headers(&asked.headers)?;
    check_headers(&asked.headers)?;
    let listing = ask(state, caller, &asked.url, &asked.headers, None).await?;
    let view = |tool: Tool| McpToolView {
        name: tool.name,
        description: tool.description.as_deref().map(seen),
        parameters: tool.parameters,
    };
    Ok(McpToolsView {
        tools: listing.tools.into_iter().map(view).collect(),
        has_more: listing.has_more,
    })
}

/// A model reads it, and no person sees it: tags, blanks without width, and what turns the direction of writing.
fn is_hidden(letter: char) -> bool {
    matches!(
        letter,
        '\u{e0000}'..='\u{e007f}'
            | '\u{200b}'
            | '\u{200e}'..='\u{200f}'
            | '\u{202a}'..='\u{202e}'
            | '\u{2060}'..='\u{2069}'
    )
}

/// What a person sees of it.
fn seen(words: &str) -> String {
    words.chars().filter(|letter| !is_hidden(*letter)).collect()
}

/// What the server says of the tool that a function is to be.
pub async fn find(
    state: &State,
    caller: &Caller,
    url: &WebhookUrl,
    headers: &Headers,
    mcp: &McpTool,
) -> ApiResult<Tool> {
    let mut listing = ask(state, caller, url, headers, Some(&mcp.tool)).await?;
    listing.tools.pop().ok_or_else(|| {
        let why = if listing.has_more {
            format!("is not among the first {MAX_TOOLS} tools that the MCP server lists; write it as the server does")
        } else {
            "is not a tool of the MCP server; list its tools with POST /v1/functions/mcp_tools".into()
        };
        ApiError::validation("mcp.tool", why)
    })
}

/// The server's description, for a function that was given none.
pub fn description(tool: &Tool) -> ApiResult<Text<1, 2_000>> {
    let words = seen(tool.description.as_deref().unwrap_or_default());
    let is_plain = |letter: &char| !letter.is_control() || matches!(letter, '\n' | '\t');
    let words: String = words.chars().filter(is_plain).collect();
    if words.trim().is_empty() {
        let why = "is required: the MCP server does not describe this tool";
        return Err(ApiError::validation("description", why));
    }
    Text::parse(&words).map_err(|why| {
        let why = format!("the MCP server's own {why}; write a `description` of your own");
        ApiError::validation("description", why)
    })
}

/// The server's schema, for a function that was given none.
pub fn parameters(tool: Tool) -> ApiResult<serde_json::Value> {
    let text = tool.parameters.to_string();
    let hidden = text.chars().find(|letter| is_hidden(*letter));
    let why = match (Parameters::parse(&tool.parameters), hidden) {
        (Ok(_), _) if extract::has_nul(text.as_bytes()) => "texts must not contain NUL characters".to_owned(),
        (Ok(_), Some(letter)) => format!(
            "it holds characters that nobody sees and a model reads, such as U+{:04X}",
            u32::from(letter)
        ),
        (Ok(_), None) => return Ok(tool.parameters),
        (Err(why), _) => why,
    };
    let why = format!("the MCP server's `inputSchema` cannot be taken ({why}); write `parameters` of your own");
    Err(ApiError::validation("parameters", why))
}

/// Headers that the protocol sets.
pub fn check_headers(headers: &Headers) -> Result<(), Error> {
    let is_ours = |name: &&String| {
        let name = name.to_lowercase();
        name == "accept" || name == "last-event-id" || name.starts_with("mcp-")
    };
    match headers.0.keys().find(is_ours) {
        Some(name) => Err(Error::invalid(
            format!("headers.{name}"),
            "is set by the service itself",
        )),
        None => Ok(()),
    }
}

async fn ask(
    state: &State,
    caller: &Caller,
    url: &WebhookUrl,
    headers: &Headers,
    wanted: Option<&str>,
) -> ApiResult<Listing> {
    let url = url::Url::parse(url.as_str()).map_err(|error| Error::Internal(error.to_string()))?;
    let pairs = headers.0.iter();
    let headers: HeaderMap = pairs
        .filter_map(|(name, value)| Some((HeaderName::try_from(name).ok()?, HeaderValue::try_from(value).ok()?)))
        .collect();
    let server = Server {
        tenant: caller.tenant_id(),
        url: &url,
        headers: &headers,
    };
    // Not on another task: when the client leaves, the server is not asked any further.
    let _permit = state.bulkheads.outside(caller.tenant_id())?;
    state.deps.pass(caller.tenant_id()).await?;
    mcp_client::list(&state.deps.outbound, server, wanted, PATIENCE)
        .await
        .map_err(|fault| refused(&fault))
}

/// At which field it is to be mended, and how.
fn refused(fault: &Fault) -> ApiError {
    let (param, why) = match fault {
        Fault::Failed(Failure::BlockedTarget(why)) => ("url", why.clone()),
        Fault::Failed(Failure::Timeout) => {
            let seconds = PATIENCE.as_secs();
            let why = format!(
                "the MCP server did not answer within {seconds} seconds; see whether it runs, then repeat this"
            );
            ("url", why)
        }
        Fault::Failed(Failure::Dns(why) | Failure::Connect(why) | Failure::Tls(why) | Failure::BadAnswer(why)) => {
            ("url", format!("the MCP server could not be asked: {why}"))
        }
        Fault::Status(status @ (401 | 403)) => {
            let why = format!(
                "the MCP server answered {status}; give what it asks for, such as an `Authorization` header with a bearer token"
            );
            ("headers", why)
        }
        Fault::Status(300..=399) => (
            "url",
            format!("{fault}, and redirects are not followed; give the address that it leads to"),
        ),
        Fault::Status(_) | Fault::Protocol(_) => {
            let why =
                format!("{fault}; give the address of an MCP endpoint (streamable HTTP), which often ends in /mcp");
            ("url", why)
        }
        Fault::TooLarge(_) => (
            "url",
            "the MCP server says more than 1 MiB of its tools, or 512 KiB at once; let it list fewer".into(),
        ),
        Fault::Version | Fault::Refused { .. } | Fault::Tool(_) => ("url", fault.to_string()),
    };
    let error = Error::invalid(param, why);
    match fault {
        // It may be over when it is asked again.
        Fault::Failed(_) | Fault::Status(429 | 500..) => ApiError::Passing(error),
        Fault::Status(_)
        | Fault::Version
        | Fault::Protocol(_)
        | Fault::TooLarge(_)
        | Fault::Refused { .. }
        | Fault::Tool(_) => ApiError::Service(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_nobody_sees_is_left_out_and_scripts_keep_their_letters() {
        for (words, expected) in [
            ("Books a day.", "Books a day."),
            ("Books\u{e0041}\u{e007f} a\u{200b} day\u{2066}.\u{2069}", "Books a day."),
            ("\u{202e}day\u{202c}\u{2060}", "day"),
            // Persian and families need theirs.
            ("می\u{200c}روم", "می\u{200c}روم"),
            ("👩\u{200d}👧", "👩\u{200d}👧"),
        ] {
            assert_eq!(seen(words), expected);
        }
    }
}
