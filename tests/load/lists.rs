//! Lists that people look through: how soon their first pages come, of millions.
use super::service::{Api, Service, name_of};
use entities::{
    connection::Connection,
    contact,
    ids::{AgentId, TenantId},
    page::Page,
    session::{self, Filter, Status},
    values::Env,
};
use sea_orm::{ConnectionTrait, DbBackend, IdenStatic, Iterable, QuerySelect, QueryTrait, Statement};
use serde_json::json;
use std::time::Instant;

pub struct Plan {
    pub database: String,
    pub sessions: usize,
    pub contacts: usize,
}

/// Each list is asked for so often.
const TIMES: usize = 50;
const PHONE: &str = "%2B15002000001";

impl Plan {
    pub async fn run(&self) {
        let service = Service::start(&self.database).await;
        let (tenant, api) = service.tenant().await;
        let agent = api.post("/v1/agents", json!({ "name": "Ann", "prompt": "x" })).await["id"]
            .as_str()
            .expect("an id")
            .to_owned();
        let rare = api.post("/v1/agents", json!({ "name": "Rare", "prompt": "x" })).await["id"]
            .as_str()
            .expect("an id")
            .to_owned();
        let campaign = api
            .post("/v1/campaigns", json!({ "name": "All", "agent_id": agent }))
            .await["id"]
            .as_str()
            .expect("an id")
            .to_owned();
        let started = Instant::now();
        self.fill(&service, &api, [&agent, &rare], &campaign).await;
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
                "sessions, by agent and status",
                format!("/v1/sessions?agent_id={rare}&status=busy"),
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
            measured(&service, &api, name, &path).await;
        }
        let filters = [
            Filter {
                phone_number: Some("+15002000001".parse().expect("a number")),
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

    /// Copies one call and one contact that the service has made, by the database itself. What is looked for is the oldest.
    async fn fill(&self, service: &Service, api: &Api, agents: [&str; 2], campaign: &str) {
        let [agent, rare] = agents;
        let call = json!({ "to_number": "+15002340000", "agent_id": agent, "client_reference_id": "template" });
        let call = api.post("/v1/sessions", call).await["id"]
            .as_str()
            .expect("an id")
            .to_owned();
        while api.get(&format!("/v1/sessions/{call}")).await["phase"] != "ended" {
            service.pause(50).await;
        }
        let path = format!("/v1/campaigns/{campaign}/contacts");
        let contact =
            json!({ "contacts": [{ "phone_number": "+15009990000", "first_name": "Zoë", "last_name": "Smith" }] });
        api.post(&path, contact).await;
        let contact = api.get(&path).await["data"][0]["id"]
            .as_str()
            .expect("an id")
            .to_owned();

        let db = &service.deps().db.write;
        let words = Words::of(db);
        let sessions = copies(
            session::Column::iter().map(|column| column.as_str().to_owned()),
            |column| {
                match column {
            "id" => Some(words.id()),
            "to_number" => Some(words.number()),
            "agent_id" => Some(format!("CASE WHEN i < 4 THEN {} ELSE agent_id END", words.uuid(rare))),
            "campaign_id" => Some(format!("CASE WHEN i % 2 = 0 THEN {} END", words.uuid(campaign))),
            "client_reference_id" => Some(format!("CASE WHEN i % 10 = 1 THEN {} END", words.text("order "))),
            "disposition_code" => Some("CASE WHEN i < 4 THEN 'booked' END".into()),
            "status" => Some("CASE WHEN i < 4 THEN 'busy' WHEN i < 10 THEN 'failed' WHEN i % 3 = 0 THEN 'no_answer' ELSE 'completed' END".into()),
            "created_at" => Some(MADE.into()),
            _ => None,
        }
            },
        );
        let contacts = copies(
            contact::Column::iter().map(|column| column.as_str().to_owned()),
            |column| match column {
                "id" => Some(words.id()),
                "external_id" => Some(words.text("c-")),
                "phone_number" | "address" => Some(words.number()),
                "last_name" => Some("CASE WHEN i % 1000 = 7 THEN 'Miller' ELSE 'Smith' END".into()),
                "status" => Some("CASE WHEN i < 4 THEN 'skipped' ELSE 'pending' END".into()),
                "created_at" => Some(MADE.into()),
                _ => None,
            },
        );
        copy(db, "sessions", sessions, ("id", &call), self.sessions).await;
        copy(db, "contacts", contacts, ("id", &contact), self.contacts).await;
        db.execute_unprepared("ANALYZE").await.expect("statistics");
    }
}

/// When a row was made, in milliseconds: two a second, so that five million took a month.
pub const MADE: &str = "(3400000000 + i) * 500";
/// Rows that one statement makes.
const SLICE: usize = 100_000;

/// Copies a row by the database itself. What each copy holds in its columns: see [`copies`].
pub async fn copy(
    db: &Connection,
    table: &str,
    (columns, values): (String, String),
    (key, of): (&str, &str),
    count: usize,
) {
    let words = Words::of(db);
    let of = words.uuid(of);
    for first in (1..=count).step_by(SLICE) {
        let rows = words.rows(first, (first + SLICE - 1).min(count));
        // It is looked for once, whether or not an index knows its key.
        let row = format!("(SELECT * FROM {table} WHERE {key} = {of} LIMIT 1) AS {table}");
        let copy = format!("INSERT INTO {table} ({columns}) SELECT {values} FROM {row}, {rows}");
        db.execute_unprepared(&copy).await.expect("copies");
    }
}

/// The columns of a table, and what a copy of a row holds in each: `i` is its number.
pub fn copies(columns: impl Iterator<Item = String>, other: impl Fn(&str) -> Option<String>) -> (String, String) {
    let columns: Vec<String> = columns.collect();
    let values = columns
        .iter()
        .map(|column| other(column).unwrap_or_else(|| column.clone()));
    (columns.join(", "), values.collect::<Vec<_>>().join(", "))
}

/// What the two databases say in words of their own.
pub struct Words {
    backend: DbBackend,
}

impl Words {
    pub fn of(db: &Connection) -> Self {
        Words {
            backend: db.get_database_backend(),
        }
    }

    fn is_postgres(&self) -> bool {
        self.backend == DbBackend::Postgres
    }

    fn rows(&self, first: usize, last: usize) -> String {
        match self.is_postgres() {
            true => format!("generate_series({first}, {last}) AS n(i)"),
            false => format!(
                "(WITH RECURSIVE n(i) AS (VALUES({first}) UNION ALL SELECT i + 1 FROM n WHERE i < {last}) SELECT i FROM n) AS n"
            ),
        }
    }

    pub fn uuid(&self, id: &str) -> String {
        match self.is_postgres() {
            true => format!("'{id}'::uuid"),
            false => format!("x'{}'", id.replace('-', "")),
        }
    }

    /// An id of the time at which it was made.
    pub fn id(&self) -> String {
        match self.is_postgres() {
            true => format!("(lpad(to_hex({MADE}), 12, '0') || '7000a000' || lpad(to_hex(i), 12, '0'))::uuid"),
            false => format!("unhex(printf('%012x7000a000%012x', {MADE}, i))"),
        }
    }

    pub fn number(&self) -> String {
        match self.is_postgres() {
            true => "'+1500' || (2000000 + i)::text".into(),
            false => "'+1500' || (2000000 + i)".into(),
        }
    }

    fn text(&self, begins: &str) -> String {
        match self.is_postgres() {
            true => format!("'{begins}' || i::text"),
            false => format!("'{begins}' || i"),
        }
    }
}

async fn measured(service: &Service, api: &Api, name: &str, path: &str) {
    // The first one fills the caches; whoever looks again has them.
    let first = api.get(path).await;
    assert!(first["error"].is_null(), "{path}: {first}");
    let rows = first["data"].as_array().map_or(0, Vec::len);
    let mut times = Vec::new();
    for _ in 0..TIMES {
        // Within what a key may ask for.
        service.pause(25).await;
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
