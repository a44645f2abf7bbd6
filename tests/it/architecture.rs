//! Which part may know which: what Cargo does not enforce, read from the files.
use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::Path,
};

/// The crates with several parts, and the folder of each.
const CRATES: [&str; 8] = [
    "entities/src",
    "actors/rules/src",
    "actors/runtime/src",
    "actors/adapters/src",
    "actors/media/src",
    "actors/sip/src",
    "actors/src",
    "src",
];

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

fn is_test(path: &str) -> bool {
    path.contains("tests")
}

fn assert_absent(folder: &str, words: &[&str]) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
    let files: Vec<_> = rust_files(&root)
        .into_iter()
        .filter(|(path, _)| !is_test(&path[root.display().to_string().len()..]))
        .collect();
    assert!(!files.is_empty(), "no files in {folder}");
    for (path, text) in files {
        let text = text.split("#[cfg(test)]\nmod tests").next().unwrap();
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

/// What each crate may name in its manifest, of ours and of what says on which floor it lives.
#[test]
fn arrows_go_one_way() {
    const WATCHED: [&str; 14] = [
        "actix",
        "actix-web",
        "actors",
        "adapters",
        "callboard",
        "entities",
        "media",
        "migration",
        "reqwest",
        "rules",
        "runtime",
        "sea-orm",
        "sip",
        "tokio",
    ];
    let allowed: [(&str, &[&str]); 8] = [
        ("entities", &["sea-orm", "tokio"]),
        ("migration", &["sea-orm"]),
        ("actors/rules", &["entities"]),
        ("actors/runtime", &["actix", "entities", "tokio"]),
        (
            "actors/adapters",
            &["entities", "reqwest", "rules", "runtime", "sip", "tokio"],
        ),
        ("actors/sip", &[]),
        ("actors/media", &["adapters", "entities", "rules", "runtime", "tokio"]),
        (
            "actors",
            &[
                "actix", "adapters", "entities", "media", "rules", "runtime", "sip", "tokio",
            ],
        ),
    ];
    for (folder, allowed) in allowed {
        let manifest = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder).join("Cargo.toml");
        let text = fs::read_to_string(&manifest).unwrap();
        let dependencies = text
            .split("[dependencies]")
            .nth(1)
            .unwrap()
            .split("\n[")
            .next()
            .unwrap();
        let names = dependencies.lines().filter_map(|line| line.split(' ').next());
        let named: BTreeSet<&str> = names.filter(|name| WATCHED.contains(name)).collect();
        let allowed: BTreeSet<&str> = allowed.iter().copied().collect();
        assert!(named.is_subset(&allowed), "{folder}: {named:?}");
    }
}

/// What is decided about a phone call is decided from what goes in alone. Moments are given as `Instant`s.
#[test]
fn sip_is_pure() {
    let words = [
        "tokio",
        "async ",
        "rand::",
        "::now()",
        "SystemTime",
        "tracing::",
        "std::fs",
        "std::env",
        "std::thread",
        "UdpSocket",
        "TcpStream",
    ];
    assert_absent("actors/sip/src", &words);
}

/// The same question has the same answer: no clock, no chance, nothing that waits, in any file.
#[test]
fn rules_are_pure() {
    let words = [
        "actix",
        "sea_orm",
        "tokio",
        "async ",
        "reqwest",
        "rand::",
        "::now()",
        "Instant::",
        "SystemTime",
        "Deps",
        "tracing::",
        "std::fs",
        "std::env",
        "std::thread",
    ];
    assert_absent("actors/rules/src", &words);
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
    for folder in CRATES.into_iter().filter(|folder| *folder != "entities/src") {
        assert_absent(folder, &query);
    }
}

/// Whoever turns effects into rows must perform them after the commit: only these do the one, and see to the other.
#[test]
fn facts_go_by_the_doors() {
    const DOORS: [&str; 5] = [
        "actors/src/birth.rs",
        "actors/src/delivery/settling.rs",
        "actors/src/dispatcher/dial.rs",
        "actors/src/dispatcher/message.rs",
        "actors/src/shell.rs",
    ];
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let files = CRATES.iter().flat_map(|folder| rust_files(&root.join(folder)));
    let named: Vec<String> = files
        .filter(|(_, text)| turns_effects_into_rows(text))
        .map(|(path, _)| path[root.display().to_string().len() + 1..].to_owned())
        .collect();
    assert!(named.iter().any(|path| path == DOORS[0]), "{named:?}");
    for path in &named {
        assert!(DOORS.contains(&path.as_str()), "{path}: is no door for `facts::add`");
    }
}

