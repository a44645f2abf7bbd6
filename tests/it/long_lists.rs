//! What is done to a long list slice by slice costs the same for each slice. Counted are the steps of SQLite's virtual machine.
use entities::{
    api_key,
    attempt::{self, NPage, PersonRows},
    connection::Connection,
    contact::{self, Canceled},
    delivery::{self, PutAway},
    ids::{AgentId, ApiKeyId, CampaignId, ContactId, EndpointId, TenantId},
    page::Page,
    room, session,
    values::{Cents, Env, Moment, Scopes},
    workspace_lease::Share,
};
use sea_orm::{
    ConnectionTrait, DatabaseBackend, QuerySelect, SqlxSqliteConnector, Statement,
    sqlx::sqlite::{SqliteConnectOptions, SqlitePoolOptions},
};
use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};
use tempfile::TempDir;
use uuid::Uuid;

const CONTACTS: i64 = 5_000;
const SLICE: i64 = 50;
/// Steps after which one is counted.
const COUNTED: i32 = 10;

struct Counted {
    _folder: TempDir,
    db: Connection,
    steps: Arc<AtomicU64>,
}

impl Counted {
    async fn open() -> Counted {
        let folder = tempfile::tempdir().unwrap();
        let options = SqliteConnectOptions::new()
            .filename(folder.path().join("lists.db"))
            .create_if_missing(true)
            .foreign_keys(false);
        let steps = Arc::new(AtomicU64::new(0));
        let counter = steps.clone();
        let pool = SqlitePoolOptions::new()
            .max_connections(1)
            .after_connect(move |connection, _| {
                let counter = counter.clone();
                Box::pin(async move {
                    let count = move || {
                        counter.fetch_add(1, Ordering::Relaxed);
                        true
                    };
                    connection.lock_handle().await?.set_progress_handler(COUNTED, count);
                    Ok(())
                })
            });
        let pool = pool.connect_with(options).await.unwrap();
        let db = SqlxSqliteConnector::from_sqlx_sqlite_pool(pool);
        migration::up(&db).await.unwrap();
        Counted {
            _folder: folder,
            db: db.into(),
            steps,
        }
    }

    async fn list(&self) -> CampaignId {
        let (tenant, campaign) = (TenantId(Uuid::from_u128(1)), CampaignId(Uuid::from_u128(2)));
        let text = "WITH RECURSIVE n(i) AS (VALUES(1) UNION ALL SELECT i + 1 FROM n WHERE i < $3) \
                    INSERT INTO contacts (id, tenant_id, env, campaign_id, phone_number, variables, priority, status, attempts, \
                    version, created_at, zone, address) SELECT unhex(printf('%08x00007000a000%012x', i, i)), $1, 'live', $2, \
                    printf('+1500%07d', i), '{}', 5, 'pending', 0, 1, 0, 'America/New_York', printf('+1500%07d', i) FROM n";
        let values = [tenant.into(), campaign.into(), CONTACTS.into()];
        let statement = Statement::from_sql_and_values(DatabaseBackend::Sqlite, text, values);
        self.db.execute_raw(statement).await.unwrap();
        campaign
    }

    /// Steps of canceling a slice.
    async fn cancel(&self, campaign: CampaignId) -> (Canceled, u64) {
        let before = self.steps.load(Ordering::Relaxed);
        let transaction = self.db.begin().await.unwrap();
        let canceled = contact::cancel(&transaction, campaign, ContactId(uuid::Uuid::max()), SLICE)
            .await
            .unwrap();
        transaction.commit().await.unwrap();
        (canceled, self.steps.load(Ordering::Relaxed) - before)
    }

    /// Sessions that have ended.
    async fn ended(&self) {
        self.make(
            "WITH RECURSIVE n(i) AS (VALUES(1) UNION ALL SELECT i + 1 FROM n WHERE i < $1) \
             INSERT INTO sessions (id, tenant_id, env, status, phase, agent_id, agent_version, attempt, variables, metadata, \
             ring_timeout_seconds, max_duration_seconds, duration_seconds, actual_cost_cents, version, created_at) \
             SELECT unhex(printf('%08x00007000a000%012x', i, i)), unhex(printf('%08x000070008000000000000000', i % 50)), 'live', \
             'completed', 'ended', x'00000000000070008000000000000000', 1, 1, '{}', '{}', 30, 600, 10, 0, 1, 0 FROM n",
        )
        .await;
    }

