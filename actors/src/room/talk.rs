//! stub
use super::wire::{Heard, Wire};
use crate::{
    carrier::{Control, Leg},
    clock::Busy,
    deps::Deps,
};
use std::sync::Arc;
use tokio::sync::mpsc;
pub async fn begin(
    _: &Deps,
    _: Arc<Leg>,
    _: Arc<Wire>,
    _: mpsc::Receiver<Heard>,
    _: mpsc::Receiver<(Control, Option<Busy>)>,
) {
}
