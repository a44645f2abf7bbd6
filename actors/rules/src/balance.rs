//! Which workspaces a node takes and gives, so that all nodes carry about the same. It decides how many, and not which: nothing here
//! can make two nodes have one.
use entities::{ids::NodeId, node::Load};

/// A node that lives, as it has last told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Peer {
    pub id: NodeId,
    pub load: Load,
    /// It hands over what it has.
    pub draining: bool,
}

/// What one node sees.
#[derive(Clone, Copy, Debug)]
pub struct View<'a> {
    pub me: NodeId,
    /// All that live, this one among them.
    pub nodes: &'a [Peer],
    /// Workspaces that nobody has.
    pub free: u64,
    /// Looks in a row at which there were some.
    pub free_looks: u32,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Plan {
    /// So many of those that nobody has.
    pub take: u64,
    /// So many of ours, and to whom.
    pub give: Option<(NodeId, u64)>,
}

/// Of a workspace at rest; a live call weighs four of them, a hundred deliveries that wait one.
const WORKSPACE: i64 = 100;
const LIVE_CALL: i64 = 400;
const DELIVERY: i64 = 1;
/// Given at once, at most.
const MOST: u64 = 200;
/// What is left by the others for so many looks is taken by whoever looks.
const PATIENCE: u32 = 3;

pub fn weight(load: Load) -> i64 {
    at_rest(load) + load.deliveries_waiting * DELIVERY
}

/// Without what waits to be delivered: nobody knows whose that is, and it would follow a workspace from node to node.
fn at_rest(load: Load) -> i64 {
    load.workspaces * WORKSPACE + load.live_calls * LIVE_CALL
}

pub fn plan(view: &View<'_>) -> Plan {
    let Some(me) = view.nodes.iter().find(|node| node.id == view.me) else {
        return Plan::default();
    };
    let staying: Vec<&Peer> = view.nodes.iter().filter(|node| !node.draining).collect();
    let lightest = staying
        .iter()
        .filter(|node| node.id != view.me)
        .min_by_key(|node| (at_rest(node.load), node.id));
    if me.draining {
        return Plan {
            take: 0,
            give: lightest.map(|node| (node.id, MOST)),
        };
    }
    let count = staying.len() as i64;
    let total: i64 = staying.iter().map(|node| weight(node.load)).sum();
    let mine = weight(me.load);
    if view.free > 0 {
        let free = i64::try_from(view.free).unwrap_or(i64::MAX / WORKSPACE);
        let fair = rounded_up(total + free * WORKSPACE, count);
        let lacks = u64::try_from(rounded_up((fair - mine).max(0), WORKSPACE)).unwrap_or(0);
        let take = if view.free_looks > PATIENCE {
            view.free
        } else {
            lacks.min(view.free)
        };
        return Plan { take, give: None };
    }
    let (mine, total) = (
        at_rest(me.load),
        staying.iter().map(|node| at_rest(node.load)).sum::<i64>(),
    );
    let fair = total / count;
    // Small differences are not worth a move.
    let slack = (fair / 10).max(WORKSPACE);
    let has_more = |node: &Peer| at_rest(node.load) - fair >= WORKSPACE;
    let give = lightest.and_then(|node| {
        let lacks = fair - at_rest(node.load);
        if !has_more(me) || lacks < WORKSPACE || (mine - fair <= slack && lacks <= slack) {
            return None;
        }
        // Others give too, at the same moment.
        let givers = staying.iter().filter(|node| has_more(node)).count();
        let some = (mine - fair).min(lacks / i64::try_from(givers.max(1)).unwrap_or(1)) / WORKSPACE;
        let is_heaviest = staying
            .iter()
            .all(|node| (at_rest(node.load), node.id) <= (mine, me.id));
        let some = u64::try_from(some).unwrap_or(0).max(u64::from(is_heaviest)).min(MOST);
        (some > 0).then_some((node.id, some))
    });
    Plan { take: 0, give }
}

fn rounded_up(value: i64, by: i64) -> i64 {
    (value + by - 1).div_euclid(by)
}

#[cfg(test)]
#[path = "balance_tests.rs"]
mod tests;