    /// A log of deliveries that were made, and behind it some that are held.
    async fn log(&self) -> EndpointId {
        self.make(
            "WITH RECURSIVE n(i) AS (VALUES(1) UNION ALL SELECT i + 1 FROM n WHERE i < $1) \
             INSERT INTO deliveries (endpoint_id, id, tenant_id, env, event_id, event_seq, origin, status, attempts, created_at) \
             SELECT x'00000000000000000000000000000003', unhex(printf('%08x00007000a000%012x', i, i)), \
             x'00000000000000000000000000000001', 'live', unhex(printf('%08x00007000a000%012x', i, i)), i, 'live', \
             CASE WHEN i > $1 - 10 THEN 'held' ELSE 'succeeded' END, 1, 0 FROM n",
        )
        .await;
        EndpointId(Uuid::from_u128(3))
    }

    async fn make(&self, text: &str) {
        let statement = Statement::from_sql_and_values(DatabaseBackend::Sqlite, text, [CONTACTS.into()]);
        self.db.execute_raw(statement).await.unwrap();
    }

    fn steps(&self) -> u64 {
        self.steps.load(Ordering::Relaxed)
    }

    /// The first page of what a filter lets through: how many sessions there are, and in how many steps they are found.
    async fn page(&self, filter: session::Filter) -> (usize, u64) {
        let tenant = TenantId(Uuid::from_u128(0x0000_0007_0000_8000_0000_0000_0000_0000));
        let page = Page {
            limit: 10,
            ..Page::default()
        };
        let before = self.steps();
        let mut found = 0;
        assert!(!filter.searches(), "{filter:?}");
        for list in filter.lists(tenant, Env::Live) {
            let list = page.of(list, session::Column::Id, session::Column::CreatedAt);
            found += list.limit(page.limit).all(&self.db).await.unwrap().len();
        }
        (found, self.steps() - before)
    }

    /// So many attempts to reach somebody, with as many of others between them, and behind all of them what came of each.
    async fn attempts(&self, tenant: TenantId, count: i64) {
        let text = "WITH RECURSIVE n(i) AS (VALUES(1) UNION ALL SELECT i + 1 FROM n WHERE i < $2 * 4) \
                    INSERT INTO attempt_records (tenant_id, env, n, kind, attempt_id, dial_n, number_hash, at, body, prev_hash, hash) \
                    SELECT $1, 'live', i, CASE WHEN i <= $2 * 2 THEN 'attempt' ELSE 'outcome' END, \
                    unhex(printf('%08x00007000a000%012x', (i - 1) % ($2 * 2), 0)), 0, \
                    CASE WHEN i <= $2 * 2 THEN CASE i % 2 WHEN 1 THEN 'theirs' ELSE printf('other %d', i) END END, i, '{}', '', '' FROM n";
        let statement = Statement::from_sql_and_values(DatabaseBackend::Sqlite, text, [tenant.into(), count.into()]);
        self.db.execute_raw(statement).await.unwrap();
    }

    /// Where the rows of that person stand, and in how many steps they are read.
    async fn walk(&self, tenant: TenantId) -> (Vec<i64>, u64) {
        let before = self.steps();
        let mut rows = PersonRows::new((tenant, Env::Live), "theirs", (0, i64::MAX), 100_000);
        let mut places = Vec::new();
        loop {
            let page = rows.next(&self.db).await.unwrap();
            if page.is_empty() {
                return (places, self.steps() - before);
            }
            places.extend(page.iter().map(|row| row.n));
        }
    }

    /// Steps of looking for whoever is not at an end yet.
    async fn unfinished(&self, campaign: CampaignId) -> u64 {
        let before = self.steps.load(Ordering::Relaxed);
        let found = contact::unfinished(&self.db, campaign, 1).await.unwrap();
        assert_eq!(found.len(), 1);
        self.steps.load(Ordering::Relaxed) - before
    }
}

