//! Sixty-four nodes and ten thousand workspaces, with the real plan and the real memory of leases over a table that does what the
//! statements of `entities::node` and `entities::workspace_lease` do. Nodes stand still at any moment for any time, and their clocks
//! differ by five seconds: never may two of them act for one workspace.
use crate::{
    fence::{FRESH, HANDOVER},
    leases::{Leases, Since},
};
use entities::{
    ids::{NodeId, TenantId},
    node::{LIFE_MS, Load},
    values::Moment,
};
use rand::{Rng, SeedableRng, rngs::StdRng};
use rules::balance::{self, Peer, View};
use std::collections::{BTreeMap, HashMap};
use uuid::Uuid;

const NODES: usize = 64;
const WORKSPACES: usize = 10_000;

fn steps() -> usize {
    let asked = std::env::var("CALLBOARD_TEST_STEPS").ok();
    asked.and_then(|text| text.parse().ok()).unwrap_or(60_000)
}

/// What the database knows. Each method is one transaction.
#[derive(Default)]
struct Table {
    nodes: BTreeMap<NodeId, Row>,
    /// By workspace: who has it, and whom it is meant for.
    leases: Vec<(Option<NodeId>, Option<NodeId>)>,
    free: Vec<usize>,
}

struct Row {
    until: i64,
    load: Load,
    draining: bool,
}

impl Table {
    fn renew(&mut self, id: NodeId, load: Load, now: i64) -> bool {
        let Some(row) = self.nodes.get_mut(&id) else {
            return false;
        };
        (row.until, row.load) = (now + LIFE_MS, load);
        true
    }

    fn end_silent(&mut self, now: i64) {
        let silent: Vec<NodeId> = self
            .nodes
            .iter()
            .filter(|(_, row)| row.until < now)
            .map(|(id, _)| *id)
            .collect();
        for id in silent {
            self.nodes.remove(&id);
            for (at, lease) in self.leases.iter_mut().enumerate() {
                if lease.0 == Some(id) {
                    *lease = (None, None);
                    self.free.push(at);
                }
            }
        }
    }

    fn take(&mut self, id: NodeId, most: u64) -> Vec<usize> {
        if !self.nodes.contains_key(&id) {
            return Vec::new();
        }
        let (nodes, leases) = (&self.nodes, &self.leases);
        let is_open = |at: &usize| match leases[*at].1 {
            Some(wanted) => wanted == id || nodes.get(&wanted).is_none_or(|row| row.draining),
            None => true,
        };
        let (open, others): (Vec<usize>, Vec<usize>) = self.free.iter().copied().partition(is_open);
        let most = usize::try_from(most).unwrap();
        let taken: Vec<usize> = open.iter().copied().take(most).collect();
        self.free = open.into_iter().skip(most).chain(others).collect();
        for at in &taken {
            self.leases[*at] = (Some(id), None);
        }
        taken
    }

    fn give_up(&mut self, id: NodeId, given: &[usize], to: NodeId) -> bool {
        if !self.nodes.contains_key(&id) {
            return false;
        }
        for at in given {
            if self.leases[*at].0 == Some(id) {
                self.leases[*at] = (None, Some(to));
                self.free.push(*at);
            }
        }
        true
    }
}

struct Node {
    id: NodeId,
    leases: Leases,
    /// By the true time: when it next runs, and when it was last known to live.
    runs_at: i64,
    known_at: i64,
    arrives_at: Option<i64>,
    free_looks: u32,
    /// How far its own clock is off.
    skew: i64,
}

fn tenant(at: usize) -> TenantId {
    TenantId(Uuid::from_u128(at as u128 + 1))
}

fn place(tenant: TenantId) -> usize {
    usize::try_from(tenant.0.as_u128()).unwrap() - 1
}

