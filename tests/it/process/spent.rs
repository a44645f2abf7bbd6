//! kill -9 while credits are spent: on calls, on texts and on e-mails, of campaigns and one by one, with payments in between and
//! with nothing left again and again. What was written down by service, carrier, provider, mail server and client is put side
//! by side, and nothing may contradict.
use super::{
    Calls, Place, on_disk, pause, serve, terminate,
    the_law::{lines, millis, number},
};
use crate::{
    audit::{Evidence, check, report},
    world::{
        Backend,
        smtp::Smtp,
        twilio::{self, ACCOUNT, Reply, TOKEN, Twilio},
    },
};
use actix_rt::task::JoinHandle;
use serde_json::{Value, json};
use std::{process::Child, time::Duration};

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
                place.folder.path().join("carrier.log").to_str().unwrap().to_owned(),
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
        assert!(granted.status.success(), "{}", super::stderr(&granted));
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

    fn dump(&self) -> Vec<Value> {
        lines(&String::from_utf8(self.place.run(&["audit", "dump"]).stdout).unwrap())
    }

    /// Waits until nothing is under way any more but what waits for its time.
    async fn quiet(&self) {
        for _ in 0..600 {
            if self.dump().iter().all(is_done) {
                return;
            }
            pause(100).await;
        }
        let open: Vec<_> = self.dump().into_iter().filter(|line| !is_done(line)).take(5).collect();
        panic!("it does not come to rest: {open:?}");
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
        let log = std::fs::read_to_string(self.place.folder.path().join("carrier.log")).unwrap_or_default();
        let evidence = Evidence {
            dump: self.dump(),
            carrier: lines(&log),
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

fn count(dump: &[Value], name: &str, value: &str) -> usize {
    dump.iter().filter(|line| line[name] == value).count()
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

/// By hand with more: `CALLBOARD_TEST_KILLS=100`.
fn killed_while_it_spends(backend: Backend) {
    on_disk(backend, async |place: Place| {
        let kills = number("CALLBOARD_TEST_KILLS", 5);
        // A second of talk costs 20, and no more than two are set aside: so the balance may fall below zero.
        let mut shop = Shop::open(
            place,
            &[
                ("CALLBOARD_CALL_PRICE_CENTS_PER_MINUTE", "1200"),
                ("CALLBOARD_CREDIT_HOLD_SECONDS", "2"),
                ("CALLBOARD_TEST_CREDITS_CENTS", "900"),
                ("CALLBOARD_CREDIT_WARNING_THRESHOLD_CENTS", "300"),
            ],
        )
        .await;
        let agent = shop.agent(json!({ "name": "Ann", "prompt": "x" })).await;
        let campaigns = campaigns(&mut shop, &agent, kills).await;
        // What was granted is booked at the next start.
        shop.grants(300);
        shop.kill();
        shop.live
            .until("/v1/credits", |credits| credits["balance_cents"] != 0)
            .await;
        for kill in 0..kills {
            shop.grants(100);
            let n = |of: usize| kill * 10 + of;
            // Some are not taken, of some the answer is lost.
            let busy = || Reply::Status(503, None, json!({ "code": 20503, "message": "busy" }));
            shop.provider
                .answer_next([busy(), Reply::HangUp, Reply::error(400, 21211)]);
            shop.mails.answer_next(vec!["250 taken", "451 later", "554 no"]);
            let text = |of| json!({ "to_number": format!("+1202555{:04}", 200 + n(of) % 700), "body": format!("Text {}", n(of)) });
            let mail = |of| json!({ "to": format!("p{}@example.com", n(of)), "subject": "x", "text": "x" });
            let call = |of| json!({ "to_number": format!("+15008{:05}0", n(of)), "agent_id": agent });
            let texts = post_all(&shop.live, "/v1/sms_messages", (0..6).map(text));
            let mails = post_all(&shop.live, "/v1/email_messages", (0..6).map(mail));
            let calls = post_all(&shop.test, "/v1/sessions", (0..4).map(call));
            // Some moment that differs each time.
            if kill % 3 == 0 {
                shop.spends_all().await;
            }
            answered(&[&texts, &mails, &calls], [9, 3, 16, 0, 12, 6, 14, 1][kill % 8]).await;
            if kill % 3 == 1 {
                // Cut off in the middle of a payment.
                let body = json!({ "amount_cents": 2_000 });
                let _ = tokio::time::timeout(
                    Duration::from_millis(kill as u64 % 5),
                    post(&shop.test, "/v1/credits/topups", Some(&format!("order {kill}")), body),
                )
                .await;
            }
            shop.kill();
            shop.answers("sms", texts).await;
            shop.answers("email", mails).await;
            shop.answers("session", calls).await;
            // Every fourth payment is declined.
            let cents = if kill % 4 == 3 { 2_002 } else { 2_000 };
            let declined = kill % 4 == 3 && kill % 3 != 1;
            let topup = shop
                .tops_up(&format!("order {kill}"), if kill % 3 == 1 { 2_000 } else { cents })
                .await;
            assert_eq!(
                topup["status"],
                if declined { "failed" } else { "succeeded" },
                "{topup}"
            );
        }
        // Enough for all the rest.
        shop.tops_up("last", 1_000_000).await;
        shop.grants(100_000);
        shop.kill();
        for campaign in &campaigns[..1] {
            shop.test
                .until(campaign, |campaign| campaign["status"] == "completed")
                .await;
        }
        shop.quiet().await;
        shop.provider_reports().await;
        shop.quiet().await;
        let dump = shop.checked();
        assert_eq!(count(&dump, "kind", "topup"), kills + 1, "one payment for each order");
        for kind in ["credits.depleted", "credits.low_balance", "credits.topup_succeeded"] {
            assert!(count(&dump, "type", kind) > 0, "there was no {kind} to look at");
        }
    });
}

/// One that calls, one that texts and one that mails, so large that there is something to do until the last kill.
async fn campaigns(shop: &mut Shop, agent: &Value, kills: usize) -> Vec<String> {
    let windows = json!({ "windows": [{ "start": "00:00", "end": "24:00" }] });
    let digits = [0, 1, 0, 2, 0, 4, 0, 9];
    let number = |prefix: &str, n: usize| json!({ "phone_number": format!("{prefix}{n:05}{}", digits[n % 8]), "first_name": "Bo" });
    let address = |n: usize| {
        let local = ["ann", "bob", "bounced", "eve", "deferred", "zoe"][n % 6];
        json!({ "email": format!("{local}@d{n}.example"), "first_name": "Bo" })
    };
    let size = 60 + 12 * kills;
    let plans = [
        json!({ "name": "Calls", "agent_id": agent, "contacts": (0..size).map(|n| number("+15002", n)).collect::<Vec<_>>() }),
        json!({ "name": "Texts", "channel": "sms", "template": { "body": "Hello {{first_name}}." },
            "contacts": (0..size / 2).map(|n| number("+15003", n)).collect::<Vec<_>>() }),
        json!({ "name": "Mails", "channel": "email", "template": { "subject": "Hello {{first_name}}", "text": "Hello." },
            "contacts": (0..size / 2).map(address).collect::<Vec<_>>() }),
    ];
    let mut paths = Vec::new();
    for mut plan in plans {
        plan["pacing"] = json!({ "calls_per_second": 40 });
        plan["retry"] = json!({ "max_attempts": 2, "min_gap_minutes": 0 });
        plan["schedule"] = windows.clone();
        let campaign = shop.test.post("/v1/campaigns/run", plan).await;
        shop.acknowledged
            .push(json!({ "kind": "campaign", "id": campaign["id"] }));
        paths.push(format!("/v1/campaigns/{}", campaign["id"].as_str().unwrap()));
    }
    paths
}

#[test]
fn killed_while_it_spends_on_sqlite() {
    killed_while_it_spends(Backend::Sqlite);
}
#[test]
fn killed_while_it_spends_on_postgres() {
    killed_while_it_spends(Backend::Postgres);
}

/// Two hundred calls are asked for at once, and the credits cover ten.
fn killed_while_all_want_the_last_cents(backend: Backend) {
    on_disk(backend, async |place: Place| {
        let kills = number("CALLBOARD_TEST_KILLS", 3);
        let mut shop = Shop::open(
            place,
            &[
                ("CALLBOARD_CALL_PRICE_CENTS_PER_MINUTE", "60"),
                // Strict: a call holds all that it can cost.
                ("CALLBOARD_CREDIT_HOLD_SECONDS", "0"),
                ("CALLBOARD_TEST_CREDITS_CENTS", "650"),
            ],
        )
        .await;
        let agent = json!({ "name": "Ann", "prompt": "x", "max_duration_seconds": 60 });
        let agent = shop.agent(agent).await;
        // One key may not ask for so many at once.
        let keys: Vec<_> = (0..4).map(|n| shop.another_key(&format!("k{n}"))).collect();
        let (mut created, mut refused) = (0, 0);
        for kill in 0..kills {
            let call = |of| json!({ "to_number": format!("+15004{:05}0", kill * 200 + of), "agent_id": agent });
            let calls = keys.iter().zip(0..).map(|(api, part)| {
                let its = part * 200 / keys.len()..(part + 1) * 200 / keys.len();
                post_all(api, "/v1/sessions", its.map(call))
            });
            let calls: Vec<_> = calls.flatten().collect();
            answered(&[&calls], [60, 20, 150, 3, 100, 199][kill % 6]).await;
            shop.kill();
            let [more, without] = shop.answers("session", calls).await;
            (created, refused) = (created + more, refused + without);
            // Those who were granted wait until it covers them.
            shop.tops_up(&format!("order {kill}"), 100).await;
        }
        // Those who wait take the rest, however slow the machine: from then on whoever asks is refused.
        for n in 0..600 {
            let call = json!({ "to_number": format!("+15005{n:05}0"), "agent_id": agent });
            let asked = post_all(&keys[0], "/v1/sessions", std::iter::once(call));
            let [more, without] = shop.answers("session", asked).await;
            (created, refused) = (created + more, refused + without);
            if refused > 0 {
                break;
            }
            pause(100).await;
        }
        shop.tops_up("last", 1_000_000).await;
        shop.quiet().await;
        let dump = shop.checked();
        eprintln!(
            "{} calls were asked for, {created} were told of, {refused} were told that credits lack",
            kills * 200
        );
        let least = dump.iter().filter_map(|line| line["balance_after"].as_i64()).min();
        assert!(least >= Some(0), "holds cover what a call can cost");
        assert!(
            count(&dump, "kind", "session") > 0 && refused > 0,
            "there was something to look at"
        );
    });
}

#[test]
fn killed_while_all_want_the_last_cents_on_sqlite() {
    killed_while_all_want_the_last_cents(Backend::Sqlite);
}
#[test]
fn killed_while_all_want_the_last_cents_on_postgres() {
    killed_while_all_want_the_last_cents(Backend::Postgres);
}
