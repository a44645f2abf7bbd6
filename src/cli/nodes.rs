//! `callboard nodes`: the processes that serve one database together. Works beside them, on the database itself.
use super::commands::{open, print};
use crate::error::CannotStart;
use clap::Subcommand;
use entities::{node, workspace_lease};
use serde::Serialize;
use std::path::PathBuf;

#[derive(Subcommand)]
pub enum Nodes {
    /// List the nodes, and what each carries
    List,
    /// Have a node hand its workspaces over to the others, and take no more
    ///
    /// Workspaces with live calls follow when these have ended. The process itself goes on; SIGTERM ends it.
    Drain {
        /// Its name, or its id if several have that name
        name: String,
    },
    /// End a drain: the node takes workspaces again
    Resume {
        /// Its name, or its id if several have that name
        name: String,
    },
}

/// A node as the operator sees it.
#[derive(Serialize)]
struct NodeView {
    name: String,
    /// `running`, `draining` or `ended`.
    status: &'static str,
    address: String,
    sip_address: Option<String>,
    version: String,
    workspaces: i64,
    live_calls: i64,
    deliveries_waiting: i64,
    started_at: String,
    seen_at: String,
    id: String,
}

impl From<node::Model> for NodeView {
    fn from(row: node::Model) -> Self {
        let status = match (row.ended_ms, row.draining) {
            (Some(_), _) => "ended",
            (None, true) => "draining",
            (None, false) => "running",
        };
        let ended = row.ended_ms.is_some();
        let carried = |count: i64| if ended { 0 } else { count };
        NodeView {
            status,
            workspaces: carried(row.workspaces),
            live_calls: carried(row.live_calls),
            deliveries_waiting: carried(row.deliveries_waiting),
            name: row.name,
            address: row.address,
            sip_address: row.sip_address,
            version: row.version,
            started_at: row.started_at.to_string(),
            seen_at: row.seen_at.to_string(),
            id: row.id.to_string(),
        }
    }
}

impl Nodes {
    pub async fn run(self, config: Option<PathBuf>, json: bool) -> Result<(), CannotStart> {
        let (_, db, _, _) = open(config).await?;
        if !db.is_shared() {
            let why = "nodes: a SQLite database is served by one process; several nodes need PostgreSQL";
            return Err(CannotStart(why.into()));
        }
        let (name, draining) = match self {
            Nodes::List => {
                let nodes: Vec<NodeView> = node::all(&db.read).await?.into_iter().map(NodeView::from).collect();
                let free = workspace_lease::count_free(&db.read).await?;
                db.close().await;
                show(&nodes, free, json);
                return Ok(());
            }
            Nodes::Drain { name } => (name, true),
            Nodes::Resume { name } => (name, false),
        };
        let living = node::living(&db.read).await?;
        let named = |row: &&node::Model| row.name == name || row.id.to_string() == name;
        let row = match living.iter().filter(named).collect::<Vec<_>>().as_slice() {
            [] => Err(format!(
                "name: `{name}` is not a running node; see `callboard nodes list`"
            )),
            [row] => Ok((*row).clone()),
            rows => {
                let ids: Vec<String> = rows.iter().map(|row| row.id.to_string()).collect();
                Err(format!(
                    "name: {} nodes are called `{name}`; give an id instead: {}",
                    rows.len(),
                    ids.join(", ")
                ))
            }
        };
        let row = row.map_err(CannotStart)?;
        node::set_draining(&db.write, row.id, draining).await?;
        db.close().await;
        let node = NodeView::from(node::Model { draining, ..row });
        match (json, draining) {
            (true, _) => print(&node),
            (false, true) => println!("Draining {name}"),
            (false, false) => println!("{name} accepts workspaces again"),
        }
        Ok(())
    }
}

fn show(nodes: &[NodeView], free: u64, json: bool) {
    if json {
        return print(&serde_json::json!({ "nodes": nodes, "free_workspaces": free }));
    }
    if nodes.is_empty() {
        println!("No nodes: one process serves this database alone, or none does (see node_bind)");
    }
    for node in nodes {
        println!(
            "{:<24} {:<9} {:>6} workspaces {:>6} calls {:>8} deliveries  {}  {}  last seen {}",
            node.name,
            node.status,
            node.workspaces,
            node.live_calls,
            node.deliveries_waiting,
            node.address,
            node.version,
            node.seen_at
        );
    }
    if free > 0 {
        println!("{free} not assigned to a node");
    }
}
