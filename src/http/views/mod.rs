//! What clients see of each kind of object.
mod access;
mod agents;
mod campaigns;
mod consents;
mod contacts;
mod erasures;
mod law;
mod law_check;
mod outlook;
mod sessions;
mod statistics;
mod trunks;
mod webhooks;

pub use access::*;
pub use agents::*;
pub use campaigns::*;
pub use consents::*;
pub use contacts::*;
pub use erasures::*;
pub use law::*;
pub use law_check::*;
pub use outlook::*;
pub use sessions::*;
pub use statistics::*;
pub use trunks::*;
pub use webhooks::*;

use entities::page::Listed;
use schemars::JsonSchema;
use serde::Serialize;

/// One page of a list.
#[derive(Serialize, JsonSchema)]
pub struct List<T> {
    pub data: Vec<T>,
    pub has_more: bool,
    /// Pass it as `cursor` to get the next page; null at the end.
    pub next_cursor: Option<String>,
}

impl<T> List<T> {
    /// A list that has one page.
    pub fn whole(data: Vec<T>) -> Self {
        List {
            data,
            has_more: false,
            next_cursor: None,
        }
    }

    pub fn of<M>(listed: Listed<M>, id: impl Fn(&M) -> uuid::Uuid, view: impl FnMut(M) -> T) -> Self {
        List {
            has_more: listed.has_more,
            next_cursor: next_cursor(&listed, id),
            data: listed.rows.into_iter().map(view).collect(),
        }
    }

    /// The same for views that are made already, one of each row and in their order.
    pub fn made<M>(listed: &Listed<M>, id: impl Fn(&M) -> uuid::Uuid, data: Vec<T>) -> Self {
        List {
            has_more: listed.has_more,
            next_cursor: next_cursor(listed, id),
            data,
        }
    }
}

fn next_cursor<M>(listed: &Listed<M>, id: impl Fn(&M) -> uuid::Uuid) -> Option<String> {
    let last = listed.rows.last().map(id).filter(|_| listed.has_more);
    last.map(super::extract::encode_cursor)
}

#[derive(Serialize, JsonSchema)]
pub struct ConcurrencyView {
    /// Concurrent calls, in this env.
    pub limit: i32,
    /// The most that `limit` can be set to.
    pub max_limit: i32,
    /// Of these, kept free for incoming calls.
    pub inbound_reserve: i32,
    pub in_use: u64,
    /// Free slots; incoming calls may take them all.
    pub available: u64,
    pub by_source: BySourceView,
    /// Calls started per second, at most.
    pub calls_per_second: f64,
}
#[derive(Serialize, JsonSchema)]
pub struct BySourceView {
    pub campaign: u64,
    pub api: u64,
    pub inbound: u64,
    pub room: u64,
}
