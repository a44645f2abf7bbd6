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
mod tests {
    use super::*;
    use proptest::prelude::*;
    use uuid::Uuid;

    fn id(n: u128) -> NodeId {
        NodeId(Uuid::from_u128(n))
    }

    fn peer(n: u128, workspaces: i64, live_calls: i64, draining: bool) -> Peer {
        let load = Load {
            workspaces,
            live_calls,
            deliveries_waiting: 0,
        };
        Peer {
            id: id(n),
            load,
            draining,
        }
    }

    fn planned(me: u128, nodes: &[Peer], free: u64, free_looks: u32) -> Plan {
        let me = id(me);
        plan(&View {
            me,
            nodes,
            free,
            free_looks,
        })
    }

    #[test]
    fn takes() {
        for (what, me, nodes, free, looks, take) in [
            (
                "the first node takes all",
                1,
                vec![peer(1, 0, 0, false)],
                1_000,
                1,
                1_000,
            ),
            (
                "two share",
                1,
                vec![peer(1, 0, 0, false), peer(2, 0, 0, false)],
                10,
                1,
                5,
            ),
            (
                "who has less takes more",
                1,
                vec![peer(1, 0, 0, false), peer(2, 10, 0, false)],
                4,
                1,
                4,
            ),
            (
                "who has more waits",
                2,
                vec![peer(1, 0, 0, false), peer(2, 10, 0, false)],
                4,
                1,
                0,
            ),
            (
                "and then takes what is left",
                2,
                vec![peer(1, 0, 0, false), peer(2, 10, 0, false)],
                4,
                4,
                4,
            ),
            (
                "calls weigh",
                1,
                vec![peer(1, 0, 10, false), peer(2, 0, 0, false)],
                10,
                1,
                0,
            ),
            (
                "who leaves takes nothing",
                1,
                vec![peer(1, 0, 0, true), peer(2, 0, 0, false)],
                10,
                9,
                0,
            ),
            (
                "who is not known takes nothing",
                3,
                vec![peer(1, 0, 0, false)],
                10,
                9,
                0,
            ),
        ] {
            assert_eq!(planned(me, &nodes, free, looks).take, take, "{what}");
        }
    }

    /// So many nodes with as many workspaces each, and a new one.
    fn crowd(nodes: u128, workspaces: i64) -> Vec<Peer> {
        let mut all: Vec<Peer> = (1..=nodes).map(|n| peer(n, workspaces, 0, false)).collect();
        all.push(peer(99, 0, 0, false));
        all
    }

    #[test]
    fn gives() {
        for (what, me, nodes, give) in [
            ("alone", 1, vec![peer(1, 100, 0, false)], None),
            (
                "to a new node its share",
                1,
                vec![peer(1, 100, 0, false), peer(2, 0, 0, false)],
                Some((id(2), 50)),
            ),
            (
                "each of two a half of it",
                1,
                vec![peer(1, 60, 0, false), peer(2, 60, 0, false), peer(3, 0, 0, false)],
                Some((id(3), 20)),
            ),
            ("a small part of each of many", 12, crowd(12, 13), Some((id(99), 1))),
            (
                "not for a little",
                1,
                vec![peer(1, 51, 0, false), peer(2, 50, 0, false)],
                None,
            ),
            (
                "nothing to whoever leaves",
                1,
                vec![peer(1, 100, 0, false), peer(2, 0, 0, true)],
                None,
            ),
            (
                "all, on leaving",
                1,
                vec![peer(1, 100, 0, true), peer(2, 90, 0, false)],
                Some((id(2), MOST)),
            ),
            (
                "to nobody, if all leave",
                1,
                vec![peer(1, 100, 0, true), peer(2, 90, 0, true)],
                None,
            ),
        ] {
            assert_eq!(planned(me, &nodes, 0, 0).give, give, "{what}");
        }
    }

    proptest! {
        /// Whatever they begin with, after some looks nothing is free and nobody has much more than another; and it rests there.
        #[test]
        fn loads_converge_and_then_nothing_moves(
            has in prop::collection::vec(0_i64..400, 1..12),
            free in 0_u64..2_000,
        ) {
            let mut nodes: Vec<Peer> = has.iter().zip(1..).map(|(has, n)| peer(n, *has, 0, false)).collect();
            let (mut free, mut looks) = (free, 0);
            let all = nodes.iter().map(|node| node.load.workspaces).sum::<i64>() + free as i64;
            for _ in 0..60 {
                let seen = nodes.clone();
                looks = if free > 0 { looks + 1 } else { 0 };
                let at_first = free;
                for at in 0..nodes.len() {
                    let Plan { take, give } = plan(&View { me: seen[at].id, nodes: &seen, free: at_first, free_looks: looks });
                    let take = take.min(free);
                    free -= take;
                    nodes[at].load.workspaces += take as i64;
                    if let Some((to, some)) = give {
                        prop_assert!(some as i64 <= nodes[at].load.workspaces, "gives what it has");
                        nodes[at].load.workspaces -= some as i64;
                        nodes.iter_mut().find(|node| node.id == to).unwrap().load.workspaces += some as i64;
                    }
                }
            }
            prop_assert_eq!(free, 0);
            prop_assert_eq!(nodes.iter().map(|node| node.load.workspaces).sum::<i64>(), all);
            let most = nodes.iter().map(|node| node.load.workspaces).max().unwrap();
            let least = nodes.iter().map(|node| node.load.workspaces).min().unwrap();
            let fair = all / nodes.len() as i64;
            prop_assert!(most - least <= (fair / 10).max(1) * 2 + 2, "{} to {}", least, most);
            for node in &nodes {
                prop_assert_eq!(planned_at(node.id, &nodes), Plan::default());
            }
        }
    }

    fn planned_at(me: NodeId, nodes: &[Peer]) -> Plan {
        plan(&View {
            me,
            nodes,
            free: 0,
            free_looks: 0,
        })
    }
}
