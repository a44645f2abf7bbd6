//! Registers that are asked about each number over an API. What they have answered is read with the uploaded copies
//! ([`Registers::look`]); what is not known is asked for in the background, many numbers at once. A call never waits for that: it is held
//! until there is an answer.
use super::{
    lookup::Registers,
    questions::{Added, OfRegister},
    writing::write_down,
};
use crate::deps::Deps;
use adapters::register_api::Answers;
use entities::{
    Result,
    ids::TenantId,
    register::answer::Model,
    values::{E164, Env, Moment},
};
use rules::{
    effect::Hint,
    law::{Facts, Law, LegalRecord, facts::RegisterFact},
};
use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

/// Who has answered with what is too old by then is not asked again sooner: it would say the same, and want to be paid.
const SAME_SECONDS: i64 = 3600;

const DAY: Duration = Duration::from_secs(24 * 3600);

/// The answers that need not be asked for again, whatever is to be done.
#[derive(Debug)]
pub struct Young<'a> {
    later: Moment,
    /// Since when each register must have been asked, and as of when it must have answered, where any rule says so.
    since: BTreeMap<&'a str, (Moment, Option<Moment>)>,
}

impl Young<'_> {
    /// Has each register that is asked about this number answered?
    pub fn have_all(&self, record: &LegalRecord) -> bool {
        record.asked_registers.iter().all(|name| {
            let mut answers = record.registers.iter().filter(|found| found.name == *name);
            let since = self.since.get(name.as_str());
            since.is_some_and(|since| answers.any(|found| self.counts(found, *since)))
        })
    }

    fn counts(&self, found: &RegisterFact, (asked, as_of): (Moment, Option<Moment>)) -> bool {
        let is_of_now = found.fetched_at <= self.later && as_of.is_none_or(|as_of| as_of <= found.fetched_at);
        is_of_now && found.asked_at.is_some_and(|at| at > asked)
    }
}

impl Registers {
    /// Whose answers are too old for no rule. `later`: by the clock that shows more; an answer that is too old by either is asked for again.
    pub fn young(&self, law: &Law, later: Moment) -> Young<'_> {
        let since = self.over_api.iter().map(|(name, register)| {
            let longest = law.register_max_age(name).map(|days| DAY.saturating_mul(days));
            let as_of = longest.map(|longest| later.minus(longest));
            (name.as_str(), (later.minus(register.max_age), as_of))
        });
        Young {
            later,
            since: since.collect(),
        }
    }

    /// The registers that have to be asked about the number of these facts before the law knows what it says: of an attempt that would be
    /// made now, by the clock that shows more.
    pub fn questions_about(&self, deps: &Deps, facts: &Facts) -> BTreeSet<String> {
        let later = facts.at;
        let mut young = facts.clone();
        young
            .registers
            .retain(|found| match (found.asked_at, self.over_api.get(&found.name)) {
                (Some(asked_at), Some(register)) => asked_at > later.minus(register.max_age),
                (_, _) => true,
            });
        let is_recent = |name: &str| {
            let mut answers = facts.registers.iter().filter(|found| found.name == name);
            answers.any(|found| found.asked_at.is_some_and(|at| at > later.plus_seconds(-SAME_SECONDS)))
        };
        let mut names = deps.law.questions(&young);
        names.retain(|name| !is_recent(name));
        names
    }

    /// Has these numbers asked for, each of the register of that name. Answers those about which somebody is being asked now: the answer
    /// comes within seconds.
    pub fn inquire(&self, deps: &Deps, tenant: TenantId, wanted: BTreeMap<String, BTreeSet<E164>>) -> BTreeSet<E164> {
        let mut awaited = BTreeSet::new();
        for (name, numbers) in wanted {
            let Some(register) = self.over_api.get(&name) else {
                continue;
            };
            let all = numbers.iter().map(|number| (number.clone(), ()));
            match register.add(tenant, all, deps.clock.now()) {
                Added::Now => {
                    ask(deps, tenant, &name);
                    awaited.extend(numbers);
                }
                Added::NoMoreToday => {
                    let most = register.most_of_day();
                    tracing::warn!(%tenant, register = name, most, "no more numbers are looked up in a register today: calls that need it are held back");
                    count(&name, "limited");
                }
                Added::Later => {}
            }
        }
        awaited
    }
}

fn count(name: &str, result: &'static str) {
    metrics::counter!("callboard_register_lookups_total", "name" => name.to_owned(), "result" => result).increment(1);
}

