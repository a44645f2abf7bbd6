//! An event on its way into the store, and the bytes that it is stored as.
use entities::{
    ids::{EventId, TenantId},
    values::{Env, Moment},
};
use uuid::Uuid;

/// An event that is to be emitted; the writer gives it its id, its time and its place in the order.
#[derive(Clone, Debug)]
pub struct EventDraft {
    /// Given by those who must find the event again; else the writer gives one.
    pub id: Option<EventId>,
    pub tenant_id: TenantId,
    pub env: Env,
    pub event_type: &'static str,
    /// The session, campaign, … that it is about.
    pub subject_id: Uuid,
    /// The `data` object, serialised.
    pub data: String,
}

/// The stored envelope: the very bytes that are signed and sent.
pub fn envelope(id: EventId, draft: &EventDraft, created_at: Moment) -> String {
    let EventDraft {
        tenant_id,
        event_type,
        data,
        ..
    } = draft;
    format!(
        r#"{{"id":"{id}","type":"{event_type}","tenant_id":"{tenant_id}","created_at":"{created_at}","data":{data}}}"#
    )
}
