//! A campaign's report: all its contacts with their last call, as a CSV file that is made while it is sent.
use super::{
    caller::Caller,
    error::ApiResult,
    extract::{Id, Params},
};
use crate::state::State;
use actix_web::{HttpResponse, web::Data};
use actors::{csv_cell, deps::Deps, recording::studio};
use bytes::Bytes;
use entities::{
    Error, Result, campaign,
    contact::{self, Model as Contact},
    ids::{CampaignId, ContactId, SessionId, TenantScoped},
    recording,
    session::{self, Model as Session},
};
use futures_util::stream;
use rules::{contact::machine::state_of, session::machine::code};
use runtime::bulkhead::Permit;
use std::collections::HashMap;

const COLUMNS: [&str; 23] = [
    "contact_id",
    "external_id",
    "phone_number",
    "email",
    "first_name",
    "last_name",
    "timezone",
    "priority",
    "status",
    "skip_reason",
    "skip_rule",
    "attempts",
    "last_session_id",
    "last_session_status",
    "end_reason",
    "answered_by",
    "dialed_at",
    "started_at",
    "ended_at",
    "duration_seconds",
    "cost_cents",
    "disposition_code",
    "recording_url",
];

/// Contacts read at once.
const PAGE: u64 = 500;

/// GET /v1/campaigns/{id}/report.csv
pub async fn campaign(
    state: Data<State>,
    caller: Caller,
    Id(id): Id<CampaignId>,
    params: Params,
) -> ApiResult<HttpResponse> {
    params.finish()?;
    let key = caller.own(id);
    campaign::load(&state.deps.db.read, key).await?;
    let begin = Progress {
        _permit: state.bulkheads.report(key.tenant_id)?,
        deps: state.deps.clone(),
        key,
        after: None,
        header: true,
        ended: false,
    };
    let body = stream::unfold(begin, |progress| async move {
        if progress.ended {
            return None;
        }
        Some(match progress.next().await {
            Ok((chunk, progress)) => (Ok(chunk), progress),
            // The client sees the file break off.
            Err((error, progress)) => (Err(std::io::Error::other(error.to_string())), progress),
        })
    });
    Ok(HttpResponse::Ok()
        .content_type("text/csv; charset=utf-8")
        .insert_header((
            "Content-Disposition",
            format!("attachment; filename=\"campaign-{id}.csv\""),
        ))
        .streaming(body))
}

struct Progress {
    _permit: Permit,
    deps: Deps,
    key: TenantScoped<CampaignId>,
    after: Option<ContactId>,
    header: bool,
    ended: bool,
}

impl Progress {
    async fn next(self) -> Result<(Bytes, Self), (Error, Self)> {
        match self.page().await {
            Ok((chunk, last, ends)) => Ok((
                chunk,
                Progress {
                    after: last.or(self.after),
                    header: false,
                    ended: ends,
                    ..self
                },
            )),
            Err(error) => {
                tracing::warn!(%error, "a report broke off");
                Err((error, Progress { ended: true, ..self }))
            }
        }
    }

    async fn page(&self) -> Result<(Bytes, Option<ContactId>, bool)> {
        let db = &self.deps.db.reports;
        let contacts = contact::after(db, self.key.id, self.after, PAGE).await?;
        let ids: Vec<SessionId> = contacts.iter().filter_map(Contact::last_session_id).collect();
        let sessions = session::of_ids(db, &ids).await?;
        let sessions: HashMap<SessionId, Session> = sessions.into_iter().map(|row| (row.id, row)).collect();
        // A recording that is kept only until its purge is in no export.
        let linked = recording::linked(db, self.key.tenant_id, &ids).await?;
        let mut writer = csv_cell::writer();
        let written = self
            .header
            .then_some(COLUMNS.map(str::to_owned))
            .into_iter()
            .chain(contacts.iter().map(|contact| {
                let session = contact.last_session_id().and_then(|id| sessions.get(&id));
                let heard = session
                    .filter(|row| linked.contains(&row.id))
                    .and_then(|row| row.recording_id);
                let url = heard.map(|id| studio::url(&self.deps.base_url, id));
                line(contact, session, url)
            }))
            .try_for_each(|record| writer.write_record(record));
        let bytes = written
            .map_err(|error| error.to_string())
            .and_then(|()| writer.into_inner().map_err(|error| error.to_string()));
        let bytes = bytes.map_err(Error::Internal)?;
        let ends = (contacts.len() as u64) < PAGE;
        Ok((bytes.into(), contacts.last().map(|contact| contact.id), ends))
    }
}

fn line(contact: &Contact, session: Option<&Session>, recording_url: Option<String>) -> [String; 23] {
    let text = |text: &Option<String>| csv_cell::plain(text.as_deref().unwrap_or_default());
    let of_session = |value: fn(&Session) -> Option<String>| session.and_then(value).unwrap_or_default();
    [
        contact.id.to_string(),
        text(&contact.external_id),
        csv_cell::plain(&contact.phone_number),
        text(&contact.email),
        text(&contact.first_name),
        text(&contact.last_name),
        contact.timezone.map(|zone| zone.to_string()).unwrap_or_default(),
        contact.priority.to_string(),
        state_of(contact.status).to_owned(),
        contact.skip_reason.map(word).unwrap_or_default(),
        text(&contact.skip_rule),
        contact.attempts.to_string(),
        contact.last_session_id().map(|id| id.to_string()).unwrap_or_default(),
        of_session(|row| Some(word(row.status))),
        of_session(|row| row.end_reason.map(|reason| code(reason).to_owned())),
        of_session(|row| row.answered_by.map(word)),
        of_session(|row| row.dialed_at.map(|at| at.to_string())),
        of_session(|row| row.started_at.map(|at| at.to_string())),
        of_session(|row| row.ended_at.map(|at| at.to_string())),
        of_session(|row| Some(row.duration_seconds.to_string())),
        of_session(|row| Some(row.actual_cost_cents.0.to_string())),
        text(&contact.disposition_code),
        recording_url.unwrap_or_default(),
    ]
}

/// A value as the API writes it.
pub fn word(value: impl serde::Serialize) -> String {
    match serde_json::to_value(value) {
        Ok(serde_json::Value::String(word)) => word,
        Ok(_) | Err(_) => String::new(),
    }
}
