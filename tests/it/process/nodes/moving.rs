//! Workspaces that move in peace: to a new node, and away from one that is told to go.
use super::{Installation, WORKSPACES};
use crate::{
    process::{json_of, on_disk, pause, signal, stderr, terminate},
    world::{Backend, client},
};
use serde_json::{Value, json};
use std::time::{Duration, Instant};

/// A new node has its share of workspaces in which nothing goes on, as it says itself. `docs/scaling.md` names 30 s, which a machine that is
/// busy with other tests may miss: what it took is printed, and twice as much fails.
#[test]
fn a_new_node_gets_its_share() {
    const QUIET: i64 = 9;
    on_disk(Backend::Postgres, async |place| {
        let url = place.database.url.clone();
        let mut nodes = Installation::open(place, [&url; 3]).await;
        terminate(nodes.child(2));
        for n in 0..QUIET {
            nodes.quiet_workspace(n as usize);
        }
        let begun = Instant::now();
        while nodes.reported(0).await + nodes.reported(1).await < QUIET {
            assert!(begun.elapsed() < Duration::from_secs(60), "{:?}", nodes.held().await);
            pause(100).await;
        }
        nodes.start(2);
        let begun = Instant::now();
        // A difference of one is not worth a move.
        while nodes.reported(2).await < QUIET / 3 - 1 {
            assert!(begun.elapsed() < Duration::from_secs(60), "{:?}", nodes.held().await);
            pause(100).await;
        }
        eprintln!("its share after {:.1} s", begun.elapsed().as_secs_f64());
        for at in 0..3 {
            terminate(nodes.child(at));
        }
    });
}

/// One is drained by the operator and takes part again; then a rolling upgrade: each is told to end, and comes again. Whoever tries again is
/// answered, and no call is cut off.
#[test]
fn nodes_that_are_told_to_go_hand_over_what_they_have() {
    on_disk(Backend::Postgres, async |place| {
        let url = place.database.url.clone();
        let mut nodes = Installation::open(place, [&url; 3]).await;
        for n in 0..WORKSPACES {
            nodes.workspace(n).await;
        }
        nodes.balanced().await;
        let unknown = nodes.place.run(&["nodes", "drain", "d"]);
        assert!(
            stderr(&unknown).contains("`d` is not a running node"),
            "{}",
            stderr(&unknown)
        );
        assert!(nodes.place.run(&["nodes", "drain", "b"]).status.success());
        nodes.taken_over_from(1).await;
        let listed = json_of(&nodes.place.run(&["--json", "nodes", "list"]));
        let of = |name: &str| {
            listed["nodes"]
                .as_array()
                .unwrap()
                .iter()
                .find(|node| node["name"] == name)
                .unwrap()
                .clone()
        };
        assert_eq!(
            (&of("a")["status"], &of("b")["status"]),
            (&json!("running"), &json!("draining"))
        );
        // It goes on to answer, for the others.
        let ready = client()
            .get(format!("{}/readyz", nodes.nodes[1].url))
            .send()
            .await
            .unwrap();
        assert_eq!(ready.json::<Value>().await.unwrap()["node"], json!({ "name": "b" }));
        assert!(nodes.place.run(&["nodes", "resume", "b"]).status.success());
        nodes.balanced().await;
        // One that would serve alone is not let in beside them.
        nodes.place.refuses_a_second(&[]);
        for at in 0..3 {
            let process = nodes.child(at).id();
            signal(process, "-TERM");
            // While it leaves, each is asked for each workspace.
            while nodes.child(at).try_wait().unwrap().is_none() {
                for key in &nodes.keys {
                    nodes.get(key, "/v1/me").await;
                }
            }
            assert!(nodes.child(at).wait().unwrap().success(), "it ends in order");
            nodes.start(at);
        }
        nodes.balanced().await;
        nodes.checked().await;
    });
}
