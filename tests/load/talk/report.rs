//! What a scenario of talks came to, in the words of the table in docs/PERFORMANCE.md.
use super::Scenario;
use crate::rooms::row;
use serde_json::Value;

/// Of one scenario, in milliseconds.
#[derive(Default)]
pub struct Measured {
    /// From the last loud 10 ms to the first packet with sound, turn by turn, as the people had it.
    pub turns: Vec<f64>,
    /// The same by the service, of each session: its `latency`, null where the binary does not tell.
    pub told: Vec<Value>,
    /// `detail` of its sessions' `turn_latency`, turn by turn.
    pub marks: Vec<String>,
}

/// As the service names them, in their order.
const STAGES: [&str; 6] = ["endpoint", "text", "token", "clause", "sound", "packet"];

impl Measured {
    pub fn print(&self, scenario: &Scenario) {
        println!("\n  {}: {}", scenario.name, scenario.what);
        row("turns answered", self.turns.len().to_string());
        let [p50, p95, max] = spread(self.turns.clone());
        row(
            "last loud 10 ms to packet, p50, p95, max",
            format!("{p50:.0}, {p95:.0}, {max:.0} ms"),
        );
        row("before; goal", format!("{}; {}", scenario.before, scenario.goal));
        let of = |field: &str| {
            self.told
                .iter()
                .filter_map(|told| told[field].as_f64())
                .collect::<Vec<_>>()
        };
        match of("turns").is_empty() {
            true => row("session.latency", "not told".into()),
            false => {
                let [p50, ..] = spread(of("p50_ms"));
                let [.., p95] = spread(of("p95_ms"));
                let turns: f64 = of("turns").iter().sum();
                row(
                    "session.latency, turns, p50, p95",
                    format!("{turns:.0}, {p50:.0}, {p95:.0} ms"),
                );
            }
        }
        let stages = STAGES.iter().filter_map(|stage| {
            let marks: Vec<f64> = self.marks.iter().filter_map(|marks| mark(marks, stage)).collect();
            let is_known = !marks.is_empty();
            let [p50, ..] = spread(marks);
            is_known.then(|| format!("{stage} {p50:.0}"))
        });
        row("… its stages, p50", stages.collect::<Vec<_>>().join(", "));
        let after = self.marks.iter();
        let after = after.filter_map(|marks| Some(mark(marks, "packet")? - mark(marks, "endpoint")?));
        let [p50, p95, max] = spread(after.collect());
        row(
            "… endpoint to packet, p50, p95, max",
            format!("{p50:.0}, {p95:.0}, {max:.0} ms"),
        );
    }
}

/// `endpoint 592 ms, text 740 ms`: the number behind that name.
fn mark(marks: &str, stage: &str) -> Option<f64> {
    let mut all = marks.split(", ").filter_map(|mark| mark.split_once(' '));
    let (_, ms) = all.find(|(name, _)| *name == stage)?;
    ms.trim_end_matches(" ms").parse().ok()
}

/// The nearest rank of 50 and 95 percent, and the most; 0 of nothing.
fn spread(mut all: Vec<f64>) -> [f64; 3] {
    all.sort_by(f64::total_cmp);
    [50, 95, 100].map(|percent| {
        let rank = (all.len() * percent).div_ceil(100).max(1);
        all.get(rank - 1).copied().unwrap_or(0.0)
    })
}
