//! The schema, one file per change; what a released file makes never changes.
pub use sea_orm_migration::MigratorTrait;
use sea_orm_migration::prelude::*;

mod m2026_11_20_000001_initial;
mod m2026_11_21_000002_calling_rules;
mod m2026_11_21_000003_the_call;
mod m2026_11_22_000004_messages;
mod m2026_11_22_000005_topups;
mod m2026_11_22_000006_voices;
mod m2026_11_22_000007_trunks;
mod m2026_11_22_000008_credits;
mod m2026_11_22_000009_rooms;
mod m2026_11_22_000014_access;
mod m2026_11_22_000017_numbers;
mod m2026_11_23_000019_imports;
mod m2026_11_23_000020_reviews;
mod m2026_11_23_000021_refunds;
mod steps;

pub struct Migrator;

#[async_trait::async_trait]
impl MigratorTrait for Migrator {
    fn migrations() -> Vec<Box<dyn MigrationTrait>> {
        vec![
            Box::new(m2026_11_20_000001_initial::Migration),
            Box::new(m2026_11_21_000002_calling_rules::Migration),
            Box::new(m2026_11_21_000003_the_call::Migration),
            Box::new(m2026_11_22_000004_messages::Migration),
            Box::new(m2026_11_22_000007_trunks::Migration),
            Box::new(m2026_11_22_000005_topups::Migration),
            Box::new(m2026_11_22_000006_voices::Migration),
            Box::new(m2026_11_22_000008_credits::Migration),
            Box::new(m2026_11_22_000009_rooms::Migration),
            Box::new(m2026_11_22_000014_access::Migration),
            Box::new(m2026_11_22_000017_numbers::Migration),
            Box::new(m2026_11_23_000019_imports::Migration),
            Box::new(m2026_11_23_000020_reviews::Migration),
            Box::new(m2026_11_23_000021_refunds::Migration),
        ]
    }
}
