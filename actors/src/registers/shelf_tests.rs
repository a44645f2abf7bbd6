use super::*;
use entities::Error;
use futures_util::FutureExt;
use std::sync::atomic::{AtomicUsize, Ordering};
use uuid::Uuid;

/// Of workspace 0 nobody is: the operator.
fn wanted(workspace: u128, register: u128, file: u128) -> Wanted {
    Wanted {
        register: Uuid::from_u128(register).into(),
        file: Uuid::from_u128(file).into(),
        workspace: (workspace > 0).then(|| Uuid::from_u128(workspace).into()),
        bytes: 800,
    }
}

/// Of so many numbers: eight bytes each.
fn listed(numbers: u64) -> Listed {
    Listed::of((0..numbers).collect(), Vec::new()).unwrap()
}

async fn get(shelf: &Shelf, wanted: Wanted, loads: &AtomicUsize) -> usize {
    let load = || async {
        loads.fetch_add(1, Ordering::SeqCst);
        tokio::task::yield_now().await;
        Ok(listed(100))
    };
    shelf.get(wanted, load).await.unwrap().len()
}

#[tokio::test]
async fn many_who_want_a_file_at_once_load_it_once() {
    let (shelf, loads) = (Shelf::new(10_000), AtomicUsize::new(0));
    let all = (0..20).map(|_| get(&shelf, wanted(1, 1, 1), &loads));
    assert_eq!(futures_util::future::join_all(all).await, vec![100; 20]);
    assert_eq!((loads.load(Ordering::SeqCst), shelf.bytes()), (1, 800));
}

#[tokio::test]
async fn the_one_not_used_for_longest_makes_room() {
    let (shelf, loads) = (Shelf::new(1_600), AtomicUsize::new(0));
    for (register, expected) in [(1, 1), (2, 2), (1, 2), (3, 3), (1, 3), (3, 3), (2, 4), (1, 5)] {
        get(&shelf, wanted(register, register, register), &loads).await;
        assert_eq!(loads.load(Ordering::SeqCst), expected, "{register}");
        assert!(shelf.bytes() <= 1_600);
    }
    let (small, loads) = (Shelf::new(10), AtomicUsize::new(0));
    for _ in 0..2 {
        get(&small, wanted(1, 1, 1), &loads).await;
    }
    assert_eq!(
        (loads.load(Ordering::SeqCst), small.bytes()),
        (1, 800),
        "larger than all, and kept"
    );
}

#[tokio::test]
async fn the_operators_stay_whatever_workspaces_look_into() {
    let (shelf, loads) = (Shelf::new(2_400), AtomicUsize::new(0));
    get(&shelf, wanted(0, 100, 100), &loads).await;
    for workspace in 1..10 {
        get(&shelf, wanted(workspace, workspace, workspace), &loads).await;
        assert!(shelf.bytes() <= 2_400);
    }
    let before = loads.load(Ordering::SeqCst);
    get(&shelf, wanted(0, 100, 100), &loads).await;
    assert_eq!(loads.load(Ordering::SeqCst), before, "it is there");
}

#[tokio::test]
async fn a_workspace_takes_its_share_and_no_more() {
    let (shelf, loads) = (Shelf::new(4_800), AtomicUsize::new(0));
    get(&shelf, wanted(1, 1, 1), &loads).await;
    // Two of its files fit into a third.
    for register in 2..20 {
        get(&shelf, wanted(2, register, register), &loads).await;
    }
    assert_eq!(shelf.bytes(), 800 + 1_600);
    let before = loads.load(Ordering::SeqCst);
    get(&shelf, wanted(1, 1, 1), &loads).await;
    get(&shelf, wanted(2, 19, 19), &loads).await;
    assert_eq!(loads.load(Ordering::SeqCst), before, "both are there");
}

#[tokio::test]
async fn few_are_loaded_at_once_and_their_bytes_are_set_aside() {
    let shelf = Shelf::new(1 << 20);
    let never = |wanted: Wanted| shelf.get(wanted, std::future::pending::<Result<Listed>>);
    let mut loads: Vec<_> = (1..5).map(|n| Box::pin(never(wanted(n, n, n)))).collect();
    for load in &mut loads {
        assert!(load.as_mut().now_or_never().is_none());
    }
    assert_eq!(shelf.bytes(), 1_600, "two of them");
    assert_eq!(
        get(&shelf, wanted(0, 9, 9), &AtomicUsize::new(0)).await,
        100,
        "the operator's at once"
    );
    assert_eq!(shelf.bytes(), 2_400);
    // Whoever goes away leaves nothing behind, and the others go on.
    drop(loads);
    assert_eq!(shelf.bytes(), 800);
    assert_eq!(get(&shelf, wanted(1, 1, 1), &AtomicUsize::new(0)).await, 100);
}

#[tokio::test]
async fn a_new_file_of_a_register_takes_the_old_ones_place() {
    let (shelf, loads) = (Shelf::new(1 << 20), AtomicUsize::new(0));
    for (file, expected) in [(1, 800), (2, 800), (3, 800)] {
        get(&shelf, wanted(1, 1, file), &loads).await;
        assert_eq!(shelf.bytes(), expected);
    }
    get(&shelf, wanted(1, 2, 9), &loads).await;
    assert_eq!(shelf.bytes(), 1_600);
}

#[tokio::test]
async fn what_could_not_be_loaded_is_tried_again() {
    let shelf = Shelf::new(1 << 20);
    let wanted = wanted(1, 1, 1);
    let failed = shelf.get(wanted, || async { Err(Error::Stale) }).await;
    assert!(matches!(failed, Err(Error::Stale)));
    assert_eq!(get(&shelf, wanted, &AtomicUsize::new(0)).await, 100);
}