#[tokio::test]
async fn the_last_contacts_of_a_list_are_canceled_as_fast_as_the_first() {
    let counted = Counted::open().await;
    let campaign = counted.list().await;
    let (_, first) = counted.cancel(campaign).await;
    let looked = counted.unfinished(campaign).await;
    assert!(first > 0, "nothing was counted");
    for _ in 0..CONTACTS / SLICE - 2 {
        let (canceled, steps) = counted.cancel(campaign).await;
        assert_eq!(canceled.pending, SLICE);
        assert!(steps <= 2 * first, "{steps} after {first}");
    }
    assert!(counted.unfinished(campaign).await <= 2 * looked + 10);
}

/// Far fewer steps than rows that are at an end.
const FEW: u64 = 500;

#[tokio::test]
async fn what_the_reconcile_asks_walks_past_no_session_that_has_ended() {
    let counted = Counted::open().await;
    counted.ended().await;
    let before = counted.steps();
    assert!(
        session::open(&counted.db, Share::Whole, None, 1_000)
            .await
            .unwrap()
            .is_empty()
    );
    let looked = counted.steps();
    assert!(looked - before < FEW, "{} steps to open sessions", looked - before);
    assert!(room::behind(&counted.db, Share::Whole, 1_000).await.unwrap().is_empty());
    let steps = counted.steps() - looked;
    assert!(steps < FEW, "{steps} steps to rooms out of step");
}

#[tokio::test]
async fn held_deliveries_are_found_behind_a_long_log() {
    let counted = Counted::open().await;
    let endpoint = counted.log().await;
    let before = counted.steps();
    assert!(delivery::has_held(&counted.db, endpoint).await.unwrap());
    let put_away = delivery::put_away(&counted.db, endpoint, PutAway::CancelHeld).await;
    assert_eq!(put_away.unwrap(), 10);
    assert!(!delivery::has_held(&counted.db, endpoint).await.unwrap());
    let steps = counted.steps() - before;
    assert!(steps < FEW, "{steps} steps");
}

/// Whatever a list is asked for that the console's pages and programs ask for, and however few there are behind however many others.
#[tokio::test]
async fn the_first_page_of_a_filtered_list_costs_the_same_however_long_the_list_is() {
    let counted = Counted::open().await;
    counted.ended().await;
    // All of one tenant; what is looked for is the oldest.
    counted
        .make(
            "UPDATE sessions SET tenant_id = x'00000007000080000000000000000000', direction = 'outbound', \
             to_number = printf('+1500%07d', rowid), agent_id = CASE WHEN rowid < 4 THEN x'00000000000070008000000000000009' \
             ELSE agent_id END, status = CASE WHEN rowid < 3 THEN 'busy' WHEN rowid < 5 THEN 'failed' ELSE status END, \
             client_reference_id = CASE WHEN rowid < $1 / $1 + 1 THEN 'order 7' END, \
             email = CASE WHEN rowid < 4 THEN 'Ada@Example.com' WHEN rowid < $1 / 2 THEN 'other@example.com' END, \
             disposition_code = CASE WHEN rowid < 3 THEN 'booked' END WHERE $1 > 0",
        )
        .await;
    let any = session::Filter::default;
    let filters = [
        (10, any()),
        (
            1,
            session::Filter {
                phone_number: Some("+15000000001".parse().unwrap()),
                ..any()
            },
        ),
        (
            3,
            session::Filter {
                agent_id: Some(AgentId(Uuid::from_u128(0x7000_8000_0000_0000_0009))),
                ..any()
            },
        ),
        (
            2,
            session::Filter {
                statuses: vec![session::Status::Busy],
                ..any()
            },
        ),
        (
            4,
            session::Filter {
                statuses: vec![session::Status::Busy, session::Status::Failed, session::Status::Queued],
                ..any()
            },
        ),
        (
            1,
            session::Filter {
                client_reference_id: Some("order 7".into()),
                ..any()
            },
        ),
        (
            3,
            session::Filter {
                email: vec!["ada@example.com".into()],
                ..any()
            },
        ),
        (
            2,
            session::Filter {
                disposition_code: Some("booked".into()),
                ..any()
            },
        ),
    ];
    for (count, filter) in filters {
        let (found, steps) = counted.page(filter.clone()).await;
        assert_eq!(found, count, "{filter:?}");
        assert!(steps < FEW, "{steps} steps: {filter:?}");
    }
}

