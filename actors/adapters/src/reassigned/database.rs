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
use super::{AT_ONCE, Database, Failure, Question};
use crate::provider_http::{self, ApiKey, with_cause};
use entities::{
    reassigned::ReassignedAnswer,
    values::{E164, Moment},
};
use futures_util::future::BoxFuture;
use reqwest::{Client, StatusCode, header::AUTHORIZATION};
use serde::{Deserialize, Serialize};
use std::{fmt, time::Duration};
use url::Url;

const EXAMPLE: &str = "https://reassigned.example.com/v1/query";
/// From the request to the end of the answer.
const TIMEOUT: Duration = Duration::from_secs(20);
/// Bytes of an answer to [`AT_ONCE`] questions, with room to spare.
const MAX_BODY: usize = 256 * 1024;
/// So far behind UTC is the day that the person had: the earlier of two days is asked for.
const BEHIND_SECONDS: i64 = 12 * 3600;

pub struct HttpDatabase {
    http: Client,
    url: Url,
    key: Option<ApiKey>,
}

impl fmt::Debug for HttpDatabase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "HttpDatabase({} ***)", self.url)
    }
}

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
        let url = provider_http::base_url(url, EXAMPLE)?;
        let key = ApiKey::of(key)?;
        let http = provider_http::client(|builder| builder.timeout(TIMEOUT))?;
        Ok(HttpDatabase { http, url, key })
    }

    async fn send(&self, questions: &[Question]) -> Result<Vec<ReassignedAnswer>, String> {
        let queries = questions.iter().map(|question| Query {
            phone_number: question.number.as_str(),
            date: day(question.since),
        });
        let asked = Asked {
            queries: queries.collect(),
        };
        let mut request = self.http.post(self.url.clone()).json(&asked);
        if let Some(key) = &self.key {
            request = request.header(AUTHORIZATION, key.header_with("Bearer"));
        }
        let mut response = request.send().await.map_err(|error| with_cause(&error.without_url()))?;
        let status = response.status();
        let mut body = Vec::new();
        let broken = |error: reqwest::Error| with_cause(&error.without_url());
        while let Some(piece) = response.chunk().await.map_err(broken)? {
            if body.len() + piece.len() > MAX_BODY {
                return Err("its answer is too large".into());
            }
            body.extend_from_slice(&piece);
        }
        read(status, &body, questions)
    }

    fn words(&self, words: &str) -> String {
        provider_http::loggable(words, self.key.as_ref().map(ApiKey::expose))
    }
}

impl Database for HttpDatabase {
    fn ask<'a>(&'a self, questions: &'a [Question]) -> BoxFuture<'a, Result<Vec<ReassignedAnswer>, Failure>> {
        Box::pin(async move {
            if questions.len() > AT_ONCE {
                return Err(Failure(format!("more than {AT_ONCE} questions at once")));
            }
            let answers = self.send(questions).await;
            answers.map_err(|words| Failure(self.words(&words)))
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
    if status != StatusCode::OK {
        let advice = match status.as_u16() {
            300..=399 => "; redirects are not followed, check reassigned_url",
            401 | 403 => "; check reassigned_api_key",
            404 => "; check reassigned_url",
            _ => "",
        };
        let said = String::from_utf8_lossy(body.get(..body.len().min(200)).unwrap_or_default()).into_owned();
        return Err(format!("it answered {}{advice}: {said}", status.as_u16()));
    }
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
