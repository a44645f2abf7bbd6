//! The law as data: which rules hold for a call or a message, and what each says of it.
//!
//! A [`Pack`] holds the rules of many places, each with the days between which it holds and its source: the files of `law/`. [`Law`] is
//! a pack under an operator's own file, which makes it stricter. [`judge`] asks all rules that concern one attempt, from its [`Facts`]
//! alone: the record of an attempt keeps the facts and the pack's version, so that anybody can ask again years later and hears the
//! same. What is to be done during the call and after it are its [`Duties`]; what is known of it becomes facts by [`LegalTerms`].
pub mod abandonment;
mod both_clocks;
pub mod caller;
mod dates;
mod duties;
mod entry;
pub mod facts;
mod force;
pub mod holidays;
mod index;
mod judge;
mod judgement;
mod lint;
pub mod notices;
mod pack;
pub mod places;
mod read;
pub mod record;
mod rule;
mod shown;
mod signature;
mod span;
mod stricter;
mod terms;
mod tighten;

pub use both_clocks::by_the_later;
pub use duties::{AbandonmentDuty, Duties};
pub use facts::Facts;
pub use force::{Law, Scope};
pub use judge::{UNDECIDED, covering, is_same_seller, judge};
pub use judgement::{Asked, Judgement, Verdict};
pub use pack::{Pack, Texts, check, of_version, pack};
pub use places::places_of;
pub use read::LawError;
pub use rule::{Confidence, FreshRegister, GateKind, IdentityField, LawRule, Listed, Says, Where, suffices};
pub use shown::CallerRules;
pub use signature::NoRoom;
pub use span::Span;
pub use terms::{Bound, Judged, LegalRecord, LegalTerms, OpenedMessage, Whom};
pub use tighten::{OperatorLaw, Override};

#[cfg(test)]
mod tests;
