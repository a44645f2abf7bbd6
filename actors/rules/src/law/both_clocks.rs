//! What the law says while the wall clock shows another time than ours: what the stricter of the two allows.
use super::{Asked, Facts, GateKind, Judged, Judgement, LegalTerms, UNDECIDED, Verdict, judge};
use entities::values::Times;

impl LegalTerms {
    /// What the verdicts on an attempt are where the wall clock is so far behind our time (negative: ahead of it). Hours, caps and rests
    /// hold by both; consents, registers and answers about numbers end and age by the one that shows more; and a rule's days begin and end
    /// by the one that shows less. Else the guard of its commit would refuse what was planned, again and again; and of hours and ages that
    /// guard knows nothing.
    pub fn by_both_clocks(&self, judged: &Judged, behind_ms: i64) -> Judgement {
        let mut judgement = judged.judgement.clone();
        if behind_ms == 0 {
            return judgement;
        }
        let facts = by_the_wall(&judged.facts, behind_ms);
        let (begun, ends) = judged.holds;
        // By the rules of another day only time speaks: of anything else it is not known yet whether it will be so.
        let is_later = behind_ms < 0 && facts.at < ends;
        for asked in judge(&self.law, &facts).asked {
            let verdict = match (asked.kind, asked.verdict) {
                (GateKind::Caps | GateKind::Rest | GateKind::Hours, Verdict::Wait(until)) => {
                    Verdict::Wait(until.map(|until| until.plus_millis(behind_ms)))
                }
                (_, verdict) if is_later && verdict.is_no() => verdict,
                (_, _) => continue,
            };
            judgement.asked.push(Asked { verdict, ..asked });
        }
        // By one clock a rule has begun, or ended, that by the other has not.
        let switches_at = match facts.at {
            wall if wall < begun => Some(begun.plus_millis(behind_ms)),
            wall if wall >= ends => Some(ends),
            _ => None,
        };
        // What is never allowed by our time is not allowed by waiting.
        let is_shut = judgement.asked.iter().any(|asked| asked.verdict == Verdict::Never);
        if let Some(at) = switches_at.filter(|_| !is_shut) {
            judgement.asked.push(Asked {
                kind: GateKind::Purpose,
                rule: UNDECIDED.into(),
                verdict: Verdict::Wait(Some(at)),
            });
        }
        judgement
    }

    /// May an attempt that was judged a while ago still be made, by either clock? Its commit may have taken long, and what it rests on may
    /// have ended meanwhile.
    pub fn still_allow(&self, judged: &Judged, now: Times) -> bool {
        let facts = Facts {
            at: now.ours,
            ..judged.facts.clone()
        };
        let again = Judged {
            judgement: judge(&self.law, &facts),
            holds: self.law.holds(&facts),
            facts,
            ..judged.clone()
        };
        self.by_both_clocks(&again, now.behind_ms()).is_yes()
    }
}

/// The same attempt by the clock that shows more: by that one consents, copies of registers and answers about numbers age.
pub fn by_the_later(facts: &Facts, behind_ms: i64) -> Facts {
    by_the_wall(facts, behind_ms.min(0))
}

/// The same attempt as the wall clock has it.
pub(super) fn by_the_wall(facts: &Facts, behind_ms: i64) -> Facts {
    Facts {
        at: facts.at.plus_millis(-behind_ms),
        ..facts.clone()
    }
}
