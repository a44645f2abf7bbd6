//! The checker of the promises bites: to the sound evidence of `story`, `faults` does one wrong at a time, and each is found.
mod faults;
mod story;

use crate::audit::{Breach, Evidence, check, read, report};