/// Asks for all that waits of a workspace, in the background.
fn ask(deps: &Deps, tenant: TenantId, name: &str) {
    let Some(register) = deps.registers.over_api.get(name) else {
        return;
    };
    let work = {
        let (deps, name) = (deps.clone(), name.to_owned());
        async move {
            match deps.registers.over_api.get(&name) {
                Some(register) => ask_all(&deps, tenant, &name, register).await,
                None => Ok(()),
            }
        }
    };
    deps.jobs.run(&register.asking, tenant, "look-up in a register", work);
}

async fn ask_all(deps: &Deps, tenant: TenantId, name: &str, register: &OfRegister) -> Result<()> {
    let mut any = false;
    let done = ask_in_batches(deps, tenant, (name, register), &mut any).await;
    // Also after a failure: somebody may wait for what was answered before it.
    if any {
        let hint = Hint::CampaignsChanged(tenant);
        deps.router.perform(vec![hint.into()]);
    }
    done
}

/// `any`: some was written down. The same, for reassigned numbers: `asking::ask_in_batches`.
async fn ask_in_batches(
    deps: &Deps,
    tenant: TenantId,
    (name, register): (&str, &OfRegister),
    any: &mut bool,
) -> Result<()> {
    let Some(service) = register.service() else {
        return Ok(());
    };
    loop {
        *any |= write_down(deps, tenant, register).await?;
        // For each batch anew: who has few questions does not wait for who has many.
        let Ok(one_of_few) = register.at_once.acquire().await else {
            break;
        };
        if deps.pass(tenant).await.is_err() {
            // The node that has the workspace asks for itself.
            break;
        }
        let some = register.take(tenant, deps.clock.now()).into_iter();
        let some: Vec<E164> = some.map(|(number, ())| number).collect();
        if some.is_empty() {
            break;
        }
        // By the clock that shows less: an answer is at least that old.
        let asked_at = deps.clock.times().earlier();
        let answers = service.ask(&some, asked_at).await;
        drop(one_of_few);
        let answers = match answers {
            Ok(answers) => answers,
            Err(failure) => {
                register.failed(tenant, some.len(), deps.clock.now());
                tracing::warn!(register = name, %failure, "a register cannot be asked: calls that need it are held back");
                count(name, "failed");
                break;
            }
        };
        count(name, "answered");
        register.answered(tenant, rows(deps, (tenant, name), (some, answers), asked_at));
    }
    Ok(())
}

fn rows(
    deps: &Deps,
    (tenant, name): (TenantId, &str),
    (numbers, answers): (Vec<E164>, Answers),
    asked_at: Moment,
) -> Vec<Model> {
    let Answers { as_of, listings } = answers;
    let rows = numbers.into_iter().zip(listings).map(|(phone_number, listing)| Model {
        tenant_id: tenant,
        env: Env::Live,
        phone_number,
        name: name.to_owned(),
        id: deps.ids.next(),
        is_listed: listing.is_listed,
        listed_on: listing.listed_on.map(i32::from),
        as_of,
        asked_at,
    });
    rows.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use entities::ids::RegisterId;
    use uuid::Uuid;

    fn at(seconds: i64) -> Moment {
        Moment::from_millis(0).plus_seconds(seconds)
    }

    #[test]
    fn nobody_is_looked_at_again_of_whom_each_register_has_answered() {
        let known = |name: &str, fetched: i64, asked: Option<i64>| RegisterFact {
            id: RegisterId(Uuid::from_u128(1)),
            name: name.to_owned(),
            version: 1,
            fetched_at: at(fetched),
            is_listed: false,
            listed_on: None,
            asked_at: asked.map(at),
        };
        let young = Young {
            later: at(1_000),
            since: BTreeMap::from([("a", (at(500), Some(at(400)))), ("b", (at(500), None))]),
        };
        for (names, registers, expected) in [
            (vec![], vec![], true),
            (vec!["a"], vec![], false),
            (vec!["a"], vec![known("a", 400, Some(501))], true),
            (vec!["a"], vec![known("a", 400, Some(500))], false),
            (vec!["a"], vec![known("a", 399, Some(501))], false),
            (vec!["a"], vec![known("a", 1_001, Some(1_001))], false),
            (vec!["a"], vec![known("a", 999, None)], false),
            (vec!["b"], vec![known("b", 0, Some(501))], true),
            (vec!["a", "b"], vec![known("a", 900, Some(900))], false),
            (
                vec!["a", "b"],
                vec![known("a", 900, Some(900)), known("b", 900, Some(900))],
                true,
            ),
            (vec!["c"], vec![known("c", 900, Some(900))], false),
        ] {
            let record = LegalRecord {
                asked_registers: names.iter().map(|name| (*name).to_owned()).collect(),
                registers: registers.clone(),
                ..LegalRecord::default()
            };
            assert_eq!(young.have_all(&record), expected, "{names:?} {registers:?}");
        }
    }
}
