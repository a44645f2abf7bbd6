//! kill -9 while credits are spent: on calls, on texts and on e-mails, of campaigns and one by one, with payments in between and
//! with nothing left again and again. What was written down by service, carrier, provider, mail server and client is put side
//! by side, and nothing may contradict.
mod last_cents;
mod spending;

use super::{
    Calls, Place, pause, serve, stderr, terminate,
    written::{count, millis},
};
use crate::{
    audit::{Evidence, check, report},
    world::{
        smtp::Smtp,
        twilio::{self, ACCOUNT, TOKEN, Twilio},
    },
};
use actix_rt::task::JoinHandle;
use serde_json::{Value, json};
use std::process::Child;

const LIMIT: usize = 200;

/// A service that takes money, and everybody whom it pays or tells.
struct Shop {
    place: Place,
    test: Calls,
    live: Calls,
    serving: Child,
    provider: Twilio,
    mails: Smtp,
    environment: Vec<(&'static str, String)>,
    acknowledged: Vec<Value>,
    killed: Vec<i64>,
    /// Requests that were granted, those that the credits did not cover, and those that were never answered.
    told: [usize; 3],
    /// The most calls a second, of all campaigns and the API.
    rate: f64,
    burst: f64,
}

/// What the API said to a request; nobody knows if the service was killed meanwhile.
type Answer = Option<(u16, Value)>;

impl Shop {
    async fn open(place: Place, more: &[(&'static str, &str)]) -> Self {
        let (provider, mails) = (Twilio::start().await, Smtp::start());
        let mut environment = vec![
            ("CALLBOARD_SANDBOX_SPEED", "1.5".to_owned()),
            (
                "CALLBOARD_SANDBOX_LOG",
                place.carrier_log().to_str().unwrap().to_owned(),
            ),
            ("CALLBOARD_BASE_URL", format!("http://{}", place.bind)),
            ("CALLBOARD_SMS_URL", provider.url.clone()),
            ("CALLBOARD_SMS_ACCOUNT_SID", ACCOUNT.to_owned()),
            ("CALLBOARD_SMS_AUTH_TOKEN", TOKEN.to_owned()),
            ("CALLBOARD_SMS_FROM", "+12025550100".to_owned()),
            ("CALLBOARD_SMTP_URL", mails.url.clone()),
            ("CALLBOARD_SMS_PRICE_CENTS_PER_SEGMENT", "7".to_owned()),
            ("CALLBOARD_EMAIL_PRICE_CENTS", "3".to_owned()),
            ("CALLBOARD_NUMBER_CAP_24H", "0".to_owned()),
            ("CALLBOARD_NUMBER_CAP_7D", "0".to_owned()),
        ];
        environment.extend(more.iter().map(|(name, value)| (*name, (*value).to_owned())));
        let test = Calls::to(&place, place.workspace());
        let live = Calls::to(&place, place.create_key("live", "live"));
        let serving = serve(&place, &environment);
        for api in [&test, &live] {
            api.limit_concurrency(LIMIT).await;
        }
        Shop {
            place,
            test,
            live,
            serving,
            provider,
            mails,
            environment,
            acknowledged: Vec::new(),
            killed: Vec::new(),
            told: [0; 3],
            rate: 500.0,
            burst: 500.0,
        }
    }

    fn kill(&mut self) {
        self.serving.kill().unwrap();
        self.serving.wait().unwrap();
        self.killed.push(millis());
        self.serving = serve(&self.place, &self.environment);
    }

    fn another_key(&self, name: &str) -> Calls {
        Calls::to(&self.place, self.place.create_key("test", name))
    }

    /// Its id.
    async fn agent(&self, agent: Value) -> Value {
        self.test.post("/v1/agents", agent).await["id"].clone()
    }

    /// The operator gives credits; a running or the next service books them.
    fn grants(&self, cents: i64) {
        let cents = cents.to_string();
        let command = [
            "credits",
            "grant",
            "--workspace",
            "acme",
            "--env",
            "live",
            "--note",
            "a gift",
            "--no-wait",
            "--cents",
        ];
        let granted = self.place.run(&[&command[..], &[&cents]].concat());
        assert!(granted.status.success(), "{}", stderr(&granted));
    }

    /// Paid in the sandbox, asked for until it is answered; one payment however often it is asked for.
    async fn tops_up(&mut self, order: &str, cents: i64) -> Value {
        for _ in 0..50 {
            let topup = post(
                &self.test,
                "/v1/credits/topups",
                Some(order),
                json!({ "amount_cents": cents }),
            )
            .await;
            if let Some((201, topup)) = topup {
                self.acknowledged
                    .push(json!({ "kind": "topup", "id": topup["id"], "cents": cents }));
                return topup;
            }
            pause(100).await;
        }
        panic!("the top-up {order} was never answered");
    }

    /// Takes in what was answered; what was created is stored from then on.
    async fn answers(&mut self, kind: &str, asked: Vec<JoinHandle<Answer>>) -> [usize; 2] {
        let (mut created, mut refused) = (0, 0);
        for answer in asked {
            match answer.await.unwrap() {
                Some((201 | 202, body)) => {
                    created += 1;
                    self.acknowledged.push(json!({ "kind": kind, "id": body["id"] }));
                }
                Some((status, body)) => {
                    assert!(matches!(status, 402 | 429 | 503), "{kind}: {status} {body}");
                    refused += usize::from(status == 402);
                }
                None => self.told[2] += 1,
            }
        }
        self.told[0] += created;
        self.told[1] += refused;
        [created, refused]
    }

    /// Waits until nothing is left, or for some seconds.
    async fn spends_all(&self) {
        for _ in 0..100 {
            let credits = self.test.get("/v1/credits").await;
            if !credits["depleted_at"].is_null() {
                return;
            }
            pause(100).await;
        }
    }

    /// Waits until nothing is under way any more but what waits for its time.
    async fn quiet(&self) {
        self.place.quiet(is_done).await;
    }

    /// The provider tells of what it took, as it does until it is heard.
    async fn provider_reports(&self) {
        for asked in self.provider.asked().iter().filter(|asked| !asked.not_taken) {
            let url = &asked.fields["StatusCallback"];
            let fields = [("MessageSid", "SM1"), ("MessageStatus", "delivered")];
            let (status, body) = twilio::call_back(url, &fields, &twilio::signature(TOKEN, url, &fields)).await;
            assert_eq!(status, 204, "{body}");
        }
    }

    /// What the provider and the mail server were asked.
    fn asked(&self) -> Vec<Value> {
        let texts = self.provider.asked().into_iter().map(|asked| {
            let id = asked.fields["StatusCallback"].rsplit('/').next().unwrap().to_owned();
            json!({ "message": id, "outcome": if asked.not_taken { "not_taken" } else { "taken" } })
        });
        let mails = self.mails.mails().into_iter().map(|mail| {
            let id = mail.data.split_once("Message-ID: <").unwrap().1;
            json!({ "message": id[..36], "outcome": "taken" })
        });
        texts.chain(mails).collect()
    }

    fn checked(&mut self) -> Vec<Value> {
        let evidence = Evidence {
            dump: self.place.dump(),
            carrier: self.place.carried(),
            provider: self.asked(),
            acknowledged: self.acknowledged.clone(),
            files: None,
            taken_at: Some(millis()),
            kills: self.killed.clone(),
            limit: LIMIT,
            rate: self.rate,
            burst: self.burst,
            settled: true,
        };
        terminate(&mut self.serving);
        let breaches = check(&evidence);
        assert!(breaches.is_empty(), "{}", report(&breaches));
        let [granted, refused, cut_off] = self.told;
        eprintln!("{granted} requests were granted, {refused} were told that credits lack, {cut_off} were cut off");
        figures(self.killed.len(), &evidence);
        evidence.dump
    }
}

/// A request that may be cut off by a kill.
async fn post(api: &Calls, path: &str, key: Option<&str>, body: Value) -> Answer {
    let mut request = api
        .client
        .post(format!("{}{path}", api.url))
        .bearer_auth(&api.key)
        .json(&body);
    if let Some(key) = key {
        request = request.header("Idempotency-Key", key);
    }
    let answer = request.send().await.ok()?;
    let status = answer.status().as_u16();
    Some((status, answer.json().await.ok()?))
}

/// Waits for so many of the answers: the moment of a kill, which differs each time.
async fn answered(asked: &[&Vec<JoinHandle<Answer>>], count: usize) {
    for _ in 0..2_000 {
        let answered = asked
            .iter()
            .flat_map(|asked| asked.iter())
            .filter(|answer| answer.is_finished());
        if answered.count() >= count {
            return;
        }
        pause(5).await;
    }
}

/// All at once; the answers come later.
fn post_all(api: &Calls, path: &'static str, bodies: impl IntoIterator<Item = Value>) -> Vec<JoinHandle<Answer>> {
    let one = |body| {
        let api = api.clone();
        actix_rt::spawn(async move { post(&api, path, None, body).await })
    };
    bodies.into_iter().map(one).collect()
}

/// Is there nothing to be done about it any more, but at its time? What was cut off between intent and answer waits for a
/// report for minutes.
fn is_done(line: &Value) -> bool {
    let waits = |phase: &str| {
        matches!(
            phase,
            "sending" | "sent" | "delivered" | "undelivered" | "failed" | "bounced" | "canceled"
        )
    };
    match line["kind"].as_str().unwrap() {
        "session" => !line["ended_at"].is_null(),
        // Those who were not taken at first are asked again later.
        "sms" | "email" => waits(line["phase"].as_str().unwrap()) || line["attempts"].as_i64() > Some(0),
        "contact" => !matches!(line["state"].as_str(), Some("pending" | "waiting")),
        _ => true,
    }
}

fn figures(kills: usize, evidence: &Evidence) {
    let dump = &evidence.dump;
    let entries = |kind: &str| count(dump, "entry", kind) / 2;
    let placed = evidence.carrier.iter().filter(|line| line["what"] == "placed").count();
    let balance = |line: &Value| line["balance_after"].as_i64();
    eprintln!(
        "{kills} kills: {} sessions, {placed} calls placed, {} cut off, {} SMS, {} e-mails, {} intents to write, {} requests to \
         providers, {} messages cut off, {} holds, {} charges, {} releases, {} entries, {} top-ups, {} paid, {} times low, {} times \
         depleted, least balance {:?}, {} events: nothing contradicts",
        count(dump, "kind", "session"),
        count(dump, "end_reason", "node_lost"),
        count(dump, "kind", "sms"),
        count(dump, "kind", "email"),
        count(dump, "kind", "send"),
        evidence.provider.len(),
        count(dump, "phase", "sending"),
        entries("hold"),
        entries("charge"),
        entries("release"),
        count(dump, "kind", "posting") / 2,
        count(dump, "kind", "topup"),
        entries("topup"),
        count(dump, "type", "credits.low_balance"),
        count(dump, "type", "credits.depleted"),
        dump.iter().filter_map(balance).min(),
        count(dump, "kind", "event"),
    );
}
