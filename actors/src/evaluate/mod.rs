//! What is found out about a talk after its end: how it went, and what was answered.
//!
//! A stored job: its row is born with the session's end and says how often it was tried, and until when. With a configured
//! language model that decides (`llm`), without one plain rules do (`rules`); a model that fails three times, or does not
//! answer in time, leaves the call unclassified, and the job says why.
pub mod evaluations;
mod prompt;

use crate::deps::Deps;
use adapters::brain::chat;
use entities::{
    Error, Result,
    agent::{self, Definition, QuestionType},
    agent_version, answer,
    evaluation::{self, Model as Job, Status},
    session::{self, Evaluator},
    transcript::{self, Speaker, Turn},
};
use rules::{
    commit::Commit,
    session::{
        command::{Command, Disposition, Evaluated},
        log::Answered,
    },
};
use runtime::tracer::{Place, span_id};
use std::time::Duration;

/// Source: CONTRACT §4.
const MAX_TRIES: i32 = 3;
const LLM_TIMEOUT: Duration = Duration::from_secs(30);

/// Works a job off, unless somebody is at it already.
pub fn run(deps: &Deps, job: Job) {
    let (its, id) = (deps.clone(), job.session_id);
    let stay = deps.stay(job.tenant_id);
    deps.jobs
        .run(&deps.evaluations.running, id, "classification", async move {
            let _stay = stay;
            work(&its, job).await
        });
}

async fn work(deps: &Deps, mut job: Job) -> Result<()> {
    let closed = |_| Error::Unavailable("the service is shutting down".into());
    let _permit = deps.evaluations.permits.acquire().await.map_err(closed)?;
    // It may have been done since it was read.
    match evaluation::load(&deps.db.read, job.session_id).await? {
        Some(stored) if stored.status == Status::Pending => job = stored,
        Some(_) | None => return Ok(()),
    }
    loop {
        let outcome = match Subject::load(deps, &job).await {
            Ok(Some(subject)) => {
                deps.pass(job.tenant_id).await?;
                traced(deps, &subject).await
            }
            // It was deleted: there is nothing to find out, and nobody to be told.
            Ok(None) => return close(deps, job).await,
            Err(error) if error.retryable() => return Err(error),
            Err(error) => Err(error.to_string()),
        };
        match outcome {
            Ok(mut evaluated) => {
                job.status = Status::Done;
                evaluated.job = Some(job.clone());
                return hand_in(deps, &job, evaluated).await;
            }
            Err(why) => {
                tracing::warn!(session = %job.session_id, %why, "a call could not be classified");
                job.tries += 1;
                job.error = Some(why);
                if job.tries >= MAX_TRIES || deps.clock.now() >= job.give_up_at {
                    job.status = Status::Failed;
                    let failed = Evaluated {
                        job: Some(job.clone()),
                        ..nothing()
                    };
                    return hand_in(deps, &job, failed).await;
                }
                let failed = Evaluated {
                    job: Some(job.clone()),
                    ..nothing()
                };
                hand_in(deps, &job, failed).await?;
                deps.clock.back_off(u32::try_from(job.tries).unwrap_or(1)).await;
            }
        }
    }
}

fn nothing() -> Evaluated {
    Evaluated {
        disposition: None,
        answers: Vec::new(),
        by: Evaluator::Rules,
        model: None,
        job: None,
    }
}

async fn close(deps: &Deps, mut job: Job) -> Result<()> {
    let of = job.tenant_id.into();
    job.status = Status::Done;
    let mut commit = Commit::default();
    commit.changes.evaluations.push(job);
    deps.writer.commit(of, commit).await
}

/// The session decides what of it counts.
async fn hand_in(deps: &Deps, job: &Job, evaluated: Evaluated) -> Result<()> {
    let command = Command::Evaluate(evaluated);
    deps.router.sessions().request(job.key(), command).await.map(drop)
}

/// A talk that has ended, with what is to be found out.
struct Subject {
    definition: Definition,
    turns: Vec<Turn>,
    /// Empty: it is known already.
    dispositions: Vec<agent::Disposition>,
    /// Those that were not answered during the talk.
    questions: Vec<agent::Question>,
    /// Where what is done for its call is traced, if it is.
    trace: Option<Place>,
}

impl Subject {
    async fn load(deps: &Deps, job: &Job) -> Result<Option<Self>> {
        let db = &deps.db.read;
        let call = match session::load(db, job.key()).await {
            Ok(call) => call,
            Err(Error::NotFound(_)) => return Ok(None),
            Err(error) => return Err(error),
        };
        let definition = agent_version::load(db, call.tenant_id, call.agent_id, call.agent_version)
            .await?
            .definition;
        let known = answer::of_session(db, call.id).await?;
        let is_open = |question: &agent::Question| !known.iter().any(|answer| answer.question_key == *question.key);
        let classify = call.campaign_id.is_some() && call.disposition_code.is_none();
        let dispositions = match (classify, call.options.dispositions.is_empty()) {
            (false, _) => Vec::new(),
            (true, true) => definition.dispositions.clone(),
            (true, false) => call.options.dispositions.clone(),
        };
        let questions = definition
            .questions
            .iter()
            .filter(|question| is_open(question))
            .cloned()
            .collect();
        Ok(Some(Subject {
            trace: deps.traces.in_call(&call),
            turns: transcript::load(db, call.id).await?.turns.0,
            definition,
            dispositions,
            questions,
        }))
    }
}