fn turns_effects_into_rows(text: &str) -> bool {
    let words = ["facts::add", "facts::{add", "facts::{self, add"];
    text.lines()
        .filter(|line| !line.trim_start().starts_with("//"))
        .any(|line| words.iter().any(|word| line.contains(word)))
}

/// The paths of a `use`, each as its segments; `self` names the path before it.
fn leaves(tree: &str) -> Vec<Vec<String>> {
    let Some((head, rest)) = tree.split_once('{') else {
        let path = tree.split(" as ").next().unwrap();
        return vec![
            path.split("::")
                .map(|part| part.trim().to_owned())
                .filter(|part| !part.is_empty() && part != "self")
                .collect(),
        ];
    };
    let head = leaves(head).remove(0);
    let inner = &rest[..rest.rfind('}').unwrap()];
    let (mut depth, mut from, mut parts) = (0, 0, Vec::new());
    for (at, letter) in inner.char_indices() {
        match letter {
            '{' => depth += 1,
            '}' => depth -= 1,
            ',' if depth == 0 => {
                parts.push(&inner[from..at]);
                from = at + 1;
            }
            _ => {}
        }
    }
    parts.push(&inner[from..]);
    let paths = parts
        .into_iter()
        .filter(|part| !part.trim().is_empty())
        .flat_map(leaves);
    paths.map(|path| [head.clone(), path].concat()).collect()
}

/// Which files of a crate name which others of it in a `use`.
fn arrows(folder: &str) -> BTreeMap<String, BTreeSet<String>> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
    let prefix = format!("{}/", root.display());
    let modules: BTreeMap<Vec<String>, (String, String)> = rust_files(&root)
        .into_iter()
        .map(|(path, text)| (path[prefix.len()..].to_owned(), text))
        .filter(|(path, _)| !is_test(path))
        .map(|(path, text)| {
            let mut module: Vec<String> = path.trim_end_matches(".rs").split('/').map(str::to_owned).collect();
            if matches!(module.last().unwrap().as_str(), "mod" | "lib" | "main") {
                module.pop();
            }
            (module, (path, text))
        })
        .collect();
    let mut arrows = BTreeMap::new();
    for (module, (path, text)) in &modules {
        let text = text.split("#[cfg(test)]\nmod tests").next().unwrap();
        let code: Vec<&str> = text
            .lines()
            .filter(|line| !line.trim_start().starts_with("//"))
            .collect();
        let named: &mut BTreeSet<String> = arrows.entry(path.clone()).or_default();
        for tree in code
            .join(" ")
            .split(';')
            .filter_map(|item| item.rsplit_once("use ").map(|(_, tree)| tree.to_owned()))
        {
            let all = match tree.trim_start().split("::").next().unwrap() {
                "crate" | "super" => leaves(&tree),
                _ => continue,
            };
            for leaf in all {
                let ups = leaf.iter().take_while(|part| *part == "super").count();
                let mut full: Vec<String> = match ups {
                    0 => Vec::new(),
                    ups => module[..module.len().saturating_sub(ups)].to_vec(),
                };
                full.extend(leaf[ups.max(1)..].iter().cloned());
                let found = (1..=full.len()).rev().find_map(|length| modules.get(&full[..length]));
                named.extend(found.map(|(other, _)| other.clone()).filter(|other| other != path));
            }
        }
    }
    arrows
}

/// All files that can be reached from one.
fn reached(arrows: &BTreeMap<String, BTreeSet<String>>, from: &str) -> BTreeSet<String> {
    let (mut found, mut open) = (BTreeSet::new(), vec![from.to_owned()]);
    while let Some(file) = open.pop() {
        for next in &arrows[&file] {
            if found.insert(next.clone()) {
                open.push(next.clone());
            }
        }
    }
    found
}

