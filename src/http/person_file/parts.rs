//! Consents, opt-outs, contacts, calls and messages of one person.
use super::{FilePart, MOST, Making, there};
use crate::http::{
    consents,
    dnc::DncView,
    error::ApiResult,
    report::word,
    views::{ConsentRecordView, ContactView},
};
use entities::{
    consent,
    contact::{self, By},
    dnc::{self, DncChannel},
    email_message,
    ids::{RecordingId, SessionId},
    page::Page,
    session::{self, Direction, Status},
    sms_message,
    transcript::{self, Turn},
    values::{E164, Moment, Scope},
};
use rules::barred::Whom;
use schemars::JsonSchema;
use serde::Serialize;
use uuid::Uuid;

/// A call, or a talk in a room.
#[derive(Serialize, JsonSchema)]
pub struct FileCallView {
    pub id: SessionId,
    pub at: Moment,
    pub direction: Direction,
    pub from_number: Option<E164>,
    pub to_number: Option<E164>,
    pub status: Status,
    /// Why it ended.
    pub end_reason: Option<String>,
    pub started_at: Option<Moment>,
    pub duration_seconds: i32,
    pub first_name: Option<String>,
    pub last_name: Option<String>,
    pub disposition_code: Option<String>,
    pub recording_id: Option<RecordingId>,
    /// Where what was said is read.
    pub transcript_url: String,
    /// What was said; null: it is not in the file.
    pub turns: Option<Vec<Turn>>,
}

/// An SMS or an e-mail.
#[derive(Serialize, JsonSchema)]
pub struct FileMessageView {
    pub id: Uuid,
    pub channel: DncChannel,
    /// Null: the service's own.
    pub from: Option<String>,
    pub to: String,
    pub status: String,
    pub at: Moment,
    pub sent_at: Option<Moment>,
    /// Null: it is not in the file.
    pub subject: Option<String>,
    pub text: Option<String>,
}

fn first_page() -> Page {
    Page {
        limit: 100,
        newest_first: false,
        ..Page::default()
    }
}

/// Reads a list page by page, as far as it goes into the file: `$row` of each becomes what `$view` makes of it.
macro_rules! pages {
    ($making:ident, $part:expr, $read:expr, |$row:ident| $view:expr) => {{
        let (mut page, mut all) = (first_page(), Vec::new());
        'pages: loop {
            let listed = $read(page).await?;
            page.after = listed.rows.last().map(|last| last.id.0);
            for $row in listed.rows {
                if all.len() == MOST {
                    $making.cut($part);
                    break 'pages;
                }
                all.push($view);
            }
            if !listed.has_more {
                break;
            }
        }
        all
    }};
}