/// The same, as a part of its call's trace.
async fn traced(deps: &Deps, subject: &Subject) -> Result<Evaluated, String> {
    let (began, since) = (deps.clock.now(), deps.clock.monotonic());
    let outcome = evaluate(deps, subject).await;
    if let Some(call) = subject.trace {
        let took = deps.clock.monotonic().saturating_sub(since);
        let mut span = call.span(span_id(deps.ids.next()), "evaluation", began, took);
        let by = match deps.providers.chat {
            Some(_) => "llm",
            None => "rules",
        };
        span.attributes.push(("callboard.evaluated_by", by.into()));
        span.error = outcome.is_err().then(|| "failed".into());
        deps.traces.record([span]);
    }
    outcome
}

async fn evaluate(deps: &Deps, subject: &Subject) -> Result<Evaluated, String> {
    match &deps.providers.chat {
        Some(provider) => by_model(provider, subject).await,
        None => Ok(by_rules(subject)),
    }
}

async fn by_model(provider: &chat::Provider, subject: &Subject) -> Result<Evaluated, String> {
    let model = match &subject.definition.brain {
        agent::Brain::Chat { model: Some(model), .. } => Some(&**model),
        agent::Brain::Chat { model: None, .. } | agent::Brain::Scripted { .. } | agent::Brain::Realtime { .. } => None,
    };
    let schema = prompt::schema(&subject.dispositions, &subject.questions);
    let user = prompt::talk(&subject.turns);
    let system = prompt::task(&subject.dispositions, &subject.questions);
    let answered = chat::complete_json(provider, model, &system, &user, "evaluation", &schema, LLM_TIMEOUT);
    let (found, model) = answered.await.map_err(|failure| failure.to_string())?;
    prompt::read(&found, subject_parts(subject)).map(|(disposition, answers)| Evaluated {
        disposition,
        answers,
        by: Evaluator::Llm,
        model: Some(model),
        job: None,
    })
}

fn subject_parts(subject: &Subject) -> prompt::Parts<'_> {
    prompt::Parts {
        dispositions: &subject.dispositions,
        questions: &subject.questions,
        turns: subject.turns.len(),
    }
}

fn by_rules(subject: &Subject) -> Evaluated {
    let turns: Vec<rules::evaluate::Turn<'_>> = subject
        .turns
        .iter()
        .map(|turn| rules::evaluate::Turn {
            role: match turn.role {
                Speaker::Agent => rules::evaluate::Role::Agent,
                Speaker::User => rules::evaluate::Role::User,
                Speaker::Tool => rules::evaluate::Role::Tool,
            },
            content: turn.content.as_deref().unwrap_or_default(),
        })
        .collect();
    let language = &*subject.definition.language;
    let codes: Vec<rules::evaluate::Choice<'_>> = subject
        .dispositions
        .iter()
        .map(|one| rules::evaluate::Choice {
            code: &one.code,
            label: one.label.as_deref().unwrap_or_default(),
            description: one.description.as_deref().unwrap_or_default(),
        })
        .collect();
    let disposition = (!codes.is_empty()).then(|| {
        let (code, note) = rules::evaluate::disposition(&turns, language, &codes);
        Disposition { code, note }
    });
    let questions: Vec<rules::evaluate::Question<'_>> = subject.questions.iter().map(question).collect();
    let answers = rules::evaluate::answers(&turns, language, &questions)
        .into_iter()
        .filter_map(|found| {
            let question = subject.questions.iter().find(|question| *question.key == found.key)?;
            Some(Answered {
                key: found.key,
                question: question.text.to_string(),
                value: found.value,
                evidence_turn: Some(found.evidence_turn),
            })
        });
    Evaluated {
        disposition,
        answers: answers.collect(),
        by: Evaluator::Rules,
        model: None,
        job: None,
    }
}

fn question(question: &agent::Question) -> rules::evaluate::Question<'_> {
    rules::evaluate::Question {
        key: &question.key,
        text: &question.text,
        kind: match question.r#type {
            QuestionType::Text => rules::evaluate::Kind::Text,
            QuestionType::Number => rules::evaluate::Kind::Number,
            QuestionType::Boolean => rules::evaluate::Kind::Boolean,
            QuestionType::Date => rules::evaluate::Kind::Date,
            QuestionType::Choice => {
                rules::evaluate::Kind::Choice(question.options.iter().map(|option| option.to_string()).collect())
            }
        },
    }
}
