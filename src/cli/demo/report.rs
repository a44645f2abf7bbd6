//! The closing table.
use super::receiver::Receiver;
use serde::Serialize;
use serde_json::Value;
use std::{collections::BTreeMap, fmt::Write};

#[derive(Serialize)]
pub struct Report {
    pub rows_accepted: u64,
    pub duplicates_merged: u64,
    pub contacts: u64,
    pub contacts_by_outcome: BTreeMap<String, u64>,
    pub events_by_type: BTreeMap<String, u64>,
    pub deliveries: u64,
    pub repeated_deliveries: u64,
    pub latency_p50_ms: i64,
    pub latency_p99_ms: i64,
    pub failures_of_verification: u64,
}

impl Report {
    pub fn of(receiver: &Receiver, stats: &Value, merged: &Value) -> Self {
        let mut seen = receiver.seen();
        seen.latencies_ms.sort_unstable();
        let percentile = |percent: usize| {
            let last = seen.latencies_ms.len().saturating_sub(1);
            seen.latencies_ms.get(last * percent / 100).copied().unwrap_or(0)
        };
        Report {
            rows_accepted: merged["accepted"].as_u64().unwrap_or(0),
            duplicates_merged: merged["duplicates"].as_u64().unwrap_or(0),
            contacts: stats["counts"]["total"].as_u64().unwrap_or(0),
            latency_p50_ms: percentile(50),
            latency_p99_ms: percentile(99),
            contacts_by_outcome: seen.outcomes(),
            events_by_type: seen.by_type,
            deliveries: seen.deliveries,
            repeated_deliveries: seen.repeats,
            failures_of_verification: seen.not_verified,
        }
    }

    /// Every contact came to an end that the receiver knows of, and every signature was ours.
    pub fn is_good(&self) -> bool {
        self.failures_of_verification == 0 && self.contacts_by_outcome.values().sum::<u64>() == self.contacts
    }

    pub fn table(&self) -> String {
        let mut text = String::from(super::clear_line());
        let mut section = |title: &str, rows: &BTreeMap<String, u64>| {
            // Writing to a String cannot fail.
            let _ = writeln!(text, "{title}");
            for (name, count) in rows {
                let _ = writeln!(text, "  {name:<32}{count:>7}");
            }
            let _ = writeln!(text, "  {:<32}{:>7}\n", "total", rows.values().sum::<u64>());
        };
        section("Contacts by outcome", &self.contacts_by_outcome);
        section("Events by type", &self.events_by_type);
        let _ = writeln!(text, "Deliveries");
        let _ = writeln!(text, "  {:<32}{:>7}", "received", self.deliveries);
        let _ = writeln!(text, "  {:<32}{:>7}", "of these, repeats", self.repeated_deliveries);
        let _ = writeln!(text, "  {:<32}{:>4} ms", "commit to receipt, p50", self.latency_p50_ms);
        let _ = writeln!(text, "  {:<32}{:>4} ms", "commit to receipt, p99", self.latency_p99_ms);
        let _ = write!(
            text,
            "  {:<32}{:>7}",
            "failures of verification", self.failures_of_verification
        );
        text
    }
}
