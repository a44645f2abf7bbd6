//! `callboard mcp`, as an assistant starts it, and `/mcp` of several nodes.
use super::{BINARY, Calls, on, own_address, stderr, terminate};
use crate::world::{Backend, client};
use serde_json::{Value, json};
use std::{
    io::{BufRead, BufReader, Lines, Write},
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
};

/// A running `callboard mcp`.
struct Assistant {
    child: Child,
    input: Option<ChildStdin>,
    output: Lines<BufReader<ChildStdout>>,
}

impl Drop for Assistant {
    /// A test that fails leaves none behind.
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn command(url: &str, key: Option<&str>) -> Command {
    let mut command = Command::new(BINARY);
    command.arg("mcp").env_clear().env("CALLBOARD_URL", url);
    command.envs(key.map(|key| ("CALLBOARD_API_KEY", key)));
    command
}

impl Assistant {
    fn start(mut command: Command) -> Self {
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        Assistant {
            input: child.stdin.take(),
            output: BufReader::new(child.stdout.take().unwrap()).lines(),
            child,
        }
    }

    fn say(&mut self, line: &str) {
        writeln!(self.input.as_mut().unwrap(), "{line}").unwrap();
    }

    fn hear(&mut self) -> Value {
        serde_json::from_str(&self.output.next().unwrap().unwrap()).unwrap()
    }

    fn ask(&mut self, method: &str, params: Value) -> Value {
        self.say(&json!({ "jsonrpc": "2.0", "id": method, "method": method, "params": params }).to_string());
        let answer = self.hear();
        assert_eq!(answer["id"], method, "{answer}");
        answer
    }

