//! A database of reassigned numbers over HTTP, with the questions and answers of the FCC's Reassigned Numbers Database: a number and the
//! day of the consent to call it; `yes`, `no` or `no_data`.
//!
//! `POST` to the address, with `Authorization: Bearer KEY`:
//!
//! ```text
//! {"queries":[{"phone_number":"+12025550123","date":"2026-03-02"}]}
//! ```
//!
//! 200, with an answer to each question in its place:
//!
//! ```text
//! {"results":[{"phone_number":"+12025550123","disconnected":"no"}]}
//! ```
use super::{Database, Failure, Question};
use crate::look_up::{self, AT_ONCE, LookUp, TIMEOUT};
use entities::{
    reassigned::ReassignedAnswer,
    values::{E164, Moment},
};
use futures_util::future::BoxFuture;
use reqwest::StatusCode;
use serde::{Deserialize, Serialize};

const EXAMPLE: &str = "https://reassigned.example.com/v1/query";
/// Who is told of what is wrong with them.
const SETTINGS: (&str, &str) = ("reassigned_url", "reassigned_api_key");
/// So far behind UTC is the day that the person had: the earlier of two days is asked for.
const BEHIND_SECONDS: i64 = 12 * 3600;

#[derive(Debug)]
pub struct HttpDatabase(LookUp);

#[derive(Serialize)]
struct Asked<'a> {
    queries: Vec<Query<'a>>,
}

#[derive(Serialize)]
struct Query<'a> {
    phone_number: &'a str,
    date: String,
}

#[derive(Deserialize)]
struct Answered {
    results: Vec<Found>,
}

#[derive(Deserialize)]
struct Found {
    phone_number: E164,
    disconnected: ReassignedAnswer,
}

impl HttpDatabase {
    /// Fails, in words for an operator, on an address or a key that cannot be used. rustls must have its provider by then.
    pub fn new(url: &str, key: Option<&str>) -> Result<Self, String> {
        LookUp::new(url, key, (EXAMPLE, TIMEOUT)).map(HttpDatabase)
    }

    async fn send(&self, questions: &[Question]) -> Result<Vec<ReassignedAnswer>, String> {
        if questions.len() > AT_ONCE {
            return Err(format!("more than {AT_ONCE} questions at once"));
        }
        let queries = questions.iter().map(|question| Query {
            phone_number: question.number.as_str(),
            date: day(question.since),
        });
        let asked = Asked {
            queries: queries.collect(),
        };
        let (status, body) = self.0.post(&asked).await?;
        read(status, &body, questions)
    }
}

impl Database for HttpDatabase {
    fn ask<'a>(&'a self, questions: &'a [Question]) -> BoxFuture<'a, Result<Vec<ReassignedAnswer>, Failure>> {
        Box::pin(async move {
            let answers = self.send(questions).await;
            answers.map_err(|words| self.0.failure(&words))
        })
    }
}

/// The day that is asked for, in every zone of the numbers that it knows no later than the person's own.
fn day(since: Moment) -> String {
    let day = since.plus_seconds(-BEHIND_SECONDS).datetime().date_naive();
    day.to_string()
}

/// Each answer belongs to its question, or none counts: an answer to another number's question would open a call.
fn read(status: StatusCode, body: &[u8], questions: &[Question]) -> Result<Vec<ReassignedAnswer>, String> {
    look_up::check(status, body, SETTINGS)?;
    let answered: Answered = serde_json::from_slice(body).map_err(|_| "its answer has another form".to_owned())?;
    let belongs = answered.results.len() == questions.len()
        && answered
            .results
            .iter()
            .zip(questions)
            .all(|(found, question)| found.phone_number == question.number);
    if !belongs {
        return Err("its answers are not those to the questions, in their order".into());
    }
    Ok(answered.results.into_iter().map(|found| found.disconnected).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn questions() -> Vec<Question> {
        let since = Moment::parse("2026-03-02T13:00:00Z").unwrap();
        let ask = |number: &str| Question {
            number: number.parse().unwrap(),
            since,
        };
        vec![ask("+12025550123"), ask("+12025550124")]
    }

    #[test]
    fn only_answers_to_the_questions_count() {
        let result = |number: &str, answer: &str| format!(r#"{{"phone_number":"{number}","disconnected":"{answer}"}}"#);
        let all = |results: &[String]| format!(r#"{{"results":[{}]}}"#, results.join(","));
        let (one, other) = (result("+12025550123", "no"), result("+12025550124", "yes"));
        use ReassignedAnswer::{No, NoData, Yes};
        for (body, expected) in [
            (all(&[one.clone(), other.clone()]), Some(vec![No, Yes])),
            (
                all(&[one.clone(), result("+12025550124", "no_data")]),
                Some(vec![No, NoData]),
            ),
            (all(&[other.clone(), one.clone()]), None),
            (all(std::slice::from_ref(&one)), None),
            (all(&[one.clone(), one.clone()]), None),
            (all(&[one.clone(), other.clone(), other.clone()]), None),
            (all(&[one, result("+12025550124", "perhaps")]), None),
            ("{}".into(), None),
            ("[]".into(), None),
            ("".into(), None),
        ] {
            let found = read(StatusCode::OK, body.as_bytes(), &questions()).ok();
            assert_eq!(found, expected, "{body}");
        }
        for (status, said) in [
            (401, "reassigned_api_key"),
            (302, "redirects"),
            (404, "reassigned_url"),
            (500, "500"),
        ] {
            let status = StatusCode::from_u16(status).unwrap();
            let told = read(status, b"{\"results\":[]}", &questions()).unwrap_err();
            assert!(told.contains(said), "{told}");
        }
    }

    #[test]
    fn the_day_is_never_later_than_the_persons_own() {
        for (since, expected) in [
            ("2026-03-02T13:00:00Z", "2026-03-02"),
            ("2026-03-02T11:59:00Z", "2026-03-01"),
            // Still the first of March in Honolulu.
            ("2026-03-02T09:30:00Z", "2026-03-01"),
        ] {
            assert_eq!(day(Moment::parse(since).unwrap()), expected);
        }
    }
}
