//! What numbers need: trunks, proof of whose they are, slots, and an operator who lets them call.
mod claims;
mod concurrency;
mod living_trunks;
mod peer;
mod reach;
mod suspension;
mod trunks;
mod verified;
