//! The migration runner: whatever it finds, it goes on from there, refuses, or waits. Nothing is done by half.
use crate::world::{Backend, TestDatabase};
use entities::db::{Db, Location};
use futures_util::future::join_all;
use sea_orm::{ConnectionTrait, Database, DatabaseConnection, DbErr, QueryResult, Statement};

/// The names that databases know the changes by, in the order in which they are made: a new one comes behind them, and these stay.
const RELEASED: [&str; 33] = [
    "m2026_11_20_000001_initial",
    "m2026_11_21_000002_calling_rules",
    "m2026_11_21_000003_the_call",
    "m2026_11_22_000004_messages",
    "m2026_11_22_000007_trunks",
    "m2026_11_22_000005_topups",
    "m2026_11_22_000006_voices",
    "m2026_11_22_000008_credits",
    "m2026_11_22_000009_rooms",
    "m2026_11_22_000014_access",
    "m2026_11_22_000017_numbers",
    "m2026_11_23_000019_imports",
    "m2026_11_23_000020_reviews",
    "m2026_11_23_000021_refunds",
    "m2026_11_26_000022_latency",
    "m2026_11_27_000023_telephony",
    "m2026_11_27_000024_trunks",
    "m2026_11_27_000025_key_limits",
    "m2026_11_28_000026_console",
    "m2026_11_28_000027_erasure",
    "m2026_11_28_000028_nodes",
    "m2026_11_29_000029_retention",
    "m2026_11_30_000030_law",
    "m2026_11_30_000031_consents",
    "m2026_11_30_000032_registers",
    "m2026_11_30_000033_attempt_records",
    "m2026_11_30_000034_abandonment",
    "m2026_11_30_000035_people",
    "m2026_11_30_000036_voice_consent",
    "m2026_11_30_000037_openings",
    "m2026_11_30_000038_skip_rules",
    "m2026_11_30_000039_blanked",
    "m2026_11_30_000041_register_answers",
];

fn on(backend: Backend, test: impl AsyncFnOnce(&TestDatabase)) {
    actix_rt::System::new().block_on(async {
        if let Some(mut database) = TestDatabase::new(backend).await {
            test(&database).await;
            database.drop().await;
        }
    });
}

async fn open(database: &TestDatabase) -> Db {
    let location = Location::parse(&database.url).unwrap();
    Db::open(&location).await.unwrap()
}

async fn execute(db: &impl ConnectionTrait, statement: &str) {
    db.execute_unprepared(statement)
        .await
        .unwrap_or_else(|error| panic!("{statement}: {error}"));
}

/// What is noted of the changes, in the order of their names.
async fn noted(db: &DatabaseConnection) -> Vec<(String, i64)> {
    let text = "SELECT version, applied_at FROM seaql_migrations ORDER BY version";
    let rows = db
        .query_all_raw(Statement::from_string(db.get_database_backend(), text))
        .await
        .unwrap();
    let note = |row: &QueryResult| {
        let name: String = row.try_get_by_index(0).unwrap();
        (name, row.try_get_by_index(1).unwrap())
    };
    rows.iter().map(note).collect()
}

async fn number(db: &DatabaseConnection, text: &str) -> i64 {
    let asked = Statement::from_string(db.get_database_backend(), text);
    let row = db.query_one_raw(asked).await.unwrap().unwrap();
    row.try_get_by_index(0).unwrap()
}

fn names(noted: &[(String, i64)]) -> Vec<&str> {
    noted.iter().map(|(name, _)| name.as_str()).collect()
}

