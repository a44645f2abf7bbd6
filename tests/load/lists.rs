//! Lists that people look through: how soon their first pages come, of millions.
use super::service::{Api, Service, name_of};
use entities::{
    ids::{AgentId, TenantId},
    page::Page,
    session::{self, Filter, Status},
    values::Env,
};
use sea_orm::{ConnectionTrait, DbBackend, QuerySelect, QueryTrait, Statement};
use std::time::Instant;

pub struct Plan {
    pub database: String,
    pub sessions: usize,
    pub contacts: usize,
}

/// Each list is asked for so often.
const TIMES: usize = 50;
const PHONE: &str = "%2B15000000001";

impl Plan {
    pub async fn run(&self) {
        let service = Service::start(&self.database).await;
        let (tenant, api) = service.tenant().await;
        let agent = api
            .post("/v1/agents", serde_json::json!({ "name": "Ann", "prompt": "x" }))
            .await["id"]
            .as_str()
            .expect("an id")
            .to_owned();
        let rare = api
            .post("/v1/agents", serde_json::json!({ "name": "Rare", "prompt": "x" }))
            .await["id"]
            .as_str()
            .expect("an id")
            .to_owned();
        let campaign = api
            .post("/v1/campaigns", serde_json::json!({ "name": "All", "agent_id": agent }))
            .await["id"]
            .as_str()
            .expect("an id")
            .to_owned();
        let started = Instant::now();
        self.fill(&service, tenant, &[&agent, &rare, &campaign]).await;
        println!(
            "{}: {} sessions and {} contacts, made in {:.0} s",
            name_of(&self.database),
            self.sessions,
            self.contacts,
            started.elapsed().as_secs_f64()
        );
        let of_campaign = format!("/v1/campaigns/{campaign}/contacts");
        let lists = [
            ("sessions", "/v1/sessions?".to_owned()),
            ("sessions, by number", format!("/v1/sessions?phone_number={PHONE}")),
            ("sessions, by agent", format!("/v1/sessions?agent_id={rare}")),
            ("sessions, by campaign", format!("/v1/sessions?campaign_id={campaign}")),
            (
                "sessions, by reference",
                "/v1/sessions?client_reference_id=order+1".to_owned(),
            ),
            (
                "sessions, by disposition",
                "/v1/sessions?disposition_code=booked".to_owned(),
            ),
            ("sessions, a rare status", "/v1/sessions?status=busy".to_owned()),
            (
                "sessions, several statuses",
                "/v1/sessions?status=busy,failed,in_progress".to_owned(),
            ),
            (
                "sessions, all statuses but one",
                "/v1/sessions?status=busy,failed,completed,no_answer,voicemail".to_owned(),
            ),
            ("contacts of a campaign", format!("{of_campaign}?")),
            ("contacts, by number", format!("{of_campaign}?phone_number={PHONE}")),
            ("contacts, by external_id", format!("{of_campaign}?external_id=c-1")),
            ("contacts, a rare status", format!("{of_campaign}?status=skipped")),
            (
                "contacts everywhere, by number",
                format!("/v1/contacts?phone_number={PHONE}"),
            ),
            (
                "contacts everywhere, by external_id",
                "/v1/contacts?external_id=c-1".to_owned(),
            ),
            ("contacts everywhere, by name", "/v1/contacts?name=mil".to_owned()),
            (
                "contacts everywhere, a name that nobody has",
                "/v1/contacts?name=nobody".to_owned(),
            ),
            ("calls over 30 days", "/v1/sessions/stats?period=30d".to_owned()),
        ];
        println!("| First page of 50 | rows | median | slowest of {TIMES} |\n|---|---|---|---|");
        for (name, path) in lists {
            measured(&api, name, &path).await;
        }
        let filters = [
            Filter {
                phone_number: Some("+15000000001".parse().expect("a number")),
                ..Filter::default()
            },
            Filter {
                agent_id: Some(rare.parse::<AgentId>().expect("an id")),
                ..Filter::default()
            },
            Filter {
                client_reference_id: Some("order 1".into()),
                ..Filter::default()
            },
            Filter {
                disposition_code: Some("booked".into()),
                ..Filter::default()
            },
            Filter {
                statuses: vec![Status::Busy],
                ..Filter::default()
            },
        ];
        for filter in filters {
            explain(&service, tenant, &filter).await;
        }
        service.stop().await;
    }

