//! The record of attempts, as one person's file tells it.
use super::{FilePart, MOST_ATTEMPTS, Making};
use crate::http::error::ApiResult;
use entities::{
    attempt::{self, Model, RecordKind},
    dnc::DncChannel,
    ids::{AttemptId, CampaignId, ConsentId},
    law::{Audience, Purpose},
    session::WhyAbandoned,
    values::{E164, Moment},
};
use rules::law::{
    Asked, Law,
    record::{AttemptBody, OutcomeBody},
};
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::{BTreeSet, HashMap};

/// One try to reach the person.
#[derive(Serialize, JsonSchema)]
pub struct FileAttemptView {
    /// The id of the call or of the message.
    pub attempt_id: AttemptId,
    pub at: Moment,
    pub channel: DncChannel,
    pub purpose: Purpose,
    pub audience: Audience,
    pub seller: Option<String>,
    pub subject: Option<String>,
    /// The number that was shown.
    pub from_number: Option<E164>,
    pub campaign_id: Option<CampaignId>,
    /// The consent that it rested on.
    pub consent_id: Option<ConsentId>,
    /// The version of the law pack that was in force.
    pub pack_version: String,
    /// The verdicts barred nothing: an attempt of the sandbox.
    pub observed: bool,
    /// Each rule that was asked, with what it said: `rules` of the file tells more of them.
    pub asked: Vec<Asked>,
    /// What came of it; null: that is not known yet.
    pub outcome: Option<FileOutcomeView>,
    /// Of its row, by which the record is proved.
    pub hash: String,
}

/// What came of a try.
#[derive(Clone, Serialize, JsonSchema)]
pub struct FileOutcomeView {
    pub status: String,
    pub reason: Option<String>,
    pub started_at: Option<Moment>,
    pub ended_at: Option<Moment>,
    pub duration_seconds: i32,
    /// Answered, and left without anybody who spoke.
    pub abandoned: Option<WhyAbandoned>,
    pub recorded: bool,
    pub opted_out_at: Option<Moment>,
}

/// A rule that is named in the file.
#[derive(Serialize, JsonSchema)]
pub struct FileRuleView {
    pub rule: String,
    pub title: String,
    pub source: String,
}

/// Rows that are read at once.
const AT_ONCE: u64 = 500;

impl Making<'_> {
    pub(super) async fn attempts(&mut self, hash: String) -> ApiResult<Vec<FileAttemptView>> {
        let (db, owner) = (&self.state.deps.db.reports, self.caller.owner());
        let (hashes, mut after, mut all) = ([hash], 0, Vec::new());
        loop {
            let rows = attempt::of_person(db, owner, &hashes, after, AT_ONCE).await?;
            let Some(last) = rows.last() else { return Ok(all) };
            after = last.n;
            let openings: Vec<Model> = rows.into_iter().filter(|row| row.kind == RecordKind::Attempt).collect();
            let ids: Vec<AttemptId> = openings.iter().map(|row| row.attempt_id).collect();
            let outcomes = outcomes(attempt::of_attempts(db, owner, &ids).await?);
            for row in openings {
                if all.len() == MOST_ATTEMPTS {
                    self.cut(FilePart::Attempts);
                    return Ok(all);
                }
                let outcome = outcomes.get(&row.attempt_id).cloned();
                all.extend(view(row, outcome));
            }
        }
    }
}

/// The last of each attempt.
fn outcomes(rows: Vec<Model>) -> HashMap<AttemptId, FileOutcomeView> {
    let mut found = HashMap::new();
    for row in rows {
        if row.kind != RecordKind::Outcome {
            continue;
        }
        match serde_json::from_str::<OutcomeBody>(&row.body) {
            Ok(body) => drop(found.insert(row.attempt_id, body.into())),
            Err(error) => tracing::error!(%error, n = row.n, "a row of the record of attempts cannot be read"),
        }
    }
    found
}

impl From<OutcomeBody> for FileOutcomeView {
    fn from(body: OutcomeBody) -> Self {
        FileOutcomeView {
            status: body.status,
            reason: body.reason,
            started_at: body.started_at,
            ended_at: body.ended_at,
            duration_seconds: body.duration_seconds,
            abandoned: body.abandoned,
            recorded: body.recorded,
            opted_out_at: body.opted_out_at,
        }
    }
}

/// `None`: nobody can read it any more, which the log tells.
fn view(row: Model, outcome: Option<FileOutcomeView>) -> Option<FileAttemptView> {
    let body = match serde_json::from_str::<AttemptBody>(&row.body) {
        Ok(body) => body,
        Err(error) => {
            tracing::error!(%error, n = row.n, "a row of the record of attempts cannot be read");
            return None;
        }
    };
    Some(FileAttemptView {
        attempt_id: row.attempt_id,
        at: body.facts.at,
        channel: body.facts.channel,
        purpose: body.facts.purpose,
        audience: body.facts.audience,
        seller: body.facts.seller,
        subject: body.facts.subject,
        from_number: body.facts.caller.map(|caller| caller.number),
        campaign_id: row.campaign_id,
        consent_id: body.facts.consent.map(|consent| consent.id),
        pack_version: body.law,
        observed: body.observed,
        asked: body.asked,
        outcome,
        hash: row.hash,
    })
}

/// The rules that these attempts name, by the pack of today.
pub(super) fn rules(law: &Law, attempts: &[FileAttemptView]) -> Vec<FileRuleView> {
    let asked = attempts.iter().flat_map(|attempt| &attempt.asked);
    let named: BTreeSet<&str> = asked.map(|asked| &*asked.rule).collect();
    let view = |id: &str| {
        let rule = law.rule(id);
        FileRuleView {
            rule: id.to_owned(),
            title: rule.map_or_else(|| id.to_owned(), |rule| rule.title.clone()),
            source: rule.map(|rule| rule.source.clone()).unwrap_or_default(),
        }
    };
    named.into_iter().map(view).collect()
}
