//! kill -9 while telephones ring and people talk: what the service that starts next leaves of it at the other end.
use super::number;
use crate::{
    phone::{
        exchange::{Exchange, PERSON, has},
        stage::{self, CALLEE, Stage, end},
    },
    world::{
        Backend,
        phone::{Need, PATIENCE, pause, pjsip::Pjsip},
    },
};
use sea_orm::{ConnectionTrait, Database, DatabaseConnection, QueryResult, Statement};
use serde_json::{Value, json};
use std::{collections::BTreeSet, time::Instant};

/// Where a call was when the service was killed.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Point {
    /// Its INVITE has left, and no more.
    Sent,
    Rings,
    /// Somebody has picked up, and nobody has acknowledged it.
    PickedUp,
    Talks,
}

const POINTS: [Point; 4] = [Point::Sent, Point::Rings, Point::PickedUp, Point::Talks];

impl Point {
    fn behaviour(self) -> Value {
        match self {
            Point::Sent => json!({ "trying_only": true }),
            Point::Rings | Point::PickedUp => json!({ "code": null }),
            Point::Talks => json!({ "ring_ms": 0 }),
        }
    }

    /// Each has its own telephone, trunk and number.
    fn ours(self) -> String {
        format!("+1202555101{}", self as usize)
    }

    fn callee(self) -> String {
        format!("+1202555011{}", self as usize)
    }
}

async fn kill_at_each_point(stage: &mut Stage) {
    let rounds = number("CALLBOARD_TEST_KILLS", 5);
    let agent = stage.agent(json!({})).await;
    let mut telephones = Vec::new();
    for point in POINTS {
        let telephone = stage.telephone(point.behaviour(), json!({})).await;
        let trunk = stage.trunk(telephone.port, json!({})).await;
        stage.number(&point.ours(), &trunk, json!({})).await;
        telephones.push(telephone);
    }
    let mut sessions = BTreeSet::new();
    let legs = Legs::of(stage).await;
    for round in 0..rounds {
        for (point, telephone) in POINTS.iter().zip(&mut telephones) {
            // Nobody gives up ringing before all are there, however busy the machine is.
            let more = json!({ "from_number": point.ours(), "ring_timeout_seconds": 60 });
            sessions.insert(stage.call(&agent, &point.callee(), more).await);
            eprintln!("round {round}: {point:?}");
            bring_there(*point, telephone).await;
        }
        // It hears nothing any more; then one more telephone is picked up, and the others are not told of its end either.
        stage.freeze();
        let picked_up = &mut telephones[Point::PickedUp as usize];
        picked_up.tell(json!({ "do": "answer" }));
        picked_up.is("CONNECTING").await;
        stage.kill();
        pause([1_000, 3_000, 8_000][round % 3]).await;
        stage.serve_again();
        for (point, telephone) in POINTS.iter().zip(&mut telephones) {
            eprintln!("round {round}: {point:?} is to be hung up");
            telephone.is("DISCONNECTED").await;
            assert!(telephone.open_calls().await.is_empty(), "{point:?} in round {round}");
            let invited = telephone.all("incoming").len();
            assert_eq!(invited, round + 1, "{point:?}: one INVITE for each session");
        }
    }
    for id in &sessions {
        let ended = stage.ended(id).await;
        assert_eq!(end(&ended), ("failed", "node_lost"), "{ended}");
    }
    // Nobody is called again, also when it starts once more in peace.
    stage.stop();
    stage.serve_again();
    for telephone in &mut telephones {
        assert_eq!(telephone.all("incoming").len(), rounds);
    }
    // What was ended is forgotten.
    legs.until("1 = 1", 0).await;
    legs.close().await;
}