    /// One row after the other by the database itself: what is looked for is the oldest.
    async fn fill(&self, service: &Service, tenant: TenantId, ids: &[&str]) {
        let db = &service.deps().db.write;
        let [agent, rare, campaign] = ids else {
            panic!("three ids")
        };
        let backend = db.get_database_backend();
        const SLICE: usize = 100_000;
        let (rows, id): (fn(usize, usize) -> String, fn(&str) -> String) = match backend {
            DbBackend::Postgres => (
                |first, last| format!("generate_series({first}, {last}) AS n(i)"),
                |uuid| format!("'{uuid}'::uuid"),
            ),
            _ => (
                |first, last| {
                    format!(
                        "(WITH RECURSIVE n(i) AS (VALUES({first}) UNION ALL SELECT i + 1 FROM n WHERE i < {last}) SELECT i FROM n) AS n"
                    )
                },
                |uuid| format!("x'{}'", uuid.replace('-', "")),
            ),
        };
        let of_row = |kind: &str| match backend {
            DbBackend::Postgres => {
                format!("('{kind}' || lpad(to_hex(i), 8, '0') || '00007000a000' || lpad(to_hex(i), 8, '0'))::uuid")
            }
            _ => format!("unhex(printf('{kind}%08x00007000a000%08x', i, i))"),
        };
        let padded = match backend {
            DbBackend::Postgres => "'+1500' || lpad(i::text, 7, '0')",
            _ => "printf('+1500%07d', i)",
        };
        let empty = if backend == DbBackend::Postgres {
            "'{}'::jsonb"
        } else {
            "'{}'"
        };
        let text = |value: &str| match backend {
            DbBackend::Postgres => format!("'{value}' || i::text"),
            _ => format!("'{value}' || i"),
        };
        let (tenant, agent, rare, campaign) = (id(&tenant.to_string()), id(agent), id(rare), id(campaign));
        for first in (1..=self.sessions).step_by(SLICE) {
            let rows = rows(first, (first + SLICE - 1).min(self.sessions));
            let statement = format!(
                "INSERT INTO sessions (id, tenant_id, env, status, phase, direction, to_number, agent_id, agent_version, campaign_id, \
                 client_reference_id, disposition_code, attempt, variables, metadata, ring_timeout_seconds, max_duration_seconds, \
                 duration_seconds, actual_cost_cents, version, created_at, options) \
                 SELECT {}, {tenant}, 'test', CASE WHEN i < 4 THEN 'busy' WHEN i < 10 THEN 'failed' WHEN i % 3 = 0 THEN 'no_answer' \
                 ELSE 'completed' END, 'ended', 'outbound', {padded}, CASE WHEN i < 4 THEN {rare} ELSE {agent} END, 1, \
                 CASE WHEN i % 2 = 0 THEN {campaign} END, CASE WHEN i % 10 = 1 THEN {} END, CASE WHEN i < 4 THEN 'booked' END, 1, \
                 {empty}, {empty}, 30, 600, 10, 5, 1, 1700000000000 + i, {empty} FROM {rows}",
                of_row("00000000"),
                text("order "),
            );
            db.execute_unprepared(&statement).await.expect("sessions");
        }
        for first in (1..=self.contacts).step_by(SLICE) {
            let rows = rows(first, (first + SLICE - 1).min(self.contacts));
            let statement = format!(
                "INSERT INTO contacts (id, tenant_id, env, campaign_id, channel, external_id, phone_number, address, first_name, last_name, \
                 variables, zone, priority, status, attempts, version, created_at) \
                 SELECT {}, {tenant}, 'test', {campaign}, 'phone', {}, {padded}, {padded}, 'Zoë', CASE WHEN i % 1000 = 7 THEN 'Miller' \
                 ELSE 'Smith' END, {empty}, 'America/New_York', 5, CASE WHEN i < 4 THEN 'skipped' ELSE 'pending' END, 0, 1, \
                 1700000000000 + i FROM {rows}",
                of_row("00000001"),
                text("c-"),
            );
            db.execute_unprepared(&statement).await.expect("contacts");
        }
        db.execute_unprepared("ANALYZE").await.expect("statistics");
    }
}

async fn measured(api: &Api, name: &str, path: &str) {
    // The first one fills the caches; whoever looks again has them.
    let rows = api.get(path).await["data"].as_array().map_or(0, Vec::len);
    let mut times = Vec::new();
    for _ in 0..TIMES {
        let started = Instant::now();
        api.get(path).await;
        times.push(started.elapsed().as_secs_f64() * 1_000.0);
    }
    times.sort_by(f64::total_cmp);
    println!(
        "| {name} | {rows} | {:.1} ms | {:.1} ms |",
        times[TIMES / 2],
        times[TIMES - 1]
    );
}

/// How the database finds what a filter lets through, in its own words.
async fn explain(service: &Service, tenant: TenantId, filter: &Filter) {
    let db = &*service.deps().db.read;
    let backend = db.get_database_backend();
    let page = Page::default();
    for list in filter.lists(tenant, Env::Test) {
        let list = page
            .of(list, session::Column::Id, session::Column::CreatedAt)
            .limit(page.limit + 1);
        let mut statement: Statement = list.build(backend);
        statement.sql = match backend {
            DbBackend::Postgres => format!("EXPLAIN {}", statement.sql),
            _ => format!("EXPLAIN QUERY PLAN {}", statement.sql),
        };
        let column = if backend == DbBackend::Postgres {
            "QUERY PLAN"
        } else {
            "detail"
        };
        for row in db.query_all_raw(statement).await.expect("a plan") {
            println!("{}", row.try_get::<String>("", column).expect("a line of it"));
        }
    }
}
