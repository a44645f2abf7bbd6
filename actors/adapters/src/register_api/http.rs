//! A register over HTTP: the operator's subscription to it, or a small program in front of that.
//!
//! `POST` to the address, with `Authorization: Bearer KEY`:
//!
//! ```text
//! {"register":"uk_tps","phone_numbers":["+442079460018","+442079460019"]}
//! ```
//!
//! 200, with an answer to each number in its place, and as of when the register says so; `listed_at`, the day since which a number is
//! listed, may be left out:
//!
//! ```text
//! {"as_of":"2027-03-02T06:00:00Z","results":[
//!   {"phone_number":"+442079460018","listed":false},
//!   {"phone_number":"+442079460019","listed":true,"listed_at":"2026-05-04"}]}
//! ```
use super::{Answers, Failure, Listing, RegisterApi};
use crate::look_up::{self, AT_ONCE, LookUp, TIMEOUT};
use entities::values::{E164, Moment};
use futures_util::future::BoxFuture;
use reqwest::StatusCode;
use rules::registers::day;
use serde::{Deserialize, Serialize};
use std::time::Duration;

const EXAMPLE: &str = "https://register.example.com/v1/query";
/// Who is told of what is wrong with them.
const SETTINGS: (&str, &str) = ("register_urls", "register_api_keys");
/// How far its clock may be ahead of ours, with the day where it is.
const AHEAD_SECONDS: i64 = 14 * 3600;

#[derive(Debug)]
pub struct HttpRegister {
    name: String,
    look_up: LookUp,
}

#[derive(Serialize)]
struct Asked<'a> {
    register: &'a str,
    phone_numbers: &'a [E164],
}

#[derive(Deserialize)]
struct Answered {
    as_of: String,
    results: Vec<Found>,
}

#[derive(Deserialize)]
struct Found {
    phone_number: E164,
    listed: bool,
    listed_at: Option<String>,
}

impl HttpRegister {
    /// `name`: as rules name it. Fails, in words for an operator, on an address or a key that cannot be used. rustls must have its
    /// provider by then.
    pub fn new(name: &str, url: &str, key: Option<&str>) -> Result<Self, String> {
        HttpRegister::within(TIMEOUT, name, url, key)
    }

    fn within(timeout: Duration, name: &str, url: &str, key: Option<&str>) -> Result<Self, String> {
        Ok(HttpRegister {
            name: name.to_owned(),
            look_up: LookUp::new(url, key, (EXAMPLE, timeout))?,
        })
    }

    async fn send(&self, numbers: &[E164], now: Moment) -> Result<Answers, String> {
        if numbers.len() > AT_ONCE {
            return Err(format!("more than {AT_ONCE} numbers at once"));
        }
        let asked = Asked {
            register: &self.name,
            phone_numbers: numbers,
        };
        let (status, body) = self.look_up.post(&asked).await?;
        read(status, &body, (numbers, now))
    }
}

impl RegisterApi for HttpRegister {
    fn ask<'a>(&'a self, numbers: &'a [E164], now: Moment) -> BoxFuture<'a, Result<Answers, Failure>> {
        Box::pin(async move {
            let answers = self.send(numbers, now).await;
            answers.map_err(|words| self.look_up.failure(&words))
        })
    }
}

/// Each answer belongs to its number, or none counts: what was said of another number would open a call.
fn read(status: StatusCode, body: &[u8], (numbers, now): (&[E164], Moment)) -> Result<Answers, String> {
    look_up::check(status, body, SETTINGS)?;
    let answered: Answered = serde_json::from_slice(body).map_err(|_| "its answer has another form".to_owned())?;
    let belongs = answered.results.len() == numbers.len()
        && answered
            .results
            .iter()
            .zip(numbers)
            .all(|(found, number)| found.phone_number == *number);
    if !belongs {
        return Err("its answers are not those about the numbers, in their order".into());
    }
    let latest = now.plus_seconds(AHEAD_SECONDS);
    let as_of = match day::begins(&answered.as_of) {
        Some(begins) => begins,
        None => Moment::parse(&answered.as_of)
            .map_err(|_| "its `as_of` is neither a day, such as 2026-11-30, nor a time in ISO 8601".to_owned())?,
    };
    if as_of > latest {
        return Err("its `as_of` lies in the future".into());
    }
    let listings = answered.results.iter().map(|found| listing(found, latest));
    Ok(Answers {
        as_of: as_of.min(now),
        listings: listings.collect::<Result<_, _>>()?,
    })
}

