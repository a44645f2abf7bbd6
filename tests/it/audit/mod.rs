//! The checker of the promises: it reads what the service and the carrier wrote down, and says what does not fit.
//!
//! It knows no table and none of the service's types, only five papers: the lines of `callboard audit dump`, the
//! carrier's log of calls (K), what the providers of messages were asked, the list of what the API acknowledged (A), and the
//! names of the files in the recordings' folder. So the same mistake can hardly be made on both sides. It can be asked after
//! kills, at the end of any scenario, and by the load runs, which compile these very files (`tests/load/main.rs`):
//!
//! - `read` and `books` take each line strictly, and `facts` puts them together: a line that cannot be read is itself a breach,
//!   for a checker that skips what it does not understand finds nothing;
//! - `check` is the table of invariants; each is one function in `records`, `events`, `talks`, `recordings`, `dialing`, `hours`,
//!   `pace`, `letters`, `money` (with `falls`), `rooms`, `law`, `lawful` or `consents`.
//!
//! That every clause bites is shown in `tests/it/bites`.
pub mod books;
mod check;
mod consents;
mod dialing;
mod events;
mod facts;
mod falls;
mod hours;
pub mod law;
mod lawful;
mod letters;
pub mod money;
mod pace;
pub mod read;
mod recordings;
mod records;
mod rooms;
mod talks;

pub use check::{Breach, Evidence, check};

/// The first twenty breaches, a line each, under their number; for the message of a failing test.
pub fn report(breaches: &[Breach]) -> String {
    let mut text = format!("{} breaches", breaches.len());
    for Breach { invariant, what } in breaches.iter().take(20) {
        text += &format!("\n{invariant}: {what}");
    }
    if breaches.len() > 20 {
        text += "\n...";
    }
    text
}
