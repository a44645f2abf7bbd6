//! Backups, and what becomes of them in another place.
mod broken_off;
mod lost;
mod moved;

use super::{Place, pause, stderr};
use crate::world::{Backend, TestDatabase};
use std::process::{Output, Stdio};

/// With the programs that PostgreSQL brings.
fn run(place: &Place, arguments: &[&str]) -> Output {
    let mut command = place.command(arguments);
    command.env("PATH", std::env::var_os("PATH").unwrap());
    command.stdin(Stdio::null()).output().unwrap()
}

/// Another machine, with the same key.
async fn elsewhere(place: &Place, backend: Backend) -> Option<Place> {
    let mut other = Place::with(TestDatabase::on_disk(backend).await?);
    other.key.clone_from(&place.key);
    Some(other)
}

/// Why dispatch does not resume once all is put away.
async fn refused_to_resume(place: &Place) -> String {
    let mut refused = String::new();
    for _ in 0..600 {
        refused = stderr(&place.run(&["dispatch", "resume"]));
        if !refused.contains("not yet put away") {
            break;
        }
        pause(100).await;
    }
    refused
}

fn assert_refused(place: &Place, file: &str, arguments: &[&str], words: &str) {
    let arguments: Vec<&str> = ["restore", file].iter().chain(arguments).copied().collect();
    let refused = run(place, &arguments);
    assert!(!refused.status.success(), "{arguments:?}");
    assert!(stderr(&refused).contains(words), "{arguments:?}: {}", stderr(&refused));
}
