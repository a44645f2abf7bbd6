//! The load runs. Everything stays on loopback and ends by itself; docs/PERFORMANCE.md has the figures.
//!
//! The service runs in this process, and for rooms, phones, talks and neighbours in one of its own; the receiver of webhooks always does. Each run with webhooks
//! begins with the raw limit: the service's own client posting the same signed body to the same receiver, without storage.
#![expect(clippy::expect_used, reason = "a run that cannot go on has failed")]

#[path = "../it/audit/mod.rs"]
mod audit;
mod calls;
mod campaign;
mod dispatch;
mod gate;
mod guests;
mod lists;
mod neighbours;
#[path = "../it/world/phone/mod.rs"]
#[expect(dead_code, clippy::unwrap_used, reason = "made for tests, which use all of it")]
mod peers;
mod phone;
mod plot;
mod process;
mod prune;
mod receiver;
mod registers;
mod rooms;
mod service;
mod soak;
mod talk;
mod webhooks;

use std::time::Duration;

fn main() {
    let arguments: Vec<String> = std::env::args()
        .skip(1)
        .filter(|argument| argument != "--bench")
        .collect();
    let option = |name: &str| {
        let at = arguments.iter().position(|argument| argument == name)?;
        arguments.get(at + 1).cloned()
    };
    let number = |name: &str, default: usize| {
        option(name).map_or(default, |text| text.parse().unwrap_or_else(|_| panic!("{name} N")))
    };
    let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
    let folder = tempfile::tempdir().expect("a temporary folder");
    let database =
        option("--database").unwrap_or_else(|| format!("sqlite://{}", folder.path().join("load.db").display()));
    let mut sound = true;
    let (picture, shown) = (option("--plot"), database.clone());
    if picture.is_some() {
        plot::begin();
    }
    actix_rt::System::new().block_on(async {
        match arguments.first().map(String::as_str) {
            Some("receiver") => receiver::serve().await,
            Some("idle") => webhooks::idle(&database, number("--endpoints", 10_000)).await,
            Some("idle-process") => webhooks::idle_process(&database).await,
            Some("webhooks") => {
                let plan = webhooks::Plan {
                    database,
                    events: number("--events", 100_000),
                    producers: number("--producers", 256),
                    seconds: number("--seconds", 10),
                    only: option("--only"),
                };
                plan.run().await;
            }
            Some("pacing") => dispatch::pacing(&database, number("--seconds", 20)).await,
            Some("list") => dispatch::long_list(&database, number("--contacts", 1_000_000)).await,
            Some("gate") => gate::run(number("--contacts", 20_000), database).await,
            Some("prune") => prune::run(number("--old", 100_000), number("--contacts", 20_000), database).await,
            Some("registers") => registers::run(&database, number("--numbers", 1_000_000)).await,
            Some("lists") => {
                let plan = lists::Plan {
                    database,
                    sessions: number("--sessions", 5_000_000),
                    contacts: number("--contacts", 1_000_000),
                };
                plan.run().await;
            }
            Some("fair") => {
                let seconds = u64::try_from(number("--seconds", 30)).expect("some seconds");
                dispatch::fair(&database, number("--tenants", 100), seconds).await;
            }
            Some("calls") => calls::run(&database, number("--calls", 1_000)).await,
            Some("rooms") => {
                let plan = rooms::Plan {
                    database,
                    rooms: number("--rooms", 50),
                    seconds: u64::try_from(number("--seconds", 30)).expect("some seconds"),
                    at_once: number("--at-once", 50),
                    voice: option("--voice").unwrap_or_else(|| "tones".into()),
                    codec: rooms::codec(option("--codec").as_deref()),
                };
                plan.run().await;
            }
            Some("talk") => {
                let plan = talk::Plan {
                    database,
                    stt_ms: number("--stt-ms", 150),
                    llm_ms: option("--llm-ms").map(|_| number("--llm-ms", 0)),
                    token_ms: number("--token-ms", 20),
                    tts_ms: number("--tts-ms", 100),
                    turns: number("--turns", 20),
                    rooms: number("--rooms", 1),
                    brain: option("--brain"),
                    only: option("--only"),
                    browser: option("--browser"),
                    beside: number("--beside", 0),
                };
                plan.run().await;
            }
            Some("phone") => {
                let plan = phone::Plan {
                    database,
                    calls: number("--calls", 150),
                    rate: number("--cps", 50),
                    seconds: number("--seconds", 60),
                    set_ups: number("--set-ups", 10_000),
                    kills_the_peer: arguments.iter().any(|argument| argument == "--kill-peer"),
                };
                sound = plan.run().await;
            }
            Some("neighbours") => {
                let plan = neighbours::Plan {
                    database,
                    contacts: number("--contacts", 30_000),
                    keys: number("--keys", 12),
                    bodies: number("--bodies", 95),
                    // Of 50 s the worst 1 % of the writes are five: one of them more or less was the figure.
                    seconds: u64::try_from(number("--seconds", 100)).expect("some seconds"),
                };
                plan.run().await;
            }
            Some("noise") => neighbours::make_noise().await,
            Some("soak") => {
                let minutes = number("--hours", 0) * 60 + number("--minutes", 0);
                let plan = soak::Plan {
                    database: option("--database"),
                    duration: Duration::from_secs(60 * u64::try_from(minutes.max(1)).expect("some minutes")),
                    rate: option("--rate").map_or(2.0, |text| text.parse().unwrap_or_else(|_| panic!("--rate N"))),
                };
                sound = plan.run().await;
            }
            Some("asleep") => dispatch::asleep(&database, number("--campaigns", 10_000)).await,
            Some("asleep-process") => dispatch::asleep_process(&database).await,
            Some("campaign") | None => campaign::run(number("--contacts", 20_000), database).await,
            Some(other) => {
                let runs =
                    "campaign, calls, rooms, phone, talk, pacing, list, lists, registers, gate, prune, fair, neighbours, asleep, webhooks, idle or soak";
                panic!("`{other}` is not a load run: {runs}")
            }
        }
    });
    if let Some(picture) = picture {
        let run = arguments.first().map_or("campaign", |run| run.trim_start_matches('-'));
        plot::write(&format!("{run}, {}", service::name_of(&shown)), picture.as_ref());
    }
    // What is left behind goes before a bad end.
    drop(folder);
    if !sound {
        std::process::exit(1);
    }
}
