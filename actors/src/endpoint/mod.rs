//! Webhook endpoints: their settings and whether they receive. Deliveries are [`crate::delivery`]'s.
pub mod actor;

use crate::{
    birth::{self, Birth},
    deps::Deps,
};
use entities::{Result, boxed, webhook_endpoint::Model};

/// Stores one; a repeat of a request that a crash cut off after its commit gets the one that it made.
#[boxed]
pub async fn create(deps: &Deps, endpoint: Model) -> Result<Model> {
    birth::create_or_find(deps, Birth::of(endpoint, Vec::new())).await
}