/// 57. While two people talk over us: both are hung up by the next process, and neither is called again.
async fn kill_while_two_talk_over_us(stage: &mut Stage) {
    let exchange = Exchange::open(stage).await;
    let mut caller = exchange.telephone(stage, CALLEE, json!({})).await;
    let mut person = exchange.telephone(stage, PERSON, json!({})).await;
    let (id, timeline) = exchange.hand_over(stage, &mut caller).await;
    person.is("CONFIRMED").await;
    stage.api.until(&timeline, has("bridged")).await;
    let legs = Legs::of(stage).await;
    legs.until("phase = 'confirmed'", 2).await;
    stage.kill();
    pause(1_000).await;
    stage.serve_again();
    for telephone in [&mut caller, &mut person] {
        telephone.is("DISCONNECTED").await;
        assert!(telephone.open_calls().await.is_empty());
    }
    let ended = stage.ended(&id).await;
    assert_eq!(end(&ended), ("failed", "node_lost"), "{ended}");
    legs.until("1 = 1", 0).await;
    legs.close().await;
    for telephone in [&mut caller, &mut person] {
        assert_eq!(telephone.all("incoming").len(), 1);
    }
}

/// Plays until the call is where it is to be killed; one that is to be picked up rings until all are there.
async fn bring_there(point: Point, telephone: &mut Pjsip) {
    match point {
        Point::Sent => drop(telephone.hears("incoming", |_| true).await),
        Point::Rings | Point::PickedUp => drop(telephone.is("EARLY").await),
        // Its dialog stands in the database since before the ACK.
        Point::Talks => drop(telephone.is("CONFIRMED").await),
    }
}

/// Rows of legs, of which the next process would still have to rid a peer, as the database has them.
struct Legs(DatabaseConnection);

impl Legs {
    async fn of(stage: &Stage) -> Self {
        Legs(Database::connect(&stage.place.database.url).await.unwrap())
    }

    /// Waits until there are so many like that. They go when nothing of them is on the wire: for up to 32 s an answer may come late.
    async fn until(&self, condition: &str, wanted: i64) {
        let began = Instant::now();
        loop {
            let count = self.count(condition).await;
            if count == wanted {
                return;
            }
            assert!(
                began.elapsed() < 2 * PATIENCE,
                "{count} legs, not {wanted}, are so: {condition}; there are {:?}",
                self.shown().await
            );
            pause(50).await;
        }
    }

    async fn count(&self, condition: &str) -> i64 {
        let text = format!("SELECT COUNT(*) FROM sip_legs WHERE {condition}");
        let row = self.0.query_one_raw(self.statement(&text)).await.unwrap().unwrap();
        row.try_get_by_index(0).unwrap()
    }

    /// Call-ID and phase of each.
    async fn shown(&self) -> Vec<(String, String)> {
        let text = "SELECT call_id, phase FROM sip_legs";
        let rows = self.0.query_all_raw(self.statement(text)).await.unwrap();
        let of = |row: &QueryResult| (row.try_get_by_index(0).unwrap(), row.try_get_by_index(1).unwrap());
        rows.iter().map(of).collect()
    }

    fn statement(&self, text: &str) -> Statement {
        Statement::from_string(self.0.get_database_backend(), text)
    }

    async fn close(self) {
        self.0.close().await.unwrap();
    }
}

/// 56. No call is alive at the other end, and none was placed twice. By hand with more: `CALLBOARD_TEST_KILLS=50`.
#[test]
fn killed_while_telephones_ring_on_sqlite() {
    stage::run_on_disk(Backend::Sqlite, &[Need::Pjsip], kill_at_each_point);
}
#[test]
fn killed_while_telephones_ring_on_postgres() {
    stage::run_on_disk(Backend::Postgres, &[Need::Pjsip], kill_at_each_point);
}

#[test]
fn killed_while_two_talk_over_us_on_sqlite() {
    stage::run_on_disk(
        Backend::Sqlite,
        &[Need::Kamailio, Need::Pjsip],
        kill_while_two_talk_over_us,
    );
}
#[test]
fn killed_while_two_talk_over_us_on_postgres() {
    stage::run_on_disk(
        Backend::Postgres,
        &[Need::Kamailio, Need::Pjsip],
        kill_while_two_talk_over_us,
    );
}