fn listing(found: &Found, latest: Moment) -> Result<Listing, String> {
    let day = match &found.listed_at {
        Some(text) if found.listed => day::read(text, latest.datetime().date_naive())
            .map_err(|_| "a `listed_at` of its answer is not a day that has been, such as 2026-11-30".to_owned())?,
        Some(_) | None => day::UNKNOWN,
    };
    Ok(Listing {
        is_listed: found.listed,
        listed_on: Some(day).filter(|day| *day != day::UNKNOWN),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::local_servers::local_listener::listen;

    fn now() -> Moment {
        Moment::parse("2027-03-02T13:00:00Z").unwrap()
    }

    fn numbers() -> Vec<E164> {
        ["+442079460018", "+442079460019"]
            .map(|number| number.parse().unwrap())
            .to_vec()
    }

    fn result(number: &str, rest: &str) -> String {
        format!(r#"{{"phone_number":"{number}",{rest}}}"#)
    }

    fn body(as_of: &str, results: &[String]) -> String {
        format!(r#"{{"as_of":"{as_of}","results":[{}]}}"#, results.join(","))
    }

    fn said(body: &str) -> Result<Answers, String> {
        read(StatusCode::OK, body.as_bytes(), (&numbers(), now()))
    }

    #[test]
    fn only_answers_about_the_numbers_count() {
        let (one, other) = (
            result("+442079460018", r#""listed":false"#),
            result("+442079460019", r#""listed":true,"listed_at":"2026-05-04""#),
        );
        let as_of = "2027-03-02T06:00:00Z";
        let found = said(&body(as_of, &[one.clone(), other.clone()])).unwrap();
        assert_eq!(found.as_of, Moment::parse(as_of).unwrap());
        let listed: Vec<bool> = found.listings.iter().map(|listing| listing.is_listed).collect();
        let days: Vec<_> = found
            .listings
            .iter()
            .map(|listing| listing.listed_on.and_then(day::date))
            .collect();
        assert_eq!(
            (listed, days),
            (vec![false, true], vec![None, "2026-05-04".parse().ok()])
        );
        let maybe = result("+442079460019", r#""listed":"maybe""#);
        let ahead = result("+442079460019", r#""listed":true,"listed_at":"2027-03-05""#);
        for results in [
            vec![other.clone(), one.clone()],
            vec![one.clone()],
            vec![one.clone(), one.clone()],
            vec![one.clone(), other.clone(), other],
            vec![one.clone(), maybe],
            vec![one, ahead],
        ] {
            assert!(said(&body(as_of, &results)).is_err(), "{results:?}");
        }
        for text in ["", "{}", "[]", r#"{"results":[]}"#] {
            assert!(said(text).is_err(), "{text}");
        }
    }

    #[test]
    fn an_answer_is_never_younger_than_the_question() {
        let results = numbers()
            .iter()
            .map(|number| result(number.as_str(), r#""listed":false"#))
            .collect::<Vec<_>>();
        for (as_of, expected) in [
            ("2027-03-02T12:59:00+00:00", Some("2027-03-02T12:59:00Z")),
            ("2027-03-01", Some("2027-03-01T00:00:00Z")),
            // Its clock is ahead of ours; or it is tomorrow there.
            ("2027-03-02T13:00:07Z", Some("2027-03-02T13:00:00Z")),
            ("2027-03-03", Some("2027-03-02T13:00:00Z")),
            ("2027-03-04", None),
            ("2027-03-03T03:00:01Z", None),
            ("today", None),
        ] {
            let found = said(&body(as_of, &results)).ok().map(|answers| answers.as_of);
            assert_eq!(found, expected.map(|text| Moment::parse(text).unwrap()), "{as_of}");
        }
    }

    #[test]
    fn what_is_no_200_says_which_setting_may_be_wrong() {
        for (status, named) in [
            (401, "register_api_keys"),
            (302, "redirects"),
            (404, "register_urls"),
            (500, "500"),
        ] {
            let status = StatusCode::from_u16(status).unwrap();
            let told = read(status, b"{}", (&numbers(), now())).unwrap_err();
            assert!(told.contains(named), "{told}");
        }
    }

    /// Whoever accepts a connection and says nothing is not waited for.
    #[tokio::test]
    async fn a_register_that_is_silent_is_given_up() {
        let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
        let (address, _serving) = listen(|stream| async move {
            let _open = stream;
            std::future::pending::<()>().await;
        });
        let url = format!("http://{address}/query");
        let register = HttpRegister::within(Duration::from_millis(50), "uk_tps", &url, None).unwrap();
        let answer = register.ask(&numbers(), now()).await;
        assert!(answer.is_err(), "{answer:?}");
    }
}
