//! Rows for spreadsheets: what people look for in columns of its own, and the whole as it was hashed.
use crate::csv_cell;
use entities::{
    Error, Result,
    attempt::{Model as Record, RecordKind},
};
use serde_json::Value;

const COLUMNS: [&str; 27] = [
    "n",
    "at",
    "kind",
    "attempt_id",
    "dial_n",
    "campaign_id",
    "phone_number",
    "email",
    "first_name",
    "last_name",
    "channel",
    "purpose",
    "audience",
    "places",
    "seller",
    "subject",
    "from_number",
    "law",
    "not_allowed",
    "status",
    "reason",
    "duration_seconds",
    "body",
    "content",
    "content_sha256",
    "prev_hash",
    "hash",
];

pub(super) fn header() -> Result<Vec<u8>> {
    written(COLUMNS.map(str::to_owned))
}

pub(super) fn line(row: &Record) -> Result<Vec<u8>> {
    let read = |text: &str| serde_json::from_str::<Value>(text).unwrap_or_default();
    let (body, content) = (read(&row.body), row.content.as_deref().map(read).unwrap_or_default());
    let of = |value: &Value, path: &str| value.pointer(path).map(text).unwrap_or_default();
    let plain = |value: &Value, path: &str| csv_cell::plain(&of(value, path));
    let own = |path: &str| match row.kind {
        RecordKind::Attempt => plain(&body, path),
        RecordKind::Outcome
        | RecordKind::Disposition
        | RecordKind::OptOut
        | RecordKind::Lifted
        | RecordKind::Revocation
        | RecordKind::Erasure => String::new(),
    };
    written([
        row.n.to_string(),
        row.at.to_string(),
        row.kind.as_str().to_owned(),
        row.attempt_id.to_string(),
        row.dial_n.to_string(),
        row.campaign_id.map(|id| id.to_string()).unwrap_or_default(),
        plain(&content, "/phone_number"),
        plain(&content, "/email"),
        plain(&content, "/first_name"),
        plain(&content, "/last_name"),
        own("/facts/channel"),
        own("/facts/purpose"),
        own("/facts/audience"),
        own("/facts/places"),
        own("/facts/seller"),
        own("/facts/subject"),
        own("/facts/caller/number"),
        own("/law"),
        csv_cell::plain(&noes(&body)),
        plain(&body, "/status"),
        plain(&body, "/reason"),
        of(&body, "/duration_seconds"),
        csv_cell::plain(&row.body),
        csv_cell::plain(row.content.as_deref().unwrap_or_default()),
        row.content_sha256.clone().unwrap_or_default(),
        row.prev_hash.clone(),
        row.hash.clone(),
    ])
}

/// Rules that did not say yes, as they are written.
fn noes(body: &Value) -> String {
    let asked = body.get("asked").and_then(Value::as_array);
    let asked = asked.into_iter().flatten().filter_map(Value::as_str);
    // `kind:rule` alone is a yes.
    let noes: Vec<&str> = asked.filter(|asked| asked.matches(':').count() > 1).collect();
    noes.join(" ")
}

fn text(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        Value::Array(values) => values.iter().map(text).collect::<Vec<_>>().join(" "),
        Value::Bool(_) | Value::Number(_) | Value::Object(_) => value.to_string(),
    }
}

fn written(record: [String; 27]) -> Result<Vec<u8>> {
    let mut writer = csv_cell::writer();
    let broken = |error: String| Error::Internal(error);
    writer.write_record(record).map_err(|error| broken(error.to_string()))?;
    writer.into_inner().map_err(|error| broken(error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use entities::{
        ids::{AttemptId, TenantId},
        values::{Env, Moment},
    };
    use uuid::Uuid;

    #[test]
    fn a_row_has_a_cell_for_each_column_and_none_is_a_formula() {
        let row = Record {
            tenant_id: TenantId(Uuid::nil()),
            env: Env::Live,
            n: 7,
            kind: RecordKind::Attempt,
            attempt_id: AttemptId(Uuid::nil()),
            dial_n: 1,
            campaign_id: None,
            number_hash: Some("aa".into()),
            email_hash: None,
            consent_id: None,
            at: Moment::from_millis(0),
            body: r#"{"law":"2026-11-30","facts":{"channel":"phone","places":["US","US-FL"],"subject":"=1+1"},"asked":["hours:us.hours","caps:us.cap:wait"]}"#.into(),
            content: Some(r#"{"phone_number":"+12025550123","first_name":"-Ann"}"#.into()),
            content_sha256: Some("bb".into()),
            prev_hash: "cc".into(),
            hash: "dd".into(),
        };
        let bytes = [header().unwrap(), line(&row).unwrap()].concat();
        let mut reader = csv::Reader::from_reader(bytes.as_slice());
        let names = reader.headers().unwrap().clone();
        let cells = reader.records().next().unwrap().unwrap();
        let cell = |name: &str| {
            cells
                .get(names.iter().position(|known| known == name).unwrap())
                .unwrap()
                .to_owned()
        };
        for (name, expected) in [
            ("n", "7"),
            ("kind", "attempt"),
            ("phone_number", "+12025550123"),
            ("first_name", "'-Ann"),
            ("channel", "phone"),
            ("places", "US US-FL"),
            ("subject", "'=1+1"),
            ("not_allowed", "caps:us.cap:wait"),
            ("hash", "dd"),
        ] {
            assert_eq!(cell(name), expected, "{name}");
        }
        assert!(cell("body").contains("2026-11-30"));
    }
}