/// What is done outside, as it stands in the code without its blanks.
const DEEDS: [&str; 22] = [
    "outbound.post(",
    "outbound.send(",
    "mcp_client::call(",
    "mcp_client::list(",
    "post.deliver(",
    "post.hand_over(",
    "provider.send(",
    "stripe.open(",
    "stripe.look(",
    "cloner.create(",
    "cloner.copies(",
    "cloner.delete(",
    "cloner.speak(",
    "vault.put(",
    "vault.put_read(",
    "vault.erase(",
    "database.ask(",
    "service.ask(",
    "ping::ping(",
    "registrar::ask(",
    "carrier.place(",
    "Command::Refer{",
];

/// Functions of which the one that calls them has asked.
const ASKED_BEFORE: [(&str, &str); 5] = [
    ("conversation/functions.rs", "call_tool"),
    ("conversation/functions.rs", "request"),
    ("dispatcher/place.rs", "place"),
    ("email/send.rs", "hand_over"),
    ("sms/send.rs", "hand_over"),
];

/// A process that has lost what it serves finds out before its next deed: each stands behind the question whether it is still its own.
/// Commands of the operator serve nothing.
#[test]
fn every_deed_outside_asks_the_fence_first() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let (mut done, mut unasked) = (BTreeSet::new(), BTreeSet::new());
    for (path, text) in ["actors/src", "src"].iter().flat_map(|at| rust_files(&root.join(at))) {
        let path = path[root.display().to_string().len() + 1..].to_owned();
        if is_test(&path) || path.starts_with("src/cli/") {
            continue;
        }
        for (name, body) in functions(&text) {
            for (deed, at) in DEEDS.iter().filter_map(|deed| Some((*deed, body.find(*deed)?))) {
                done.insert(deed);
                let before = &body[..at];
                if !before.contains("deps.pass(") && !before.contains("passed(deps,") {
                    unasked.insert((path.clone(), name.clone()));
                }
            }
        }
    }
    let expected = ASKED_BEFORE.map(|(file, name)| (format!("actors/src/{file}"), name.to_owned()));
    assert_eq!(unasked, BTreeSet::from(expected));
    assert_eq!(done, BTreeSet::from(DEEDS), "what nobody does needs no line here");
}

/// The functions of a file: their names, and what stands in them without blanks and comments.
fn functions(text: &str) -> Vec<(String, String)> {
    let text = text.split("#[cfg(test)]\nmod tests").next().unwrap();
    let (mut begun, mut found) = (None, Vec::new());
    for line in text.lines().filter(|line| !line.trim_start().starts_with("//")) {
        if let Some(name) = name_of_function(line) {
            begun = Some((indent(line), name.to_owned(), String::new()));
        }
        let Some((of, name, mut body)) = begun.take() else {
            continue;
        };
        body.extend(line.split_whitespace());
        if indent(line) == of && line.trim() == "}" {
            found.push((name, body));
        } else {
            begun = Some((of, name, body));
        }
    }
    found
}

fn indent(line: &str) -> usize {
    line.len() - line.trim_start().len()
}

/// Of the one that this line begins.
fn name_of_function(line: &str) -> Option<&str> {
    let (words, rest) = line.trim_start().split_once("fn ")?;
    let is_head = words
        .split_whitespace()
        .all(|word| word.starts_with("pub") || word == "async");
    is_head.then(|| rest.split(is_no_letter).next().unwrap())
}

/// Whoever reads a file need not know who reads it.
#[test]
fn no_circle_of_files() {
    for folder in CRATES {
        let arrows = arrows(folder);
        let named: usize = arrows.values().map(BTreeSet::len).sum();
        assert!(named > 5, "{folder}: {named} arrows were read");
        let reach: BTreeMap<&String, _> = arrows.keys().map(|file| (file, reached(&arrows, file))).collect();
        for (file, found) in &reach {
            let circle: Vec<_> = found.iter().filter(|other| reach[other].contains(*file)).collect();
            assert!(circle.is_empty(), "{folder}: {circle:?}");
        }
    }
}

