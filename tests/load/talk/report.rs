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
    /// From the last loud 10 ms to the first that is heard, as a page in Chromium has both; and what the service says of these turns.
    pub heard: Vec<f64>,
    pub heard_marks: Vec<String>,
    /// The first again, beside the rooms of another workspace.
    pub beside: Vec<f64>,
}

/// What the others' rooms may cost, in milliseconds at the 95th percentile.
const MOST_LATER: f64 = 100.0;

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
        self.print_heard();
        if !self.beside.is_empty() {
            let [p50, p95, max] = spread(self.beside.clone());
            row(
                "… beside another workspace's rooms",
                format!("p50 {p50:.0}, p95 {p95:.0}, max {max:.0} ms"),
            );
        }
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

    /// Beside another workspace's rooms the answer comes about as soon.
    pub fn assert_unhurt(&self, scenario: &Scenario) {
        if self.beside.is_empty() {
            return;
        }
        let ([_, alone, _], [_, beside, _]) = (spread(self.turns.clone()), spread(self.beside.clone()));
        assert!(
            beside <= alone + MOST_LATER,
            "`{}`: p95 {beside:.0} ms beside another workspace's rooms, {alone:.0} ms alone",
            scenario.name
        );
    }

    fn print_heard(&self) {
        if self.heard.is_empty() {
            return;
        }
        let [p50, p95, max] = spread(self.heard.clone());
        row(
            "… to what Chromium plays, p50, p95, max",
            format!("{p50:.0}, {p95:.0}, {max:.0} ms"),
        );
        let ends = self.heard_marks.iter().filter_map(|marks| mark(marks, "endpoint"));
        let [endpoint, ..] = spread(ends.collect());
        row(
            "… the same without its endpointing, p50",
            format!("{:.0} ms (endpointing {endpoint:.0})", p50 - endpoint),
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
