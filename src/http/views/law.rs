//! Rules of the law, and what they say of an attempt.
use actors::campaign::outlook::{LawCount, LawCounts};
use entities::{
    dnc::DncChannel,
    law::{Audience, ConsentTier, Purpose, Vertical},
    values::Moment,
};
use rules::law::{Confidence, GateKind, Judgement, Law, LawRule, Verdict};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;
use std::collections::BTreeMap;

/// What one rule of the law pack says of an attempt.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct AskedView {
    /// Its id in the law pack.
    pub rule: String,
    /// As what it is asked.
    pub kind: GateKind,
    pub title: String,
    /// Where it stands.
    pub source: String,
    pub verdict: LawVerdict,
    /// Of `wait`: until then; null: until somebody does what `mend` says.
    pub until: Option<Moment>,
    /// Who must do what; null: nothing is missing.
    pub mend: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(description = "What a rule of the law says.")]
pub enum LawVerdict {
    Yes,
    /// It says no, and the operator has overridden it, with a reason.
    Overridden,
    Wait,
    Never,
}

impl From<(&LawRule, &Verdict)> for AskedView {
    fn from((rule, verdict): (&LawRule, &Verdict)) -> Self {
        let (told, until) = LawVerdict::of(*verdict);
        AskedView {
            rule: rule.id.clone(),
            kind: rule.says.kind(),
            title: rule.title.clone(),
            source: rule.source.clone(),
            verdict: told,
            until,
            mend: verdict.is_no().then(|| rule.mend.clone()),
        }
    }
}

impl LawVerdict {
    fn of(verdict: Verdict) -> (Self, Option<Moment>) {
        match verdict {
            Verdict::Yes => (LawVerdict::Yes, None),
            Verdict::Overridden => (LawVerdict::Overridden, None),
            Verdict::Wait(until) => (LawVerdict::Wait, until),
            Verdict::Never => (LawVerdict::Never, None),
        }
    }
}

impl AskedView {
    /// All rules that were asked, in that order.
    pub fn all(law: &Law, judgement: &Judgement) -> Vec<Self> {
        let view = |asked: &rules::law::Asked| match law.rule(&asked.rule) {
            Some(rule) => AskedView::from((rule, &asked.verdict)),
            None => {
                let (verdict, until) = LawVerdict::of(asked.verdict);
                let (title, mend) = law.told(&asked.rule);
                AskedView {
                    rule: asked.rule.to_string(),
                    kind: asked.kind,
                    title: title.to_owned(),
                    source: String::new(),
                    verdict,
                    until,
                    mend: Some(mend.to_owned()).filter(|mend| !mend.is_empty()),
                }
            }
        };
        judgement.asked.iter().map(view).collect()
    }
}

/// A rule of the law pack.
#[derive(Serialize, JsonSchema)]
pub struct LawRuleView {
    pub id: String,
    pub title: String,
    /// As what it is asked before an attempt.
    pub kind: GateKind,
    /// Countries and parts of them; `*`: everywhere; `?`: wherever no rule of the pack names the place; `nowhere`: where no place is known.
    pub places: Vec<String>,
    pub excepted_places: Vec<String>,
    pub purposes: Vec<Purpose>,
    /// Empty: all.
    pub audiences: Vec<Audience>,
    pub channels: Vec<DncChannel>,
    /// Empty: all trades.
    pub verticals: Vec<Vertical>,
    /// What it asks for: its `kind`, and the numbers that go with it.
    pub says: BTreeMap<String, Value>,
    /// The first day on which it holds, `2026-08-11`; null: it always has.
    pub from: Option<String>,
    /// The first day on which it holds no more; null: no end is known.
    pub until: Option<String>,
    /// A consent of at least this tier sets it aside.
    pub lifted_by_consent: Option<ConsentTier>,
    /// How long what proves that it was kept is kept.
    pub keep_years: Option<u8>,
    /// The operator may override it, with a reason.
    pub overridable: bool,
    pub source: String,
    /// How sure the source is.
    pub confidence: Confidence,
    /// Who must do what if it says no.
    pub mend: String,
}

impl From<&LawRule> for LawRuleView {
    fn from(rule: &LawRule) -> Self {
        let marks = [
            (rule.places.is_everywhere, "*"),
            (rule.places.is_unnamed, "?"),
            (rule.places.is_nowhere, "nowhere"),
        ];
        let marks = marks.into_iter().filter(|(is_so, _)| *is_so);
        let names = rule.places.places.iter().map(ToString::to_string);
        let says = match serde_json::to_value(&rule.says) {
            Ok(Value::Object(fields)) => fields.into_iter().collect(),
            Ok(_) | Err(_) => BTreeMap::new(),
        };
        LawRuleView {
            id: rule.id.clone(),
            title: rule.title.clone(),
            kind: rule.says.kind(),
            places: marks.map(|(_, mark)| mark.to_owned()).chain(names).collect(),
            excepted_places: rule.excepted_places.iter().map(ToString::to_string).collect(),
            purposes: rule.purposes.clone(),
            audiences: rule.audiences.clone(),
            channels: rule.channels.clone(),
            verticals: rule.verticals.clone(),
            says,
            from: rule.from.map(|day| day.to_string()),
            until: rule.until.map(|day| day.to_string()),
            lifted_by_consent: rule.lifted_by_consent,
            keep_years: rule.keep_years,
            overridable: !rule.is_firm,
            source: rule.source.clone(),
            confidence: rule.confidence,
            mend: rule.mend.clone(),
        }
    }
}

/// Of a campaign's contacts: how many a rule of the law would keep from being reached.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct LawCountView {
    pub rule: String,
    pub kind: GateKind,
    pub title: String,
    pub source: String,
    /// Never reached, as things are.
    pub barred: i64,
    /// Put off for now.
    pub held: i64,
    pub mend: String,
}

impl LawCountView {
    pub fn all(law: &Law, counts: &LawCounts) -> Vec<Self> {
        let view = |(id, count): (&String, &LawCount)| {
            let rule = law.rule(id);
            let (title, mend) = law.told(id);
            LawCountView {
                rule: id.clone(),
                kind: rule.map_or(GateKind::Purpose, |rule| rule.says.kind()),
                title: title.to_owned(),
                source: rule.map(|rule| rule.source.clone()).unwrap_or_default(),
                barred: count.barred,
                held: count.held,
                mend: mend.to_owned(),
            }
        };
        let mut all: Vec<Self> = counts.0.iter().map(view).collect();
        all.sort_by_key(|one| std::cmp::Reverse((one.barred, one.held)));
        all
    }
}