#[test]
fn no_two_nodes_act_for_one_workspace() {
    let seed = rand::random();
    eprintln!("seed {seed}");
    let mut chance = StdRng::seed_from_u64(seed);
    let mut table = Table {
        leases: vec![(None, None); WORKSPACES],
        free: (0..WORKSPACES).collect(),
        ..Table::default()
    };
    let (mut born, mut now) = (0_u128, 0_i64);
    let mut join = |table: &mut Table, now: i64, chance: &mut StdRng| {
        born += 1;
        let id = NodeId(Uuid::from_u128(born));
        let (load, draining) = (Load::default(), false);
        let until = now + LIFE_MS;
        table.nodes.insert(id, Row { until, load, draining });
        Node {
            id,
            leases: Leases::of(id),
            runs_at: now,
            known_at: now,
            arrives_at: None,
            free_looks: 0,
            skew: chance.random_range(-5_000..=5_000),
        }
    };
    let mut nodes: Vec<Node> = (0..NODES).map(|_| join(&mut table, 0, &mut chance)).collect();
    // Who acted last for a workspace, and until when it may have gone on to.
    let mut acted: HashMap<usize, (NodeId, i64)> = HashMap::new();
    let (mut acts, mut moves, mut deaths) = (0_u64, 0_u64, 0_u64);
    for step in 0..steps() {
        let at = (0..nodes.len()).min_by_key(|at| nodes[*at].runs_at).unwrap();
        now = now.max(nodes[at].runs_at);
        let node = &mut nodes[at];
        // A tick in a second; now and then it stands still, in between for longer than it may.
        node.runs_at = now
            + match chance.random_range(0..200) {
                0 => chance.random_range(4_000..60_000),
                1..=3 => chance.random_range(1_000..4_000),
                _ => chance.random_range(200..1_000),
            };
        // Before it looks anything up it does what it may do by what it knows: the deed of a process that has just woken up.
        let act = |node: &Node, acted: &mut HashMap<usize, (NodeId, i64)>, chance: &mut StdRng| {
            let fresh_until = node.known_at + FRESH.as_millis() as i64;
            if now >= fresh_until {
                return 0;
            }
            let here = node.leases.here();
            let some = here.len().min(20);
            for _ in 0..some {
                let at = place(here[chance.random_range(0..here.len())]);
                if let Some((other, until)) = acted.get(&at) {
                    assert!(
                        *other == node.id || *until <= now,
                        "step {step}: {other} and {} act for {at}",
                        node.id
                    );
                }
                acted.insert(at, (node.id, fresh_until));
            }
            some as u64
        };
        acts += act(node, &mut acted, &mut chance);
        let load = Load {
            workspaces: node.leases.count() as i64,
            ..Load::default()
        };
        if !table.renew(node.id, load, now) {
            // It finds out, and ends; its supervisor starts another one.
            deaths += 1;
            nodes[at] = join(&mut table, now, &mut chance);
            continue;
        }
        node.known_at = now;
        table.end_silent(now);
        if node.arrives_at.is_some_and(|arrives_at| arrives_at <= now) {
            node.arrives_at = None;
            let arriving = node.leases.arriving();
            node.leases.arrived(&arriving);
        }
        acts += act(node, &mut acted, &mut chance);
        let free = table.free.len() as u64;
        node.free_looks = if free > 0 { node.free_looks + 1 } else { 0 };
        let peers: Vec<Peer> = table
            .nodes
            .iter()
            .map(|(id, row)| Peer {
                id: *id,
                load: row.load,
                draining: row.draining,
            })
            .collect();
        let plan = balance::plan(&View {
            me: node.id,
            nodes: &peers,
            free,
            free_looks: node.free_looks,
        });
        // While some arrive, the next wait: they are one task.
        if plan.take > 0 && node.arrives_at.is_none() {
            let taken = table.take(node.id, plan.take);
            let taken_at = Moment::from_millis(now + node.skew);
            for at in &taken {
                let last_seen = None;
                node.leases.took(tenant(*at), false, Since { last_seen, taken_at });
            }
            if !taken.is_empty() {
                node.arrives_at = Some(now + HANDOVER.as_millis() as i64);
            }
        }
        if let Some((to, some)) = plan.give {
            let some: Vec<TenantId> = node.leases.here().into_iter().take(some as usize).collect();
            let leaving = node.leases.leave(&some);
            let given: Vec<usize> = leaving.iter().map(|tenant| place(*tenant)).collect();
            node.leases.gave_up(&leaving);
            assert!(table.give_up(node.id, &given, to));
            moves += given.len() as u64;
        }
    }
    eprintln!(
        "{} steps, {} s: {acts} acts, {moves} moves, {deaths} nodes ended",
        steps(),
        now / 1000
    );
    assert!(acts > 10_000 && moves > 100 && deaths > 10, "it was a quiet time");
}
