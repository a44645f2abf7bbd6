//! Tools of other people's MCP servers: listed for whoever configures a function, and called for an agent.
//!
//! Every look and every call is an exchange of its own, from `initialize` to the end of the session: nothing is kept between two
//! of them, so any node can make the next one. All of it goes through the one guarded client.
mod answer;
mod exchange;
mod fault;
mod listing;
mod result;
mod rpc;

pub use exchange::Server;
pub use fault::Fault;
pub use listing::{Listing, MAX_TOOLS, Tool};

use crate::outbound::Outbound;
use entities::boxed;
use exchange::Exchange;
use serde_json::{Value, json};
use std::time::{Duration, Instant};

/// Bytes of all that a server says in answer to a call, beside what an agent may be told of it: texts come escaped, and once more as
/// JSON, pictures lie beside them, and progress is told before them.
const CALL_OVERHEAD: usize = 1024 * 1024;

/// What came of a call.
#[derive(Debug)]
pub struct Called {
    /// The tool's answer: JSON, or a text.
    pub outcome: Result<Value, Fault>,
    /// The HTTP status of the last answer; 0 when none came.
    pub http_status: u16,
    pub took: Duration,
}

/// The server's tools, or only the one of that name. `timeout`: for all of it.
#[boxed]
pub async fn list<'a>(
    outbound: &'a Outbound,
    server: Server<'a>,
    wanted: Option<&'a str>,
    timeout: Duration,
) -> Result<Listing, Fault> {
    let mut exchange = Exchange::with(outbound, server, timeout);
    exchange.open().await?;
    listing::list(&mut exchange, wanted).await
}

/// Calls a tool once. `timeout`: for all of it, `limit`: bytes of what an agent is told of its answer.
#[boxed]
pub async fn call<'a>(
    outbound: &'a Outbound,
    server: Server<'a>,
    tool: &'a str,
    arguments: &'a Value,
    timeout: Duration,
    limit: usize,
) -> Called {
    let started = Instant::now();
    let mut exchange = Exchange::with(outbound, server, timeout);
    let outcome = answer_of(&mut exchange, server, tool, arguments, limit).await;
    Called {
        outcome,
        http_status: exchange.status,
        took: started.elapsed(),
    }
}

async fn answer_of(
    exchange: &mut Exchange<'_>,
    server: Server<'_>,
    tool: &str,
    arguments: &Value,
    limit: usize,
) -> Result<Value, Fault> {
    exchange.open().await?;
    let params = json!({ "name": tool, "arguments": arguments });
    let answer = exchange.ask("tools/call", &params, limit + CALL_OVERHEAD).await?;
    result::output(&answer, limit, server.headers)
}
