//! The verification snippets of the documentation: word for word what stands in `examples/verify`, and right about a real
//! delivery. Those whose interpreter or compiler is on the machine are executed.
use crate::{
    on_both,
    world::{Receiver, World},
};
use serde_json::json;
use std::{
    io::Write,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

#[path = "../../examples/verify/verify.rs"]
mod verify;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

const FILES: [&str; 8] = [
    "verify.py",
    "verify.mjs",
    "verify.go",
    "verify.rb",
    "verify.php",
    "Verify.java",
    "Verify.cs",
    "verify.rs",
];

#[test]
fn the_documentation_shows_them_word_for_word() {
    let docs = std::fs::read_to_string(root().join("docs/webhooks.md")).unwrap();
    for file in FILES {
        let snippet = std::fs::read_to_string(root().join("examples/verify").join(file)).unwrap();
        let fence = docs
            .split_once(&format!("<!-- examples/verify/{file} -->\n```"))
            .map(|(_, rest)| rest);
        let shown = fence
            .and_then(|rest| rest.split_once('\n')?.1.split_once("```"))
            .map(|(code, _)| code);
        assert_eq!(shown, Some(snippet.as_str()), "{file}");
    }
}

/// How a snippet is run: the programs it needs, and the command.
fn runners(built: &Path) -> Vec<(&'static str, Vec<String>)> {
    let path = |file: &str| root().join("examples/verify").join(file).display().to_string();
    let own = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
    let mut all = vec![
        ("python3", own(&["python3", &path("verify.py")])),
        ("node", own(&["node", &path("verify.mjs")])),
        ("java", own(&["java", &path("Verify.java")])),
        ("ruby", own(&["ruby", &path("verify.rb")])),
        ("php", own(&["php", &path("verify.php")])),
        ("go", own(&["go", "run", &path("verify.go")])),
    ];
    if exists("mcs") && exists("mono") {
        let program = built.join("Verify.exe").display().to_string();
        let compiled = Command::new("mcs")
            .arg(format!("-out:{program}"))
            .arg(path("Verify.cs"))
            .status();
        assert!(compiled.unwrap().success());
        all.push(("mono", own(&["mono", &program])));
    }
    all.retain(|(program, _)| exists(program));
    all
}

fn exists(program: &str) -> bool {
    let folders = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&folders).any(|folder: PathBuf| folder.join(program).is_file())
}

fn verifies(command: &[String], arguments: [&str; 3], body: &[u8]) -> bool {
    let mut child = Command::new(&command[0])
        .args(&command[1..])
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    // One that refuses before it reads closes its end.
    let _ = child.stdin.take().unwrap().write_all(body);
    let output = child.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    assert_eq!(
        said,
        if output.status.success() { "verified" } else { "refused" },
        "{command:?}"
    );
    output.status.success()
}

on_both! {
    async fn each_accepts_a_real_delivery_and_refuses_a_forged_one(world: &mut World) {
        // The snippets look at the real clock.
        #[expect(clippy::disallowed_methods, reason = "the programs under test do too")]
        let now = chrono::Utc::now().timestamp_millis();
        world.clock.set(entities::values::Moment::from_millis(now));
        let tenant = world.tenant().await;
        let receiver = Receiver::start();
        let endpoint = tenant.api.post("/v1/webhook_endpoints", json!({ "url": receiver.url, "event_types": ["*"] })).await.ok();
        tenant.api.post("/v1/campaigns", json!({ "name": "Größe \"M\" \\ €" })).await.ok();
        world.settle().await;
        let request = receiver.requests()[0].clone();
        let (secret, timestamp, signature) = (endpoint["secret"].as_str().unwrap(), &request.headers["x-webhook-timestamp"], &request.headers["x-webhook-signature"]);
        let forged = [request.raw.as_ref(), b" "].concat();
        let old = (timestamp.parse::<i64>().unwrap() - 301).to_string();

        let unix = u64::try_from(now / 1000).unwrap();
        assert!(verify::verify(secret, timestamp, signature, &request.raw, unix));
        assert!(!verify::verify(secret, timestamp, signature, &forged, unix));
        assert!(!verify::verify(secret, timestamp, signature, &request.raw, unix + 301));

        let built = tempfile::tempdir().unwrap();
        let runners = runners(built.path());
        eprintln!("executed: {:?}", runners.iter().map(|(program, _)| program).collect::<Vec<_>>());
        for (program, command) in runners {
            assert!(verifies(&command, [secret, timestamp, signature], &request.raw), "{program}");
            assert!(!verifies(&command, [secret, timestamp, signature], &forged), "{program}: another body");
            assert!(!verifies(&command, [secret, &old, signature], &request.raw), "{program}: too old");
            assert!(!verifies(&command, ["whsec_other", timestamp, signature], &request.raw), "{program}: another secret");
        }
    }
}
