//! SIP trunks: is anybody there?
pub mod ping;
mod protocol;
