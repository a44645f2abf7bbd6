//! What a register costs: reading and storing its file, its memory, and looking numbers up in it.
use super::service::resident_mib;
use actors::registers::{
    hashes::Hasher, lookup::Registers, questions::Questions, reading::Reading, settle::settle, upload::ROWS,
};
use entities::{
    db::{Db, Location},
    ids::RegisterFileId,
    register::{OPERATOR, chunk},
    values::{Country, E164, Moment},
};
use rules::registers::version::{File, Upload};
use runtime::{keyring::purpose, link_keys::LinkKeys};
use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};
use uuid::Uuid;

/// Numbers that are looked up by one call, as the dispatcher does.
const AT_ONCE: usize = 100;

/// The `n`th number of the list; the odd ones are on it.
fn number(n: usize) -> String {
    let (area, rest) = (200 + n / 8_000_000 % 800, 2_000_000 + n % 8_000_000);
    format!("+1{area}{rest}")
}

pub async fn run(database: &str, numbers: usize) {
    let location = Location::parse(database).expect("a database");
    let db = Db::open(&location).await.expect("a database");
    migration::up(db.write.pool().expect("a pool")).await.expect("a schema");
    let keys = LinkKeys::generate();
    let hasher = Hasher::new(&keys.signing(purpose::REGISTERS));
    let today = Moment::parse("2026-11-30T00:00:00Z").expect("a moment");

    let begun = Instant::now();
    let mut reading = Reading::new(hasher, Country::US, today, numbers);
    let mut lines = String::new();
    for n in 0..numbers {
        lines += &number(2 * n + 1);
        lines.push('\n');
        if lines.len() > 1 << 20 || n + 1 == numbers {
            reading.feed(lines.as_bytes()).expect("numbers");
            lines.clear();
        }
    }
    let read = reading.end().expect("numbers");
    println!("read and hashed {numbers} numbers in {:?}", begun.elapsed());

    let begun = Instant::now();
    let mut file = File {
        id: RegisterFileId::from(Uuid::from_u128(7)),
        content: read.content.clone(),
        numbers: 0,
    };
    let mut chunks = read.chunks(file.id);
    loop {
        let rows = chunks.take(ROWS);
        if rows.is_empty() {
            break;
        }
        let transaction = db.begin().await.expect("a transaction");
        chunk::add(&transaction, &rows).await.expect("rows");
        transaction.commit().await.expect("a commit");
    }
    file.numbers = chunks.numbers();
    let upload = Upload {
        id: Uuid::from_u128(8).into(),
        owner: OPERATOR,
        name: "us_dnc".into(),
        country: Country::US,
        fetched_at: today,
        area_codes: None,
        by: None,
        may_shrink: false,
    };
    let transaction = db.begin().await.expect("a transaction");
    settle(&transaction, &upload, &file, true, today)
        .await
        .expect("a register");
    transaction.commit().await.expect("a commit");
    println!("sorted and stored them in {:?}", begun.elapsed());
    look_up(&db, &keys, numbers).await;
    db.close().await;
}

async fn look_up(db: &Db, keys: &LinkKeys, numbers: usize) {
    let questions = Questions::new(None, Duration::ZERO, 1);
    let registers = Registers::new(keys, 1 << 30, (questions, BTreeMap::new()), None, std::env::temp_dir());
    let ask = async |those: &[E164]| {
        let found = registers.look(&db.read, OPERATOR, &["us_dnc"], those).await;
        let found = found.expect("an answer");
        found.facts.values().flatten().filter(|fact| fact.is_listed).count()
    };
    let parsed = |n: usize| number(n).parse::<E164>().expect("a number");
    let (before, begun) = (resident_mib(), Instant::now());
    ask(&[parsed(1)]).await;
    println!(
        "loaded in {:?}: {:.1} MiB in its table, {:.1} MiB more of the process",
        begun.elapsed(),
        registers.bytes() as f64 / f64::from(1 << 20),
        resident_mib() - before
    );
    // Half of them are listed; made before, so that only looking counts.
    let groups: Vec<Vec<E164>> = (0..1_000)
        .map(|group| {
            (0..AT_ONCE)
                .map(|n| parsed((group * AT_ONCE + n) * 7_919 % (2 * numbers)))
                .collect()
        })
        .collect();
    let (begun, mut listed) = (Instant::now(), 0);
    for group in &groups {
        listed += ask(group).await;
    }
    let all = groups.len() * AT_ONCE;
    let each = begun.elapsed().as_secs_f64() * 1e6 / all as f64;
    println!("looked {all} numbers up, {AT_ONCE} at once: {each:.2} µs each, {listed} are listed");
    let begun = Instant::now();
    for group in groups.iter().take(500) {
        ask(&group[..1]).await;
    }
    println!(
        "one at a time: {:.1} µs each, with the look at its row",
        begun.elapsed().as_secs_f64() * 1e6 / 500.0
    );
}
