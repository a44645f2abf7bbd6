//! How much of a workspace may be under way at once in requests that take long. What is more is refused, never queued: a queue
//! would hold connections, and make those wait who ask for something quick.
use super::error::{ApiError, ApiResult, Code};
use entities::ids::TenantId;
use runtime::bulkhead::{Bulkhead, Full, Permit};

/// Requests that wait for somebody outside, whom the workspace may have chosen: each holds two connections, for minutes.
const OUTSIDE_OF_TENANT: usize = 5;
const OUTSIDE: usize = 200;
/// Preflights: each reads a whole list several times over.
const PREFLIGHTS: usize = 2;
/// Exports, and looks through a whole list.
const REPORTS_OF_TENANT: usize = 4;
const REPORTS: usize = 200;
/// Lists of which only some rows are wanted: each may look through the whole of one.
const SEARCHES_OF_TENANT: usize = 16;
const SEARCHES: usize = 400;
/// Recordings that are being heard: each holds a piece of one in memory.
const DOWNLOADS_OF_TENANT: usize = 20;
const DOWNLOADS: usize = 500;
/// Messages of assistants: each holds an answer of the API in memory, and what is made of it.
const TOOL_CALLS_OF_TENANT: usize = 16;
const TOOL_CALLS: usize = 200;
/// Answers to assistants that are much longer than most: each of up to 16 MiB.
const LONG_ANSWERS_OF_TENANT: usize = 2;
const LONG_ANSWERS: usize = 8;
/// Event streams: each holds a connection.
const STREAMS_OF_TENANT: usize = 50;
const STREAMS: usize = 1_000;

pub struct Bulkheads {
    outside: Bulkhead,
    preflights: Bulkhead,
    reports: Bulkhead,
    searches: Bulkhead,
    downloads: Bulkhead,
    tool_calls: Bulkhead,
    long_answers: Bulkhead,
    streams: Bulkhead,
}

impl Default for Bulkheads {
    fn default() -> Self {
        Bulkheads {
            outside: Bulkhead::new(OUTSIDE_OF_TENANT, OUTSIDE),
            preflights: Bulkhead::new(1, PREFLIGHTS),
            reports: Bulkhead::new(REPORTS_OF_TENANT, REPORTS),
            searches: Bulkhead::new(SEARCHES_OF_TENANT, SEARCHES),
            downloads: Bulkhead::new(DOWNLOADS_OF_TENANT, DOWNLOADS),
            tool_calls: Bulkhead::new(TOOL_CALLS_OF_TENANT, TOOL_CALLS),
            long_answers: Bulkhead::new(LONG_ANSWERS_OF_TENANT, LONG_ANSWERS),
            streams: Bulkhead::new(STREAMS_OF_TENANT, STREAMS),
        }
    }
}

impl Bulkheads {
    /// A request that is answered when somebody outside has answered.
    pub fn outside(&self, tenant: TenantId) -> ApiResult<Permit> {
        let what = "tests, dry runs, previews, MCP servers being asked and payment pages being opened";
        self.outside.enter(tenant).map_err(busy(what, OUTSIDE_OF_TENANT, 5))
    }

    pub fn preflight(&self, tenant: TenantId) -> ApiResult<Permit> {
        let refused = |full| {
            let message = match full {
                Full::Tenant => "another preflight of this workspace is running; try again when it has finished",
                Full::Service => "too many preflights are running; try again shortly",
            };
            ApiError::TooMany(Code::RateLimited, message.into(), 5)
        };
        self.preflights.enter(tenant).map_err(refused)
    }

    /// A whole list being read for one request.
    pub fn report(&self, tenant: TenantId) -> ApiResult<Permit> {
        let what = "exports and checks of whole lists";
        self.reports.enter(tenant).map_err(busy(what, REPORTS_OF_TENANT, 5))
    }

    /// A list of which only some rows are wanted.
    pub fn search(&self, tenant: TenantId) -> ApiResult<Permit> {
        let what = "filtered lists";
        self.searches.enter(tenant).map_err(busy(what, SEARCHES_OF_TENANT, 1))
    }

    pub fn download(&self, tenant: TenantId) -> ApiResult<Permit> {
        let what = "recordings being read";
        self.downloads.enter(tenant).map_err(busy(what, DOWNLOADS_OF_TENANT, 5))
    }

    /// A message of an assistant.
    pub fn tool_call(&self, tenant: TenantId) -> ApiResult<Permit> {
        let what = "messages to /mcp in progress";
        self.tool_calls
            .enter(tenant)
            .map_err(busy(what, TOOL_CALLS_OF_TENANT, 1))
    }

    /// A transcript or a timeline that is longer than most, being read for an assistant.
    pub fn long_answer(&self, tenant: TenantId) -> ApiResult<Permit> {
        let what = "long transcripts and timelines being read by assistants";
        self.long_answers
            .enter(tenant)
            .map_err(busy(what, LONG_ANSWERS_OF_TENANT, 1))
    }

    pub fn stream(&self, tenant: TenantId) -> ApiResult<Permit> {
        let what = "open streams";
        self.streams.enter(tenant).map_err(busy(what, STREAMS_OF_TENANT, 5))
    }
}

/// What is told when there is no room.
fn busy(what: &'static str, of_tenant: usize, seconds: u64) -> impl FnOnce(Full) -> ApiError {
    move |full| {
        let message = match full {
            Full::Tenant => {
                format!("a workspace can have at most {of_tenant} {what} at once; wait until one has finished")
            }
            Full::Service => format!("too many {what} at the moment; try again shortly"),
        };
        ApiError::TooMany(Code::RateLimited, message, seconds)
    }
}