/// Files have one subject and functions fit a screen; tables, migrations and whatever else is long because it is a list are the
/// few that may be longer.
#[test]
fn files_and_functions_stay_short() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let folders = CRATES.iter().chain(&["migration/src"]);
    let sources = folders.flat_map(|folder| rust_files(&root.join(folder)));
    let of_ours: Vec<(String, String)> = sources
        .filter(|(path, _)| !is_test(&path[root.display().to_string().len()..]))
        .collect();
    let mut lengths: Vec<(usize, &String)> = of_ours
        .iter()
        .map(|(path, text)| (text.lines().count(), path))
        .collect();
    lengths.sort();
    let at = |share: f64| lengths[(lengths.len() as f64 * share) as usize].0;
    assert!(lengths.len() > 400, "{} files were read", lengths.len());
    assert!(at(0.5) <= 150 && at(0.9) <= 310, "{} and {}", at(0.5), at(0.9));
    let longest = lengths[lengths.len() - 1];
    assert!(longest.0 <= 500, "{longest:?}");
    let long: Vec<String> = of_ours
        .iter()
        .flat_map(|(path, text)| long_functions(path, text))
        .collect();
    assert!(long.len() <= 10, "{long:#?}");
    let map = fs::read_to_string(root.join("docs/ARCHITECTURE.md")).unwrap();
    assert!(map.lines().count() <= 250, "ARCHITECTURE.md is no map any more");
}

/// Those of more than 70 lines: from the line that begins one to the brace below it.
fn long_functions(path: &str, text: &str) -> Vec<String> {
    let (mut begun, mut long) = (None, Vec::new());
    for (number, line) in text.lines().enumerate() {
        let code = line.trim_start();
        let indent = line.len() - code.len();
        let words = code.split(' ').take_while(|word| *word != "fn").collect::<Vec<_>>();
        let is_head = code.contains("fn ") && words.iter().all(|word| word.starts_with("pub") || *word == "async");
        if is_head {
            begun = Some((number, indent));
        } else if let Some((first, of)) = begun
            && indent == of
            && code == "}"
        {
            if number - first > 70 {
                long.push(format!("{path}:{}", first + 1));
            }
            begun = None;
        }
    }
    long
}

/// Nothing runs code in comments (`doctest = false`), so there is none: what is shown there is text.
#[test]
fn comments_hold_no_code_that_nobody_runs() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let folders = CRATES.iter().chain(&["migration/src"]);
    let mut shown = 0;
    for (path, text) in folders.flat_map(|folder| rust_files(&root.join(folder))) {
        let comments = text.lines().map(str::trim_start);
        let comments = comments.filter_map(|line| line.strip_prefix("///").or_else(|| line.strip_prefix("//!")));
        let fences = comments.map(str::trim).filter(|line| line.starts_with("```"));
        for (at, fence) in fences.enumerate() {
            assert!(at % 2 == 1 || fence == "```text", "{path}: {fence}");
            shown += 1;
        }
    }
    assert!(shown > 0, "no text was read");
}

/// Names of metrics in a text, each after one of `before`.
fn metrics(text: &str, before: &[&str]) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for (at, _) in text.match_indices("callboard_") {
        let preceded = before.iter().any(|word| text[..at].ends_with(word));
        let name = text[at..].split(|letter: char| !(letter.is_ascii_lowercase() || letter == '_'));
        if preceded && let Some(name) = name.into_iter().next() {
            found.insert(name.to_owned());
        }
    }
    found
}

/// Whoever reads `/metrics` finds a line of help for each, and whoever reads the table finds each.
#[test]
fn every_metric_is_described() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut measured = BTreeSet::new();
    for folder in CRATES {
        for (_, text) in rust_files(&root.join(folder)) {
            measured.extend(metrics(&text, &["counter!(\"", "gauge!(\"", "histogram!(\""]));
        }
    }
    assert!(measured.len() > 50, "{measured:?}");
    let described = fs::read_to_string(root.join("src/app/measures.rs")).unwrap();
    let described = metrics(&described, &["counter \"", "gauge \"", "summary \""]);
    assert_eq!(measured, described);
    let told = fs::read_to_string(root.join("docs/internals/operations.md")).unwrap();
    let told = metrics(&told, &["`"]);
    let silent: Vec<_> = measured.difference(&told).collect();
    assert!(silent.is_empty(), "not in docs/internals/operations.md: {silent:?}");
    let gone: Vec<_> = told.difference(&measured).collect();
    assert!(
        gone.is_empty(),
        "in docs/internals/operations.md, and nowhere else: {gone:?}"
    );
}