fn in_order_of_names(names: &[&'static str]) -> Vec<&'static str> {
    let mut names = names.to_vec();
    names.sort_unstable();
    names
}

fn each_is_made_once(backend: Backend) {
    on(backend, async |database| {
        let db = open(database).await;
        let pool = db.write.pool().unwrap();
        assert_eq!(migration::pending(pool).await.unwrap(), RELEASED);
        migration::up_to(pool, RELEASED[3]).await.unwrap();
        assert_eq!(migration::pending(pool).await.unwrap(), RELEASED[3..]);
        migration::up(pool).await.unwrap();
        assert_eq!(migration::pending(pool).await.unwrap(), Vec::<&str>::new());
        let first = noted(pool).await;
        assert_eq!(names(&first), in_order_of_names(&RELEASED));
        migration::up(pool).await.unwrap();
        assert_eq!(noted(pool).await, first, "a second time changes nothing");
        db.close().await;
    });
}
#[test]
fn each_change_is_made_once_on_sqlite() {
    each_is_made_once(Backend::Sqlite);
}
#[test]
fn each_change_is_made_once_on_postgres() {
    each_is_made_once(Backend::Postgres);
}

fn of_a_newer_version(backend: Backend) {
    on(backend, async |database| {
        let db = open(database).await;
        let pool = db.write.pool().unwrap();
        migration::up_to(pool, RELEASED[13]).await.unwrap();
        execute(
            pool,
            "INSERT INTO seaql_migrations (version, applied_at) VALUES ('m2999_01_01_000001_later', 5)",
        )
        .await;
        let before = noted(pool).await;
        for answer in [
            migration::up(pool).await,
            migration::up_to(pool, RELEASED[13]).await,
            migration::pending(pool).await.map(drop),
        ] {
            let why = match answer {
                Err(DbErr::Migration(why)) => why,
                other => panic!("{other:?}"),
            };
            assert!(why.contains("`m2999_01_01_000001_later`"), "{why}");
            assert!(why.contains("run that version, or restore a copy"), "{why}");
        }
        assert_eq!(
            noted(pool).await,
            before,
            "it is not touched, though ours has more to do"
        );
        db.close().await;
    });
}
#[test]
fn a_database_of_a_newer_version_is_refused_on_sqlite() {
    of_a_newer_version(Backend::Sqlite);
}
#[test]
fn a_database_of_a_newer_version_is_refused_on_postgres() {
    of_a_newer_version(Backend::Postgres);
}

/// Nothing that another program keeps in a schema of its own is read as ours or changed, though the search path leads to it.
#[test]
fn another_schema_on_the_search_path_is_not_ours() {
    on(Backend::Postgres, async |database| {
        let outside = Database::connect(&database.url).await.unwrap();
        let (_, name) = database.url.rsplit_once('/').unwrap();
        for statement in [
            "CREATE SCHEMA theirs",
            "CREATE TABLE theirs.seaql_migrations (version varchar NOT NULL PRIMARY KEY, applied_at bigint NOT NULL)",
            "INSERT INTO theirs.seaql_migrations VALUES ('m2001_theirs', 7)",
            "CREATE TABLE theirs.tenants (id integer)",
            &format!("ALTER DATABASE {name} SET search_path = public, theirs"),
        ] {
            execute(&outside, statement).await;
        }
        outside.close().await.unwrap();

        let db = open(database).await;
        let pool = db.write.pool().unwrap();
        assert_eq!(migration::pending(pool).await.unwrap(), RELEASED);
        migration::up(pool).await.unwrap();
        assert_eq!(names(&noted(pool).await), in_order_of_names(&RELEASED));
        let theirs = "SELECT COUNT(*) FROM theirs.seaql_migrations";
        assert_eq!(number(pool, theirs).await, 1);
        let columns = |schema: &str| {
            format!(
                "SELECT COUNT(*) FROM information_schema.columns WHERE table_schema = '{schema}' AND table_name = 'tenants'"
            )
        };
        assert_eq!(number(pool, &columns("theirs")).await, 1);
        assert!(number(pool, &columns("public")).await > 5);
        db.close().await;
    });
}

/// Both succeed: one waits for the other, or finds done what it came for.
fn two_at_once(backend: Backend) {
    on(backend, async |database| {
        let starts = (0..2).map(|_| async {
            let db = open(database).await;
            let done = migration::up(db.write.pool().unwrap()).await;
            db.close().await;
            done
        });
        let done = join_all(starts).await;
        assert!(done.iter().all(Result::is_ok), "{done:?}");
        let db = open(database).await;
        let pool = db.write.pool().unwrap();
        assert_eq!(names(&noted(pool).await), in_order_of_names(&RELEASED));
        db.close().await;
    });
}
/// More than once: what would go wrong goes wrong in some runs.
#[test]
fn two_first_starts_at_once_on_sqlite() {
    for _ in 0..10 {
        two_at_once(Backend::Sqlite);
    }
}
#[test]
fn two_first_starts_at_once_on_postgres() {
    for _ in 0..3 {
        two_at_once(Backend::Postgres);
    }
}

/// A database that the library has looked after which did this before: its table, by its statement, and rows from before the
/// changes that are still to come.
fn of_a_former_version(backend: Backend) {
    const TABLE: &str = r#"CREATE TABLE IF NOT EXISTS "seaql_migrations" ( "version" varchar NOT NULL PRIMARY KEY, "applied_at" bigint NOT NULL )"#;
    const DONE: usize = 11;
    on(backend, async |database| {
        let db = open(database).await;
        let pool = db.write.pool().unwrap();
        migration::up_to(pool, RELEASED[DONE]).await.unwrap();
        execute(pool, "DROP TABLE seaql_migrations").await;
        execute(pool, TABLE).await;
        for name in &RELEASED[..DONE] {
            let note = format!("INSERT INTO seaql_migrations (version, applied_at) VALUES ('{name}', 1700000000)");
            execute(pool, &note).await;
        }
        let id = match backend {
            Backend::Sqlite => "X'00000000000070008000000000000001'",
            Backend::Postgres => "'00000000-0000-7000-8000-000000000001'",
        };
        for statement in [
            format!(
                "INSERT INTO topups (id, tenant_id, env, amount_cents, currency, processor, status, refunded_cents, created_at, \
                 version) VALUES ({id}, {id}, 'live', 5000, 'usd', 'stripe', 'succeeded', 700, 1700000000000, 3)"
            ),
            format!(
                "INSERT INTO contacts (id, tenant_id, env, campaign_id, phone_number, variables, priority, status, attempts, \
                 version, created_at, granted_attempts) \
                 VALUES ({id}, {id}, 'live', {id}, '+12025550171', '{{}}', 5, 'pending', 2, 1, 1700000000000, 1)"
            ),
            format!(
                "INSERT INTO imports (id, tenant_id, env, kind, status, bytes, bytes_done, rows_done, accepted, duplicates, \
                 rejected, rejections, created_at) \
                 VALUES ({id}, {id}, 'live', 'contacts', 'completed', 9, 9, 1, 1, 0, 0, '[]', 1700000000000)"
            ),
        ] {
            execute(pool, &statement).await;
        }
        assert_eq!(migration::pending(pool).await.unwrap(), RELEASED[DONE..]);

        migration::up(pool).await.unwrap();

        let after = noted(pool).await;
        assert_eq!(names(&after), in_order_of_names(&RELEASED));
        let kept = after.iter().filter(|(_, at)| *at == 1_700_000_000).count();
        assert_eq!(kept, DONE, "what was done before is not noted anew: {after:?}");
        let told = "SELECT CAST(refunds ->> 'told_cents' AS bigint) FROM topups";
        assert_eq!(number(pool, told).await, 700);
        let limit = "SELECT CAST(attempt_limit AS bigint) FROM contacts";
        assert_eq!(
            number(pool, limit).await,
            3,
            "two attempts, and the one that was granted"
        );
        let imports = "SELECT COUNT(*) FROM imports WHERE delimiter = 'comma'";
        assert_eq!(number(pool, imports).await, 1);
        db.close().await;
    });
}
#[test]
fn a_database_of_a_former_version_goes_on_on_sqlite() {
    of_a_former_version(Backend::Sqlite);
}
#[test]
fn a_database_of_a_former_version_goes_on_on_postgres() {
    of_a_former_version(Backend::Postgres);
}