impl Making<'_> {
    pub(super) async fn consents(&mut self) -> ApiResult<Vec<ConsentRecordView>> {
        let (phone_number, email) = self.numbers();
        let filter = consent::Filter {
            phone_number,
            email,
            ..consent::Filter::default()
        };
        let (deps, owner) = (&self.state.deps, self.caller.owner());
        let read = |page| consent::list(&deps.db, owner, filter.clone(), page);
        let rows = pages!(self, FilePart::Consents, read, |row| row);
        let mut all = Vec::with_capacity(rows.len());
        for row in rows {
            let mut one = consents::whole(self.state, row).await?;
            one.request_copy = one.request_copy.and_then(|text| self.words(text, FilePart::Consents));
            one.consent_copy = one.consent_copy.and_then(|text| self.words(text, FilePart::Consents));
            all.push(one);
        }
        Ok(all)
    }

    pub(super) async fn opt_outs(&mut self) -> ApiResult<Vec<DncView>> {
        let (phone_number, email) = self.numbers();
        let (deps, owner) = (&self.state.deps, self.caller.owner());
        let mut all = Vec::new();
        for removed in [true, false] {
            let filter = dnc::Filter {
                phone_number: phone_number.clone(),
                email: email.clone(),
                removed,
                ..dnc::Filter::default()
            };
            let read = |page| dnc::list(&deps.db, owner, filter.clone(), page);
            all.extend(pages!(self, FilePart::OptOuts, read, |row| DncView::from(row)));
        }
        Ok(all)
    }

    pub(super) async fn contacts(&mut self) -> ApiResult<Vec<ContactView>> {
        let by = match self.whom {
            Whom::Number(number) => By::Number(number.as_str().to_owned()),
            Whom::Email(email) => By::Email(vec![email.clone()]),
        };
        let (tenant, env) = self.caller.owner();
        let found = contact::find(&self.state.deps.db, tenant, env, &by, MOST as u64).await?;
        if found.has_more {
            self.cut(FilePart::Contacts);
        }
        Ok(found.rows.into_iter().map(ContactView::from).collect())
    }

    pub(super) async fn calls(&mut self) -> ApiResult<Vec<FileCallView>> {
        let (phone_number, email) = self.numbers();
        let filter = session::Filter {
            phone_number,
            email: email.into_iter().collect(),
            ..session::Filter::default()
        };
        let (deps, (tenant, env)) = (&self.state.deps, self.caller.owner());
        let may_read = self.may(Scope::SessionsRead, FilePart::Transcripts);
        let read = |page| session::list(&deps.db, tenant, env, &filter, page);
        let rows = pages!(self, FilePart::Calls, read, |row| row);
        let mut calls = Vec::with_capacity(rows.len());
        for row in rows {
            let turns = match may_read && row.phase == session::Phase::Ended {
                true => self.turns(row.id).await?,
                false => None,
            };
            calls.push(FileCallView {
                id: row.id,
                at: row.created_at,
                direction: row.direction,
                from_number: row.from_number,
                to_number: row.to_number,
                status: row.status,
                end_reason: row.end_reason.map(word),
                started_at: row.started_at,
                duration_seconds: row.duration_seconds,
                first_name: row.first_name,
                last_name: row.last_name,
                disposition_code: row.disposition_code,
                recording_id: row.recording_id,
                transcript_url: format!("{}/v1/sessions/{}/transcript.json", deps.base_url, row.id),
                turns,
            });
        }
        Ok(calls)
    }

    async fn turns(&mut self, session: SessionId) -> ApiResult<Option<Vec<Turn>>> {
        let said = transcript::load(&self.state.deps.db.reports, session).await?;
        let bytes: usize = said
            .turns
            .0
            .iter()
            .filter_map(|turn| Some(turn.content.as_ref()?.len()))
            .sum();
        match self.room.checked_sub(bytes) {
            Some(left) => {
                self.room = left;
                Ok(Some(said.turns.0))
            }
            None => {
                self.cut(FilePart::Transcripts);
                Ok(None)
            }
        }
    }

    pub(super) async fn messages(&mut self) -> ApiResult<Vec<FileMessageView>> {
        match self.whom {
            Whom::Number(number) => self.texts(number.clone()).await,
            Whom::Email(email) => self.mails(email.clone()).await,
        }
    }

    async fn texts(&mut self, number: E164) -> ApiResult<Vec<FileMessageView>> {
        use sms_message::Direction::{Inbound, Outbound};
        let (deps, owner) = (&self.state.deps, self.caller.owner());
        let may_read = self.may(Scope::SmsSend, FilePart::Sms);
        let mut all = Vec::new();
        for direction in [Outbound, Inbound] {
            let is_sent = direction == Outbound;
            let filter = sms_message::Filter {
                direction: Some(direction),
                to_number: Some(number.clone()).filter(|_| is_sent),
                from_number: Some(number.clone()).filter(|_| !is_sent),
                ..sms_message::Filter::default()
            };
            let read = |page| sms_message::list(&deps.db, owner, filter.clone(), page);
            let rows = pages!(self, FilePart::Sms, read, |row| row);
            for row in rows {
                let text = match may_read {
                    true => self.words(row.body, FilePart::Sms),
                    false => None,
                };
                all.push(FileMessageView {
                    id: row.id.0,
                    channel: DncChannel::Sms,
                    from: row.from_number.map(|number| number.to_string()),
                    to: row.to_number.to_string(),
                    status: word(row.phase.status()),
                    at: row.created_at,
                    sent_at: row.sent_at,
                    subject: None,
                    text,
                });
            }
        }
        all.sort_by_key(|message| message.id);
        Ok(all)
    }

    async fn mails(&mut self, to: String) -> ApiResult<Vec<FileMessageView>> {
        let filter = email_message::Filter {
            to: Some(to),
            ..email_message::Filter::default()
        };
        let (deps, owner) = (&self.state.deps, self.caller.owner());
        let may_read = self.may(Scope::EmailSend, FilePart::Emails);
        let read = |page| email_message::list(&deps.db, owner, filter.clone(), page);
        let rows = pages!(self, FilePart::Emails, read, |row| row);
        let mut all = Vec::with_capacity(rows.len());
        for row in rows {
            let content = match may_read {
                true => there(email_message::content::load(&deps.db.reports, row.key()).await)?,
                false => None,
            };
            let text = content.and_then(|content| content.text.or(content.html));
            let text = text.and_then(|text| self.words(text, FilePart::Emails));
            all.push(FileMessageView {
                id: row.id.0,
                channel: DncChannel::Email,
                from: row.from_name,
                to: row.to_address,
                status: word(row.phase.status()),
                at: row.created_at,
                sent_at: row.sent_at,
                subject: Some(row.subject).filter(|_| may_read),
                text,
            });
        }
        Ok(all)
    }

    /// The number, or the address.
    fn numbers(&self) -> (Option<E164>, Option<String>) {
        match self.whom {
            Whom::Number(number) => (Some(number.clone()), None),
            Whom::Email(email) => (None, Some(email.clone())),
        }
    }
}