/// What stands in backticks in the documents is in the sources, so whoever looks for it finds it: items such as `a::b`, types, files,
/// and names of three words or more, such as those of tests.
#[test]
fn every_name_in_the_documents_exists() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let sources: Vec<(String, String)> = CRATES
        .iter()
        .chain(&["migration/src", "tests"])
        .flat_map(|folder| rust_files(&root.join(folder)))
        .collect();
    let sources: Vec<Source> = sources.iter().map(|(path, text)| Source::of(path, text)).collect();
    let internals = fs::read_dir(root.join("docs/internals")).unwrap();
    let mut documents: Vec<_> = internals.map(|entry| entry.unwrap().path()).collect();
    documents.push(root.join("docs/ARCHITECTURE.md"));
    let (mut names, mut missing) = (0, Vec::new());
    for document in documents {
        let text = fs::read_to_string(&document).unwrap();
        for name in text.split('`').skip(1).step_by(2) {
            if let Some(exists) = exists(&sources, name) {
                names += 1;
                if !exists {
                    missing.push(format!("{}: {name}", document.display()));
                }
            }
        }
    }
    assert!(names > 1_000, "{names} names were read");
    assert!(missing.is_empty(), "{missing:#?}");
}

/// A file, as names are looked for in it.
struct Source<'a> {
    path: &'a str,
    words: BTreeSet<&'a str>,
    /// The file, its folders, and the types and modules that stand in it: what may be before a `::`.
    owners: BTreeSet<&'a str>,
}

impl<'a> Source<'a> {
    fn of(path: &'a str, text: &'a str) -> Self {
        let kinds = ["struct ", "enum ", "trait ", "mod ", "type ", "impl"];
        let defines = |line: &&str| {
            let bare = line.trim_start().trim_start_matches("pub ");
            kinds.iter().any(|kind| bare.starts_with(kind))
        };
        let defined = text.lines().filter(defines).flat_map(|line| line.split(is_no_letter));
        let places = path.split('/').map(|part| part.trim_end_matches(".rs"));
        Source {
            path,
            words: text.split(is_no_letter).collect(),
            owners: places.chain(defined).collect(),
        }
    }
}

/// None: it names nothing that stands in the sources.
fn exists(sources: &[Source<'_>], name: &str) -> Option<bool> {
    if let Some((path, item)) = name.rsplit_once("::") {
        let owner = path.rsplit("::").next().unwrap();
        let is_plain = !name.contains(|letter: char| is_no_letter(letter) && letter != ':');
        let found = |source: &Source<'_>| source.owners.contains(owner) && source.words.contains(item);
        return is_plain.then(|| sources.iter().any(found));
    }
    if name.ends_with(".rs") {
        let is_there = |file: &String| sources.iter().any(|source| source.path.ends_with(&format!("/{file}")));
        return Some(spelled_out(name).iter().all(is_there));
    }
    if name.contains(is_no_letter) {
        return None;
    }
    let is_type = name.starts_with(|letter: char| letter.is_ascii_uppercase())
        && name.contains(|letter: char| letter.is_ascii_lowercase());
    let is_long = name.starts_with(|letter: char| letter.is_ascii_lowercase()) && name.split('_').count() > 2;
    (is_type || is_long).then(|| sources.iter().any(|source| source.words.contains(name)))
}

/// `a/{b,c}.rs` names two files.
fn spelled_out(files: &str) -> Vec<String> {
    match files
        .split_once('{')
        .and_then(|(before, rest)| Some((before, rest.split_once('}')?)))
    {
        Some((before, (all, after))) => all.split(',').map(|one| format!("{before}{one}{after}")).collect(),
        None => vec![files.to_owned()],
    }
}

fn is_no_letter(letter: char) -> bool {
    !letter.is_ascii_alphanumeric() && letter != '_'
}
