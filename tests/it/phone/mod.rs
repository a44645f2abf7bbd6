//! Live calls, from outside: the real binary with its API on one side, and telephones on the other that are not ours (sipp, PJSIP,
//! kamailio), or one of ours for what a real one would never do.
//!
//! Each scenario has its number of the list of scenarios in its comment. Kills are in `process/phone.rs`.
mod answers;
mod auth;
mod blocks;
mod carriers;
mod check;
mod codes;
mod disclosed;
mod early;
pub mod exchange;
mod eyes;
mod faults;
mod forks;
mod hold;
mod inbound;
mod long_calls;
mod loss;
mod media;
mod offers;
mod outbound;
mod providers;
mod proxies;
mod refer;
mod secured;
mod session_timers;
mod spellings;
pub mod stage;
mod stalls;
mod strangers;
mod streams;
mod talk;
mod toll;
mod transports;
mod trunks;
mod two_processes;
mod wishes;

/// What sipp plays.
pub mod scenarios {
    pub const ANSWERS: &str = include_str!("sipp/answers.xml");
    pub const BLOCKS: &str = include_str!("sipp/blocks.xml");
    pub const BY_NUMBER: &str = include_str!("sipp/by_number.xml");
    pub const CALLS: &str = include_str!("sipp/calls.xml");
    pub const CANCELS: &str = include_str!("sipp/cancels.xml");
    pub const CANCEL_CROSSES: &str = include_str!("sipp/cancel_crosses.xml");
    pub const CROSSED_BYE: &str = include_str!("sipp/crossed_bye.xml");
    pub const HANGS_UP: &str = include_str!("sipp/hangs_up.xml");
    pub const IS_REFUSED: &str = include_str!("sipp/is_refused.xml");
    pub const OFFERLESS: &str = include_str!("sipp/offerless.xml");
    pub const REFUSES_OFFERS: &str = include_str!("sipp/refuses_offers.xml");
    pub const RINGS: &str = include_str!("sipp/rings.xml");
}

/// Each scenario as two tests: on SQLite and on PostgreSQL. What it needs is a list of `Need`s.
#[macro_export]
macro_rules! on_the_phone { ($($(#[$doc:meta])* async fn $name:ident($stage:ident: &mut Stage) needs [$($need:ident),*] $body:block)*) => { $(
    mod $name {
        use super::*;
        use $crate::{phone::stage, world::{Backend, phone::Need}};
        const NEEDS: &[Need] = &[$(Need::$need),*];
        $(#[$doc])*
        async fn scenario($stage: &mut Stage) $body
        #[test]
        fn on_sqlite() {
            stage::run(Backend::Sqlite, NEEDS, scenario)
        }
        #[test]
        fn on_postgres() {
            stage::run(Backend::Postgres, NEEDS, scenario)
        }
    }
)* } }
