//! Which part may know which: read from the `use` lines.
use std::{fs, path::Path};

fn rust_files(folder: &Path) -> Vec<(String, String)> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(rust_files(&path));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push((path.display().to_string(), fs::read_to_string(&path).unwrap()));
        }
    }
    found
}

fn assert_absent(folder: &str, only: impl Fn(&str) -> bool, words: &[&str]) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
    let files: Vec<_> = rust_files(&root).into_iter().filter(|(path, _)| only(path)).collect();
    assert!(!files.is_empty(), "no files in {folder}");
    for (path, text) in files {
        for (number, line) in text
            .lines()
            .enumerate()
            .filter(|(_, line)| !line.trim_start().starts_with("//"))
        {
            for word in words {
                assert!(!line.contains(word), "{path}:{}: names {word}", number + 1);
            }
        }
    }
}

#[test]
fn arrows_go_one_way() {
    assert_absent(
        "entities/src",
        |_| true,
        &["actors::", "callboard::", "actix", "reqwest"],
    );
    assert_absent("actors/src", |_| true, &["callboard::", "actix_web"]);
}

#[test]
fn machines_are_pure() {
    let machine = |path: &str| path.ends_with("machine.rs") || path.ends_with("credits/topup.rs");
    assert_absent(
        "actors/src",
        machine,
        &[
            "actix", "sea_orm", "tokio", "async ", "reqwest", "rand::", "Utc::now", "deps",
        ],
    );
}

/// Queries live in `entities`; the outside may only name a transaction that it was handed.
#[test]
fn queries_live_in_entities() {
    let query = [
        "Entity::find",
        "Entity::update",
        "Entity::delete",
        "Statement::",
        "query_one",
        "query_all",
        "execute_unprepared",
    ];
    assert_absent("src", |_| true, &query);
    assert_absent("actors/src", |_| true, &query);
}
