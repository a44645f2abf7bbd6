//! Campaigns of the sandbox that the law binds, to people who have agreed; some take it back while they run.
use super::{Calls, Place};
use chrono::Timelike;
use chrono_tz::Tz;
use serde_json::{Value, json};
use std::{fmt::Write as _, ops::Range};

/// Countries of which the pack knows only the common rules, and their clocks. At any time it is day in one of them, for two hours at least.
const PLACES: [(&str, Tz); 6] = [
    ("NZ", Tz::Pacific__Auckland),
    ("JP", Tz::Asia__Tokyo),
    ("AE", Tz::Asia__Dubai),
    ("NG", Tz::Africa__Lagos),
    ("BR", Tz::America__Sao_Paulo),
    ("MX", Tz::America__Mexico_City),
];
const CALLER: &str = "+12025550177";
const SELLER: &str = "Acme Inc.";

pub struct Agreed {
    pub numbers: Vec<String>,
    /// Ids of consents, one of each number.
    pub consents: Vec<String>,
    /// Who calls them, and where they are.
    agent: Value,
    region: &'static str,
    zone: Tz,
}

impl Agreed {
    /// Records what the law asks for.
    pub async fn record(place: &Place, api: &Calls, agent: &Value, people: usize) -> Self {
        let now = runtime::clock::Clock::wall().now();
        let is_day = |zone: &Tz| {
            let local = chrono::DateTime::from_timestamp_millis(now.millis())
                .unwrap()
                .with_timezone(zone);
            (10..18).contains(&local.hour())
        };
        let (region, zone) = PLACES.into_iter().find(|(_, zone)| is_day(zone)).unwrap();
        let digits = [0, 1, 0, 2];
        let numbers: Vec<String> = (0..people)
            .map(|n| format!("+15003{n:05}{}", digits[n % digits.len()]))
            .collect();
        api.patch("/v1/compliance/identity", json!({ "registered_name": SELLER }))
            .await;
        let trunk = api
            .post(
                "/v1/sip_trunks",
                json!({ "name": "Carrier", "host": "sip.example.com" }),
            )
            .await;
        let shown = json!({ "phone_number": CALLER, "trunk_id": trunk["id"], "agent_id": agent });
        api.post("/v1/numbers", shown).await;
        let claim = ["workspace", "claim-number", "--workspace", "acme", "--number", CALLER];
        assert!(place.run(&claim).status.success());

        let mut file = "phone_number,seller,channels,purposes,tier,method,given_at\n".to_owned();
        for number in &numbers {
            writeln!(
                file,
                "{number},{SELLER},phone,service,express,form,{}",
                now.plus_seconds(-86_400)
            )
            .unwrap();
        }
        let import = api.upload("/v1/consents/import", file).await;
        let path = format!("/v1/imports/{}", import["id"].as_str().unwrap());
        let import = api.until(&path, |import| import["status"] != "running").await;
        assert_eq!(import["status"], "completed", "{import}");
        let text = |row: &Value, name: &str| row[name].as_str().unwrap().to_owned();
        let mut consents = api.all("/v1/consents").await;
        // As the numbers are.
        consents.sort_by_key(|row| text(row, "phone_number"));
        let consents: Vec<String> = consents.iter().map(|row| text(row, "id")).collect();
        assert_eq!(consents.len(), people);
        Agreed {
            numbers,
            consents,
            agent: agent.clone(),
            region,
            zone,
        }
    }

    /// Starts a campaign to some of them; answers its path.
    pub async fn run(&self, api: &Calls, some: Range<usize>, rate: f64) -> String {
        let (region, zone) = (self.region, self.zone.name());
        let contacts: Vec<Value> = self.numbers[some]
            .iter()
            .map(|number| json!({ "phone_number": number, "region": region, "timezone": zone }))
            .collect();
        let plan = json!({
            "name": "Agreed", "agent_id": self.agent, "contacts": contacts, "sandbox_law": "enforce", "purpose": "service",
            "seller": SELLER, "from_numbers": [CALLER], "pacing": { "calls_per_second": rate },
            "retry": { "max_attempts": 2, "min_gap_minutes": 0 }, "schedule": { "windows": [{ "start": "00:00", "end": "24:00" }] },
        });
        let campaign = api.post("/v1/campaigns/run", plan).await;
        format!("/v1/campaigns/{}", campaign["id"].as_str().unwrap())
    }

    /// The `n`th takes it back, without asking to be left alone; answers what was acknowledged.
    pub async fn take_back(&self, api: &Calls, n: usize) -> Value {
        let id = &self.consents[n % self.consents.len()];
        let only = json!({ "only_this": true, "reason": "by letter" });
        let consent = api.post(&format!("/v1/consents/{id}/revoke"), only).await;
        json!({ "kind": "consent", "id": id, "revoked_at": consent["revoked_at"] })
    }
}
