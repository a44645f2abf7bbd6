//! What paces calls: rates, shares, slots and the last second before a call is placed.
pub mod fair;
pub mod gate;
pub mod pace;
pub mod room;
pub mod trunk;
