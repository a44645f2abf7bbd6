//! Reassigned numbers: what is known of them is read from the rows; what is not is asked for in the background, many at once. A call
//! never waits for that: it is held until there is an answer.
use super::{lookup::Registers, questions::Added, writing::write_down};
use crate::deps::Deps;
use adapters::reassigned::Question;
use entities::{
    Result, boxed,
    ids::TenantId,
    reassigned::{self, Model, ReassignedAnswer},
    values::{E164, Env, Moment},
};
use rules::{effect::Hint, law::facts::ReassignedFact};
use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

const DAY: Duration = Duration::from_secs(24 * 3600);

/// A number that somebody else may have by now.
#[derive(Clone, Debug)]
pub struct InDoubt {
    pub number: E164,
    /// When its person agreed to be called.
    pub since: Moment,
    /// The oldest answer that the rules take.
    pub max_age_days: u32,
}

/// What is known of whose numbers are now.
#[derive(Debug, Default)]
pub struct Answers {
    /// None of what is not known.
    pub facts: BTreeMap<E164, ReassignedFact>,
    /// Those that somebody is being asked about now: the answer comes within seconds.
    pub awaited: BTreeSet<E164>,
}

/// What is done about numbers of which nobody has answered yet, or too long ago.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unanswered {
    /// They are asked for, which costs the operator money.
    Ask,
    /// Somebody only looks: they stay open.
    Leave,
}

impl Registers {
    /// Was each of these numbers given to somebody else since its person agreed to be called? What nobody has answered yet, or longer
    /// ago than the rules or the setting allow, is asked for if that is wanted; there is no fact of what is not known. With test keys
    /// nobody outside is asked: the answer is no.
    #[boxed]
    pub async fn reassigned(
        &self,
        deps: &Deps,
        (tenant, env): (TenantId, Env),
        asked: &[InDoubt],
        unanswered: Unanswered,
    ) -> Result<Answers> {
        let now = deps.clock.now();
        if env == Env::Test {
            let facts = asked.iter().map(|InDoubt { number, since, .. }| {
                let fact = ReassignedFact {
                    checked_at: now,
                    answer: ReassignedAnswer::No,
                    since: *since,
                };
                (number.clone(), fact)
            });
            return Ok(Answers {
                facts: facts.collect(),
                ..Answers::default()
            });
        }
        let numbers: Vec<E164> = asked.iter().map(|in_doubt| in_doubt.number.clone()).collect();
        let known = reassigned::of_numbers(&deps.db.read, (tenant, env), &numbers).await?;
        let (mut facts, mut missing) = (BTreeMap::new(), Vec::new());
        // By the clock that shows more: an answer that is too old by either is asked for again.
        let later = deps.clock.times().later();
        for InDoubt {
            number,
            since,
            max_age_days,
        } in asked
        {
            let oldest = later.minus(self.questions.max_age.min(DAY.saturating_mul(*max_age_days)));
            let row = known.get(number).filter(|row| row.answers(*since));
            if row.is_none_or(|row| row.checked_at <= oldest) {
                missing.push((number.clone(), *since));
            }
            if let Some(row) = row {
                facts.insert(number.clone(), fact(row));
            }
        }
        let mut awaited = BTreeSet::new();
        if unanswered == Unanswered::Ask && !missing.is_empty() {
            let numbers: Vec<E164> = missing.iter().map(|(number, _)| number.clone()).collect();
            match self.questions.add(tenant, missing, now) {
                Added::Now => {
                    ask(deps, tenant);
                    awaited.extend(numbers);
                }
                Added::NoMoreToday => {
                    let most = self.questions.most_of_day();
                    tracing::warn!(%tenant, most, "no more reassigned numbers are looked up today: calls that need it are held back");
                    metrics::counter!("callboard_reassigned_lookups_total", "result" => "limited").increment(1);
                }
                Added::Later => {}
            }
        }
        Ok(Answers { facts, awaited })
    }
}

fn fact(row: &Model) -> ReassignedFact {
    ReassignedFact {
        checked_at: row.checked_at,
        answer: row.answer,
        since: row.since,
    }
}

/// Asks for all that waits of a workspace, in the background.
fn ask(deps: &Deps, tenant: TenantId) {
    let work = {
        let deps = deps.clone();
        async move { ask_all(&deps, tenant).await }
    };
    let asking = &deps.registers.questions.asking;
    deps.jobs.run(asking, tenant, "look-up of reassigned numbers", work);
}

async fn ask_all(deps: &Deps, tenant: TenantId) -> Result<()> {
    let mut any = false;
    let done = ask_in_batches(deps, tenant, &mut any).await;
    // Also after a failure: somebody may wait for what was answered before it.
    if any {
        let hint = Hint::CampaignsChanged(tenant);
        deps.router.perform(vec![hint.into()]);
    }
    done
}

/// `any`: some was written down. The same, for registers: `over_api::ask_in_batches`.
async fn ask_in_batches(deps: &Deps, tenant: TenantId, any: &mut bool) -> Result<()> {
    let questions = &deps.registers.questions;
    let Some(database) = questions.service() else {
        return Ok(());
    };
    loop {
        *any |= write_down(deps, tenant, questions).await?;
        // For each batch anew: who has few questions does not wait for who has many.
        let Ok(one_of_few) = questions.at_once.acquire().await else {
            break;
        };
        if deps.pass(tenant).await.is_err() {
            // The node that has the workspace asks for itself.
            break;
        }
        let some = questions.take(tenant, deps.clock.now()).into_iter();
        let some: Vec<Question> = some.map(|(number, since)| Question { number, since }).collect();
        if some.is_empty() {
            break;
        }
        // By the clock that shows less: an answer is at least that old.
        let checked_at = deps.clock.times().earlier();
        let answers = database.ask(&some).await;
        drop(one_of_few);
        let answers = match answers {
            Ok(answers) => answers,
            Err(failure) => {
                questions.failed(tenant, some.len(), deps.clock.now());
                tracing::warn!(%failure, "reassigned numbers cannot be looked up: calls that need it are held back");
                metrics::counter!("callboard_reassigned_lookups_total", "result" => "failed").increment(1);
                break;
            }
        };
        metrics::counter!("callboard_reassigned_lookups_total", "result" => "answered").increment(1);
        questions.answered(tenant, rows(tenant, (some, answers), checked_at));
    }
    Ok(())
}

fn rows(tenant: TenantId, (asked, answers): (Vec<Question>, Vec<ReassignedAnswer>), checked_at: Moment) -> Vec<Model> {
    let rows = asked.into_iter().zip(answers).map(|(question, answer)| Model {
        tenant_id: tenant,
        env: Env::Live,
        phone_number: question.number,
        since: question.since,
        answer,
        checked_at,
    });
    rows.collect()
}
