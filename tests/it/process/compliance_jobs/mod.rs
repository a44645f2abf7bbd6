//! kill -9 while what the law asks for is at work: a register that is uploaded, an export of the record, the erasure of people, a list of
//! consents that is read in. What was cut off goes on, or has left nothing that counts, and is done once.
mod record;
mod registers;

use super::{Calls, Place, on_disk, terminate};
use crate::world::{Backend, awaited, number};
use runtime::clock::Clock;
use sea_orm::{ConnectionTrait, Database, DatabaseConnection, Statement};
use serde_json::{Value, json};

/// What the service has written, whether it runs or not.
struct Rows(DatabaseConnection);

impl Rows {
    async fn of(place: &Place) -> Self {
        Rows(Database::connect(&place.database.url).await.unwrap())
    }

    /// `what`: a table, and maybe of which rows.
    async fn count(&self, what: &str) -> i64 {
        let text = format!("SELECT COUNT(*) FROM {what}");
        let count = Statement::from_string(self.0.get_database_backend(), text);
        let row = self.0.query_one_raw(count).await.unwrap().unwrap();
        row.try_get_by_index(0).unwrap()
    }

    async fn until(&self, what: &str, so: impl Fn(i64) -> bool) {
        awaited(what, async || so(self.count(what).await).then_some(())).await;
    }
}

/// Consents of a list, without those that stand there twice, and those that are not good.
const CONSENTS: usize = 3_000;
const TWICE_EVERY: usize = 25;
const BAD_EVERY: usize = 100;

fn consents() -> String {
    let given_at = Clock::wall().now().plus_seconds(-86_400);
    let mut file = "phone_number,seller,channels,purposes,tier,method,given_at\n".to_owned();
    for n in 0..CONSENTS {
        let row = |tier: &str| format!("+15004{n:06},Acme Inc.,phone,service,{tier},form,{given_at}\n");
        file += &row("express");
        if n % TWICE_EVERY == 0 {
            file += &row("express");
        }
        if n % BAD_EVERY == 0 {
            file += &row("hearsay");
        }
    }
    file
}

/// By hand with more: `CALLBOARD_TEST_KILLS=30`.
fn killed_while_consents_are_read_in(backend: Backend) {
    on_disk(backend, async |place: Place| {
        let kills = number("CALLBOARD_TEST_KILLS", 3);
        let key = place.workspace();
        let mut serving = place.serve(&[]);
        let (api, rows) = (Calls::to(&place, key), Rows::of(&place).await);
        let job = api.upload("/v1/consents/import", consents()).await;
        let path = format!("/v1/imports/{}", job["id"].as_str().unwrap());
        let mut cut_off = 0;
        for kill in 0..kills {
            let goal = i64::try_from(CONSENTS * (kill + 1) / (kills + 2)).unwrap();
            rows.until("consents", |count| count >= goal).await;
            serving.kill().unwrap();
            serving.wait().unwrap();
            cut_off += rows.count("imports WHERE status = 'running'").await;
            serving = place.serve(&[]);
        }
        assert!(cut_off > 0, "no kill fell into the middle of the list");
        let job = api.until(&path, |job| job["status"] != "running").await;
        let (twice, bad) = (CONSENTS / TWICE_EVERY, CONSENTS / BAD_EVERY);
        for (name, expected) in [
            ("rows", CONSENTS + twice + bad),
            ("accepted", CONSENTS),
            ("duplicates", twice),
            ("rejected", bad),
        ] {
            assert_eq!(job[name], expected, "{name}: {job}");
        }
        assert_eq!((&job["status"], &job["error"]), (&json!("completed"), &Value::Null));
        let expected = i64::try_from(CONSENTS).unwrap();
        for (what, expected) in [
            ("consents", expected),
            ("(SELECT DISTINCT fingerprint FROM consents) AS facts", expected),
            ("import_bodies", 0),
        ] {
            assert_eq!(rows.count(what).await, expected, "{what}");
        }
        terminate(&mut serving);
        eprintln!("{kills} kills, {cut_off} in the middle of the list: each row is read in once");
    });
}

#[test]
fn killed_while_consents_are_read_in_on_sqlite() {
    killed_while_consents_are_read_in(Backend::Sqlite);
}
#[test]
fn killed_while_consents_are_read_in_on_postgres() {
    killed_while_consents_are_read_in(Backend::Postgres);
}
