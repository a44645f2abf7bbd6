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
