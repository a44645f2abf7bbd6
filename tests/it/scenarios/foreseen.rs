//! A preflight says what will happen: random campaigns are asked what is to be expected of them, and run.
use crate::{
    on_both,
    world::{Tenant, World, minutes},
};
use actors::leases::Of;
use entities::{dial, ids::SessionId, values::Env};
use rules::commit::Commit;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// All 200 of them with CALLBOARD_TEST_CAMPAIGNS=200.
fn campaigns() -> usize {
    let wanted = std::env::var("CALLBOARD_TEST_CAMPAIGNS");
    wanted.map_or(20, |count| count.parse().unwrap())
}
/// They share its slots, which are never short for long.
const OF_A_WORKSPACE: usize = 10;
/// Enough for all that they wait for.
const DAYS: i64 = 9;
/// All their times, and the openings of their hours, are multiples of it.
const STEP_MINUTES: i64 = 30;
const NOW: &str = "2027-03-02T13:00:00Z";

/// The same numbers each time.
struct Dice(u64);

impl Dice {
    fn below(&mut self, sides: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % sides
    }
    fn one_in(&mut self, sides: u64) -> bool {
        self.below(sides) == 0
    }
    fn of<T: Clone>(&mut self, choices: &[T]) -> T {
        choices[usize::try_from(self.below(choices.len() as u64)).unwrap()].clone()
    }
}

fn after_now(minutes: i64) -> String {
    let now = chrono::DateTime::parse_from_rfc3339(NOW).unwrap();
    (now + chrono::Duration::minutes(minutes)).to_utc().to_rfc3339()
}

/// What is known of its number before.
#[derive(Default)]
struct Before {
    /// How often it was called, that many hours ago.
    called: BTreeMap<String, (u64, i64)>,
    barred: Vec<String>,
}

fn contact(dice: &mut Dice, number: usize, before: &mut Before) -> Value {
    let digit = dice.below(2);
    let good = format!("+15002{number:05}{digit}");
    let text = match dice.below(8) {
        0 => format!("{number}"),
        1 => format!("+1212555{number:04}"),
        _ => good.clone(),
    };
    if dice.one_in(5) {
        before.barred.push(good.clone());
    }
    if dice.one_in(3) {
        before.called.insert(good, (1 + dice.below(3), dice.of(&[1, 143])));
    }
    let zones = [
        "America/New_York",
        "Europe/Berlin",
        "Asia/Tokyo",
        "America/Los_Angeles",
        "Australia/Sydney",
    ];
    let mut contact = json!({ "phone_number": text, "priority": dice.below(3) });
    if !dice.one_in(4) {
        contact["timezone"] = dice.of(&zones).into();
    }
    if dice.one_in(4) {
        contact["not_before"] = after_now(dice.of(&[60, 1_200, 3_000])).into();
    }
    contact
}

fn campaign(dice: &mut Dice, agent: &str, first: usize, before: &mut Before) -> Value {
    let windows = [
        json!([{ "start": "00:00", "end": "24:00" }]),
        json!([{ "start": "09:00", "end": "20:00" }]),
        json!([{ "start": "10:00", "end": "12:00" }]),
        json!([{ "start": "06:00", "end": "07:30" }, { "start": "18:00", "end": "21:00" }]),
    ];
    let mut schedule = json!({ "windows": dice.of(&windows) });
    let mut begins = 0;
    if dice.one_in(3) {
        begins = dice.of(&[30, 300, 1_500, 3_000]);
        schedule["starts_at"] = after_now(begins).into();
    }
    if dice.one_in(2) {
        schedule["ends_at"] = after_now(begins + dice.of(&[90, 390, 1_020, 1_980, 3_990])).into();
    }
    if dice.one_in(5) {
        schedule["blackout_dates"] = json!(["2027-03-03"]);
    }
    if dice.one_in(5) {
        schedule["timezone_mode"] = "fixed".into();
        schedule["timezone"] = dice.of(&["Europe/Berlin", "America/Chicago"]).into();
    }
    let mut caps = json!({ "on_cap": dice.of(&["defer", "defer", "skip"]) });
    if dice.one_in(3) {
        caps["campaign_per_day"] = (2 + dice.below(2)).into();
    }
    if dice.one_in(2) {
        caps["per_number_24h"] = dice.of(&[json!(null), json!(1), json!(2)]);
        caps["per_number_7d"] = dice.of(&[json!(null), json!(2), json!(7)]);
    }
    let contacts: Vec<Value> = (0..=dice.below(5))
        .map(|n| contact(dice, first + usize::try_from(n).unwrap(), before))
        .collect();
    json!({ "name": "Random", "agent_id": agent, "schedule": schedule, "caps": caps, "contacts": contacts,
        "pacing": { "calls_per_second": 50 } })
}

