//! What numbers need: trunks, proof of whose they are, slots, and an operator who lets them call.
mod claims;
mod concurrency;
mod peer;
mod suspension;
mod trunks;
mod verified;