/// Whatever else is on record between them, such as a long list of opt-outs that was read in.
#[tokio::test]
async fn the_first_page_of_attempts_walks_past_nothing_that_is_not_one() {
    let counted = Counted::open().await;
    counted
        .make(
            "WITH RECURSIVE n(i) AS (VALUES(1) UNION ALL SELECT i + 1 FROM n WHERE i < $1) \
             INSERT INTO attempt_records (tenant_id, env, n, kind, attempt_id, dial_n, at, body, prev_hash, hash) \
             SELECT x'00000000000000000000000000000001', 'live', i, CASE WHEN i IN (1, 2, $1) THEN 'attempt' ELSE 'opt_out' END, \
             unhex(printf('%08x00007000a000%012x', i, i)), 0, i, '{}', '', '' FROM n",
        )
        .await;
    counted
        .make(
            "INSERT INTO attempt_chains (tenant_id, env, n, hash, version, updated_at) \
             VALUES (x'00000000000000000000000000000001', 'live', $1, '', 1, 0)",
        )
        .await;
    let owner = (TenantId(Uuid::from_u128(1)), Env::Live);
    for (newest_first, expected) in [(true, [CONTACTS, 2, 1]), (false, [1, 2, CONTACTS])] {
        let page = NPage {
            limit: 10,
            after: None,
            newest_first,
        };
        let before = counted.steps();
        let listed = attempt::list(&counted.db, owner, attempt::Filter::default(), page).await;
        let steps = counted.steps() - before;
        let (rows, has_more) = listed.unwrap();
        let places: Vec<i64> = rows.iter().map(|row| row.n).collect();
        assert_eq!((places.as_slice(), has_more), (&expected[..], false));
        assert!(steps < FEW, "{steps} steps");
    }
}

/// What came of an attempt stands far behind it, so a look at each page for what follows all that were read is easily made.
#[tokio::test]
async fn eight_times_as_much_about_a_person_is_read_in_eight_times_as_many_steps() {
    let counted = Counted::open().await;
    let mut steps = Vec::new();
    for (tenant, count) in [(1, 1_000), (2, 8_000)] {
        let tenant = TenantId(Uuid::from_u128(tenant));
        counted.attempts(tenant, count).await;
        let (places, taken) = counted.walk(tenant).await;
        let expected: Vec<i64> = (1..=4 * count).step_by(2).collect();
        assert!(places == expected, "{} rows of {}", places.len(), expected.len());
        steps.push(taken);
    }
    assert!(steps[0] > 0, "nothing was counted");
    assert!(steps[1] <= 10 * steps[0], "{steps:?}");
}

/// However much it has dialled today and before: each dial asks, and so does each request for a call.
#[tokio::test]
async fn what_a_key_has_used_is_known_without_a_look_at_all_its_calls() {
    let counted = Counted::open().await;
    counted.ended().await;
    // One each five seconds from the day's beginning on, of which one in a hundred was talked.
    counted
        .make(
            "UPDATE sessions SET api_key_id = x'00000000000000000000000000000004', dialed_at = rowid * $1, \
             actual_cost_cents = CASE rowid % 100 WHEN 0 THEN 7 ELSE 0 END",
        )
        .await;
    let key = api_key::Model {
        id: ApiKeyId(Uuid::from_u128(4)),
        tenant_id: TenantId(Uuid::from_u128(1)),
        name: "k".into(),
        key_prefix: String::new(),
        key_hash: String::new(),
        env: Env::Live,
        scopes: Scopes::all(),
        max_spend_cents_per_day: Some(10_000),
        max_calls_per_minute: Some(100),
        expires_at: None,
        created_at: Moment::from_millis(0),
        last_used_at: None,
        revoked_at: None,
    };
    let last = Moment::from_millis(CONTACTS * CONTACTS);
    let before = counted.steps();
    let used = session::key_use(&counted.db, &key, last, &[]).await.unwrap();
    let looked = counted.steps();
    assert_eq!((used.spent, used.dialed.len()), (Cents(CONTACTS / 100 * 7), 12));
    assert!(looked - before < FEW, "{} steps to what it has used", looked - before);
    assert!(session::waiting_of_key(&counted.db, key.id).await.unwrap().is_empty());
    let steps = counted.steps() - looked;
    assert!(steps < FEW, "{steps} steps to its calls that wait");
}