/// So it is known before.
async fn prepare(world: &World, tenant: &Tenant, before: &Before) {
    let (deps, owner) = (world.deps(), tenant.id);
    let mut commit = Commit::default();
    for (number, (calls, hours)) in &before.called {
        for call in 0..i64::try_from(*calls).unwrap() {
            let ago = -3600 * (hours + call);
            commit.changes.dials.push(dial::Model {
                session_id: deps.ids.next::<SessionId>(),
                tenant_id: owner,
                env: Env::Test,
                phone_number: number.parse().unwrap(),
                n: 1,
                campaign_id: None,
                dialed_at: deps.clock.now().plus_seconds(ago),
                seq: 0,
            });
        }
    }
    deps.writer.commit(Of::Anybody, commit).await.unwrap();
    let list = format!("phone_number\n{}\n", before.barred.join("\n"));
    tenant.api.upload("/v1/dnc/import", list).await.ok();
    world.settle().await;
}

/// What became of its contacts, in the words of the preflight.
async fn outcome(tenant: &Tenant, id: &str) -> Value {
    let page = tenant
        .api
        .get(&format!("/v1/campaigns/{id}/contacts?limit=100"))
        .await
        .ok();
    let contacts = page["data"].as_array().unwrap();
    let skipped = |reason: &str| {
        contacts
            .iter()
            .filter(|contact| contact["skip_reason"] == reason)
            .count()
    };
    json!({
        "eligible": contacts.iter().filter(|contact| contact["attempts"] != 0).count(),
        "invalid": skipped("invalid"),
        "dnc_blocked": skipped("dnc_blocked"),
        "daily_cap_reached": skipped("daily_cap_reached"),
        "quiet_hours_expired": skipped("quiet_hours_expired"),
    })
}

on_both! {
    async fn random_campaigns_go_as_their_preflight_said(world: &mut World) {
        let mut dice = Dice(0x5eed_0fca_1100);
        let (mut asked, mut first) = (Vec::new(), 10);
        let now = world.clock.now();
        for _ in 0..campaigns() / OF_A_WORKSPACE {
            let tenant = world.tenant().await;
            let (agent, mut before) = (tenant.agent().await, Before::default());
            let mut drafts = Vec::new();
            for _ in 0..OF_A_WORKSPACE {
                drafts.push(campaign(&mut dice, &agent, first, &mut before));
                first += 10;
            }
            prepare(world, &tenant, &before).await;
            let mut of_tenant = Vec::new();
            for mut draft in drafts {
                let contacts = json!({ "contacts": draft.as_object_mut().unwrap().remove("contacts") });
                let id = tenant.api.post("/v1/campaigns", draft.clone()).await.ok()["id"].as_str().unwrap().to_owned();
                tenant.api.post(&format!("/v1/campaigns/{id}/contacts"), contacts.clone()).await.ok();
                draft["contacts"] = contacts["contacts"].clone();
                let look = tenant.api.post(&format!("/v1/campaigns/{id}/preflight"), json!({})).await.ok();
                of_tenant.push((id, draft, look));
            }
            for (id, ..) in &of_tenant {
                // One whose end has come before it may begin cannot be started.
                tenant.api.post(&format!("/v1/campaigns/{id}/start"), json!({})).await.ok();
            }
            asked.push((tenant, of_tenant));
        }
        for step in 1..=DAYS * 24 * 60 / STEP_MINUTES {
            world.clock.set(now.plus_seconds(step * STEP_MINUTES * 60));
            world.advance(minutes(2)).await;
        }
        let mut wrong = Vec::new();
        for (tenant, campaigns) in &asked {
            for (id, draft, look) in campaigns {
                let found = outcome(tenant, id).await;
                let mut said = look["skips"].clone();
                said["eligible"] = look["eligible"].clone();
                let status = tenant.campaign(id).await["status"].clone();
                let finish = look["expected_finish_at"].as_str().unwrap_or("9");
                let too_early = draft["schedule"]["starts_at"].as_str().is_some_and(|starts| finish < &starts[..19]);
                if said != found || status != "completed" || too_early {
                    wrong.push(format!("{status} {draft}\n  said {look}\n  found {found}"));
                }
            }
        }
        assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), campaigns(), wrong.join("\n"));
    }
}
