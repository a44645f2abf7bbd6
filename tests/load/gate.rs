//! What the rules of calling cost: a campaign that they bind beside the same one under a law that has none, and a judgement by itself.
//!
//! It calls the United Kingdom by this machine's clock: run it on a working day between 9:00 and 20:00 there.
use super::{
    campaign::{agent_that_tells, at_full_speed, draft},
    receiver::Receiver,
    service::{Api, Service, name_of},
};
use actors::leases::Of;
use entities::{
    ids::TenantId,
    number_claim::{Model as Claim, Source},
};
use rules::{
    commit::Commit,
    law::{self, Facts, Law, judge},
};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use std::{
    fmt::Write as _,
    hint::black_box,
    time::{Duration, Instant},
};

const SELLER: &str = "Acme Ltd.";
const CALLER: &str = "+442071838750";
/// Numbers of the register that is looked into.
const LISTED: usize = 1_000_000;

pub async fn run(contacts: usize, database: String) {
    let receiver = Receiver::start();
    let service = Service::start(&database).await;
    let (tenant, api) = service.tenant().await;
    let agent = agent_that_tells(&api, &receiver).await;
    introduce(&service, tenant, &api, &agent).await;
    register(&service, &api).await;
    consents(&service, &api, TURNS.len() * contacts).await;
    service.stop().await;

    println!("{}: {contacts} contacts at full speed, in turns", name_of(&database));
    // Nobody is called twice: how often somebody may be is a rule, too.
    let mut first = 0;
    let mut took = [Duration::ZERO; 2];
    for is_bound in TURNS {
        let (what, law, sandbox_law) = if is_bound {
            ("with all of the law", Law::new(law::pack(), None), "enforce")
        } else {
            ("without a rule", without_rules(), "observe")
        };
        let service = Service::start_under(law, &database, &[]).await;
        let api = service.api(api.key());
        let plan = json!({ "agent_id": agent, "seller": SELLER, "from_numbers": [CALLER], "sandbox_law": sandbox_law });
        let people = (first..first + contacts).map(|n| json!({ "phone_number": number(n), "region": "GB" }));
        first += contacts;
        let campaign = draft(&api, plan, people).await;
        let speed = at_full_speed(&service, &receiver, &api, &campaign, contacts).await;
        println!(
            "  {what:<22} {:>8.0} contacts/s, {:.2} CPU seconds per 1,000",
            speed.contacts_per_second, speed.cpu_per_thousand
        );
        took[usize::from(is_bound)] += Duration::from_secs_f64(contacts as f64 / speed.contacts_per_second);
        let counts = api.get(&campaign).await["counts"].clone();
        assert_eq!(counts["skipped"], 0, "{counts:#}");
        service.stop().await;
    }
    println!(
        "  with all of the law, of the speed without a rule: {:.3}",
        took[0].div_duration_f64(took[1])
    );
    let service = Service::start(&database).await;
    judgements(&service.api(api.key())).await;
    service.stop().await;
}

/// Under the law or not: the database grows from turn to turn, so neither is always the later one.
const TURNS: [bool; 8] = [false, true, true, false, true, false, false, true];

/// It bars everybody, so it is only watched.
fn without_rules() -> Law {
    Law::new(Box::leak(Box::default()), None)
}

/// The `n`th of the people who have agreed.
fn number(n: usize) -> String {
    format!("+1500{}0", 300_000 + n)
}

/// Who calls, and what is shown.
async fn introduce(service: &Service, tenant: TenantId, api: &Api, agent: &Value) {
    let identity =
        json!({ "registered_name": SELLER, "callback_number": CALLER, "postal_address": "1 Main Street\nLondon" });
    api.patch("/v1/compliance/identity", identity).await;
    let trunk = api
        .post(
            "/v1/sip_trunks",
            json!({ "name": "Carrier", "host": "sip.example.com" }),
        )
        .await;
    let shown = json!({ "phone_number": CALLER, "trunk_id": trunk["id"], "agent_id": agent });
    api.post("/v1/numbers", shown).await;
    let deps = service.deps();
    let claim = Claim {
        phone_number: CALLER.parse().expect("a number"),
        tenant_id: tenant,
        source: Source::Operator,
        claimed_at: deps.clock.now(),
    };
    let ids = deps.ids.clone();
    let claiming = deps.writer.run(Of::Anybody, move |db| {
        let (claim, ids) = (claim.clone(), ids.clone());
        Box::pin(async move {
            let (_, mails) = actors::verify::claim::claim(db, &ids, claim).await?;
            let mut commit = Commit::default();
            commit.changes.mails.extend(mails);
            Ok(((), commit))
        })
    });
    claiming.await.expect("a claim");
}

/// A register that holds none of the people.
async fn register(service: &Service, api: &Api) {
    let today = service.clock.now().to_string()[..10].to_owned();
    let mut file = String::with_capacity(LISTED * 14);
    for n in 0..LISTED {
        // Writing to a String cannot fail.
        let _ = writeln!(file, "+44750{n:07}");
    }
    let stored = api
        .upload(&format!("/v1/registers/uk_tps/files?fetched_at={today}"), file)
        .await;
    assert_eq!(stored["numbers"], LISTED, "{stored:#}");
}

async fn consents(service: &Service, api: &Api, people: usize) {
    const ROWS: usize = 50_000;
    let given_at = service.clock.now().plus_seconds(-10 * 86_400);
    for first in (0..people).step_by(ROWS) {
        let mut file =
            "phone_number,seller,channels,purposes,tier,covers_automated_voice,method,request_copy,given_at\n"
                .to_owned();
        for n in first..(first + ROWS).min(people) {
            let _ = writeln!(
                file,
                "{},{SELLER},phone,marketing,express_written,true,form,Acme may call me by machine.,{given_at}",
                number(n)
            );
        }
        let import = api.upload("/v1/consents/import", file).await;
        let path = format!(
            "/v1/imports/{}",
            import["id"].as_str().unwrap_or_else(|| panic!("{import:#}"))
        );
        while api.get(&path).await["status"] == "running" {
            service.pause(200).await;
        }
    }
}

/// Judges attempts again that were recorded, beside hashes of 1 KiB.
async fn judgements(api: &Api) {
    const TIMES: u32 = 20_000;
    let list = api.get("/v1/compliance/attempts?limit=1").await;
    let id = list["data"][0]["id"].as_str().unwrap_or_else(|| panic!("{list:#}"));
    let proof = api.get(&format!("/v1/compliance/attempts/{id}")).await;
    let facts: Facts = serde_json::from_value(proof["records"][0]["record"]["facts"].clone()).expect("its facts");
    let asked = judge(Law::untouched(), &facts).asked.len();
    let judging = each(TIMES, || drop(black_box(judge(Law::untouched(), black_box(&facts)))));
    let block = [7_u8; 1024];
    let hashing = each(TIMES, || {
        black_box(Sha256::digest(black_box(block)));
    });
    println!(
        "a judgement of {asked} rules takes {judging:.1?}; SHA-256 of 1 KiB {hashing:.1?}: {:.1} times",
        judging.as_secs_f64() / hashing.as_secs_f64()
    );
}

fn each(rounds: u32, work: impl Fn()) -> Duration {
    let begun = Instant::now();
    for _ in 0..rounds {
        work();
    }
    begun.elapsed() / rounds
}