    fn initialize(&mut self, version: &str) {
        let client =
            json!({ "protocolVersion": version, "capabilities": {}, "clientInfo": { "name": "test", "version": "1" } });
        assert_eq!(self.ask("initialize", client)["result"]["protocolVersion"], version);
        self.say(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
    }

    fn call(&mut self, name: &str, given: Value) -> Value {
        self.ask("tools/call", json!({ "name": name, "arguments": given }))["result"].clone()
    }

    /// Closes its input; what else it says, to its end.
    fn end(mut self) -> Vec<String> {
        drop(self.input.take());
        let rest = self.output.by_ref().map(Result::unwrap).collect();
        assert!(self.child.wait().unwrap().success());
        rest
    }
}

#[test]
fn an_assistant_talks_with_a_server_over_standard_input() {
    on(Backend::Sqlite, async |place| {
        let mut serving = place.serve(&[]);
        let key = place.workspace();
        let api = Calls::to(&place, key.clone());
        let agent = api
            .post("/v1/agents", json!({ "name": "Ann", "prompt": "Be kind." }))
            .await;

        let mut assistant = Assistant::start(command(&api.url, Some(&key)));
        assistant.initialize("2025-11-25");
        let listed = assistant.ask("tools/list", json!({}))["result"]["tools"].clone();
        assert_eq!(listed.as_array().unwrap().len(), callboard::mcp::tools::TOOLS.len());
        let found = assistant.call("get_agent", json!({ "id": agent["id"] }));
        assert_eq!(found["structuredContent"]["answer"]["prompt"], "Be kind.");
        let missing = assistant.call("get_call", json!({ "id": agent["id"] }));
        assert_eq!(
            (&missing["isError"], &missing["structuredContent"]["error"]["code"]),
            (&json!(true), &json!("not_found"))
        );
        // Nothing that comes in ends it.
        for (line, code) in [
            ("nonsense".to_owned(), -32700),
            ("[1]".to_owned(), -32600),
            ("x".repeat(1024 * 1024 + 1), -32600),
        ] {
            assistant.say(&line);
            let answer = assistant.hear();
            assert_eq!((&answer["error"]["code"], &answer["id"]), (&json!(code), &Value::Null));
        }
        // Blank lines, notifications and answers to nothing are passed over: what is heard next is the answer to what is asked next.
        assistant
            .say("\n{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\",\"params\":{\"requestId\":\"none\"}}");
        assistant.say(r#"{"jsonrpc":"2.0","id":9,"result":{}}"#);
        assert_eq!(assistant.ask("ping", json!({}))["result"], json!({}));
        // What is asked before the end is answered before the end.
        assistant.say(r#"{"jsonrpc":"2.0","id":"last","method":"tools/call","params":{"name":"get_credits"}}"#);
        let rest = assistant.end();
        assert_eq!(rest.len(), 1, "{rest:?}");
        let last: Value = serde_json::from_str(&rest[0]).unwrap();
        assert_eq!(
            (&last["id"], &last["result"]["isError"]),
            (&json!("last"), &json!(false))
        );

        // An older client, and a key in a file.
        let file = place.folder.path().join("key");
        std::fs::write(&file, format!("{key}\n")).unwrap();
        let mut older = command(&format!("{}/", api.url), None);
        older.arg("--api-key-file").arg(&file);
        let mut older = Assistant::start(older);
        older.initialize("2025-03-26");
        older.say(r#"[{"jsonrpc":"2.0","id":1,"method":"ping"},{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"get_workspace"}}]"#);
        let batch = older.hear();
        assert_eq!((&batch[0]["id"], &batch[1]["id"]), (&json!(1), &json!(2)));
        assert_eq!(batch[1]["result"].get("structuredContent"), None);
        assert!(
            batch[1]["result"]["content"][0]["text"]
                .as_str()
                .unwrap()
                .contains("acme")
        );
        assert_eq!(older.end(), Vec::<String>::new());

        let mut revoked = Assistant::start(command(&api.url, Some("vk_test_00000000000000000000000000000000")));
        revoked.initialize("2025-06-18");
        let error = revoked.ask("tools/list", json!({}))["error"].clone();
        assert_eq!(
            (&error["code"], &error["data"]["status"]),
            (&json!(-32603), &json!(401)),
            "{error}"
        );
        assert_eq!(
            revoked.call("get_credits", json!({}))["structuredContent"]["error"]["code"],
            "unauthenticated"
        );
        revoked.end();
        terminate(&mut serving);

        let mut alone = Assistant::start(command(&api.url, Some(&key)));
        alone.initialize("2025-11-25");
        let result = alone.call("get_credits", json!({}));
        assert_eq!(result["structuredContent"]["error"]["code"], "unreachable");
        assert!(
            result["structuredContent"]["error"]["message"]
                .as_str()
                .unwrap()
                .contains("nothing listens at"),
            "{result}"
        );
        alone.end();
    });
}

#[test]
fn without_a_key_it_says_where_to_put_one() {
    let run = |mut command: Command| command.stdin(Stdio::null()).output().unwrap();
    let url = "http://127.0.0.1:9";
    let mut no_file = command(url, Some("vk_test_x"));
    no_file.args(["--api-key-file", "/nowhere/key"]);
    for (command, words) in [
        (command(url, None), "CALLBOARD_API_KEY"),
        (command(url, Some("")), "--api-key-file"),
        (command(url, Some("two words")), "this is not an API key"),
        (no_file, "/nowhere/key"),
    ] {
        let output = run(command);
        assert!(!output.status.success() && output.stdout.is_empty());
        assert!(stderr(&output).contains(words), "{}", stderr(&output));
    }
}

async fn ask_node(url: &str, key: &str, params: Value) -> Value {
    let request = client().post(format!("{url}/mcp")).bearer_auth(key);
    let request = request.header("MCP-Protocol-Version", "2025-11-25");
    let message = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params });
    let answer = request.json(&message).send().await.unwrap();
    assert_eq!(answer.status().as_u16(), 200);
    answer.json::<Value>().await.unwrap()["result"]["structuredContent"].clone()
}

/// Requests that a node has led to another one.
async fn handed_on(url: &str) -> u64 {
    let text = client()
        .get(format!("{url}/metrics"))
        .send()
        .await
        .unwrap()
        .text()
        .await
        .unwrap();
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix("callboard_requests_handed_on_total "));
    line.map_or(0, |count| count.parse().unwrap())
}

/// The workspace is one node's; the other one makes the tools' requests there.
#[test]
fn any_node_answers_an_assistant() {
    on(Backend::Postgres, async |place| {
        let mut nodes: Vec<(String, Child)> = ["a", "b"]
            .map(|name| {
                let (bind, between, spool) = (own_address(), own_address(), format!("spool-{name}"));
                let child = place.serve(&[
                    ("CALLBOARD_BIND", &bind),
                    ("CALLBOARD_NODE_BIND", &between),
                    ("CALLBOARD_NODE_NAME", name),
                    ("CALLBOARD_RECORDINGS_SPOOL", &spool),
                ]);
                (format!("http://{bind}"), child)
            })
            .into();
        place.create_workspace("acme", "Acme", "a@b.co");
        let key = place.create_key("test", "k");
        let agent = json!({ "name": "Ann", "prompt": "Be kind." });
        let agent = client()
            .post(format!("{}/v1/agents", nodes[0].0))
            .bearer_auth(&key)
            .json(&agent)
            .send()
            .await
            .unwrap();
        let agent: Value = agent.json().await.unwrap();
        let mut before = Vec::new();
        for (url, _) in &nodes {
            before.push(handed_on(url).await);
        }
        for (url, _) in &nodes {
            let found = ask_node(
                url,
                &key,
                json!({ "name": "get_agent", "arguments": { "id": agent["id"] } }),
            )
            .await;
            assert_eq!(found["answer"]["id"], agent["id"], "{found}");
            let workspace = ask_node(url, &key, json!({ "name": "get_workspace" })).await;
            assert_eq!(workspace["answer"]["tenant"]["slug"], "acme");
        }
        let mut led = Vec::new();
        for ((url, _), before) in nodes.iter().zip(before) {
            led.push(handed_on(url).await - before);
        }
        assert!(
            led.iter().sum::<u64>() > 0,
            "the one that does not have the workspace asks the other one: {led:?}"
        );
        for (_, child) in &mut nodes {
            terminate(child);
        }
    });
}
