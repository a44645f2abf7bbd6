//! The file for one person, for a complaint or a request of access: all that is kept, with its proof. Words go in only for those who may
//! read them anyway; what is more than fits is left out, and the file says so.
mod attempts;
mod page;
mod parts;

pub use attempts::{FileAttemptView, FileOutcomeView, FileRuleView};
pub use page::page;
pub use parts::{FileCallView, FileMessageView};

use super::{
    caller::Caller,
    dnc::DncView,
    error::ApiResult,
    views::{ConsentRecordView, ContactView},
};
use crate::state::State;
use actors::{compliance, erasure};
use entities::{
    Error, legal_identity, tenant,
    values::{E164, Env, Moment, Scope},
};
use rules::barred::Whom;
use schemars::JsonSchema;
use serde::Serialize;

/// How a file is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    Json,
    Html,
}

/// Attempts in one file. Source: this service's limits.
pub const MOST_ATTEMPTS: usize = 10_000;
/// Calls, contacts, consents, and messages of each kind.
pub const MOST: usize = 1_000;
/// Bytes of what was said and written.
pub const MOST_WORDS: usize = 8 * 1024 * 1024;

/// All that is kept about one person in this environment.
#[derive(Serialize, JsonSchema)]
pub struct PersonFileView {
    pub phone_number: Option<E164>,
    pub email: Option<String>,
    pub env: Env,
    pub made_at: Moment,
    /// Who keeps it.
    pub workspace: String,
    pub registered_name: Option<String>,
    /// Each try to reach the person, oldest first.
    pub attempts: Vec<FileAttemptView>,
    /// The rules that are named in them.
    pub rules: Vec<FileRuleView>,
    /// Each with what was asked and agreed, and what was taken back.
    pub consents: Vec<ConsentRecordView>,
    /// Entries of the do-not-call list, those that were taken off it too.
    pub opt_outs: Vec<DncView>,
    pub contacts: Vec<ContactView>,
    pub calls: Vec<FileCallView>,
    pub messages: Vec<FileMessageView>,
    /// Of these there is more than the file holds.
    pub cut: Vec<FilePart>,
    /// These are without their words: the key lacks `sessions:read`, `sms:send` or `email:send`.
    pub without_words: Vec<FilePart>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(description = "A part of the file for one person.")]
pub enum FilePart {
    Attempts,
    Consents,
    OptOuts,
    Contacts,
    Calls,
    /// What was said in calls.
    Transcripts,
    Sms,
    Emails,
}

/// A file that is being made.
struct Making<'a> {
    state: &'a State,
    caller: &'a Caller,
    whom: &'a Whom,
    /// Bytes of words that there is room for yet.
    room: usize,
    cut: Vec<FilePart>,
    without_words: Vec<FilePart>,
}

pub async fn of(state: &State, caller: &Caller, whom: &Whom) -> ApiResult<PersonFileView> {
    let db = &state.deps.db.read;
    let tenant = tenant::load(db, caller.tenant_id()).await?;
    let identity = legal_identity::of(db, caller.tenant_id()).await?;
    let mut making = Making {
        state,
        caller,
        whom,
        room: MOST_WORDS,
        cut: Vec::new(),
        without_words: Vec::new(),
    };
    let hash = erasure::hash(&state.deps, caller.tenant_id(), whom);
    let attempts = making.attempts(hash).await?;
    let rules = attempts::rules(compliance::law(&state.deps), &attempts);
    let consents = making.consents().await?;
    let opt_outs = making.opt_outs().await?;
    let contacts = making.contacts().await?;
    let calls = making.calls().await?;
    let messages = making.messages().await?;
    let (phone_number, email) = match whom {
        Whom::Number(number) => (Some(number.clone()), None),
        Whom::Email(email) => (None, Some(email.clone())),
    };
    Ok(PersonFileView {
        phone_number,
        email,
        env: caller.env(),
        made_at: state.deps.clock.now(),
        workspace: tenant.name,
        registered_name: identity.and_then(|identity| identity.registered_name),
        attempts,
        rules,
        consents,
        opt_outs,
        contacts,
        calls,
        messages,
        cut: making.cut,
        without_words: making.without_words,
    })
}

impl Making<'_> {
    /// A member reads all; a key what its scopes say.
    fn may(&mut self, scope: Scope, part: FilePart) -> bool {
        let may = self.caller.key().is_none_or(|key| key.scopes.contains(scope));
        if !may {
            self.without_words.push(part);
        }
        may
    }

    /// There is more than that.
    fn cut(&mut self, part: FilePart) {
        if !self.cut.contains(&part) {
            self.cut.push(part);
        }
    }

    /// Words, if there is room for them.
    fn words(&mut self, text: String, part: FilePart) -> Option<String> {
        match self.room.checked_sub(text.len()) {
            Some(left) => {
                self.room = left;
                Some(text)
            }
            None => {
                self.cut(part);
                None
            }
        }
    }
}

/// What is gone meanwhile is not in it.
fn there<T>(found: Result<T, Error>) -> Result<Option<T>, Error> {
    match found {
        Ok(found) => Ok(Some(found)),
        Err(Error::NotFound(_)) => Ok(None),
        Err(error) => Err(error),
    }
}
