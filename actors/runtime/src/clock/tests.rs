//! Alarms of a clock that stands still: in order, each worked off before the next.
use super::*;

#[tokio::test]
async fn alarms_fire_in_order_and_each_is_worked_off_before_the_next() {
    let clock = Clock::manual(Moment::from_millis(0));
    let log = Arc::new(Mutex::new(Vec::new()));
    for at in [30, 10, 20] {
        let (clock, log) = (clock.clone(), log.clone());
        tokio::spawn(async move {
            let _busy = clock.sleep_until(Moment::from_millis(at)).await;
            tokio::task::yield_now().await;
            log.lock().unwrap().push((at, clock.now().millis()));
        });
    }
    tokio::task::yield_now().await;
    clock.advance(Duration::from_millis(25)).await;
    assert_eq!(*log.lock().unwrap(), [(10, 10), (20, 20)]);
    assert_eq!(clock.now().millis(), 25);
}

#[tokio::test]
async fn a_step_of_the_wall_moves_no_alarm() {
    const HOUR: i64 = 3_600_000;
    let clock = Clock::manual(Moment::from_millis(0));
    let rung = Arc::new(Mutex::new(None));
    let (its, out) = (clock.clone(), rung.clone());
    tokio::spawn(async move {
        let _busy = its.sleep_until(Moment::from_millis(60_000)).await;
        *out.lock().unwrap() = Some(its.times());
    });
    tokio::task::yield_now().await;
    clock.step_wall(2 * HOUR);
    let doubt = clock.doubt().unwrap();
    assert_eq!(
        (doubt.since.millis(), doubt.step_ms, doubt.believed_at.millis()),
        (0, 2 * HOUR, 600_000)
    );
    clock.advance(Duration::from_secs(59)).await;
    assert_eq!(*rung.lock().unwrap(), None);
    clock.advance(Duration::from_secs(1)).await;
    let times = rung.lock().unwrap().unwrap();
    assert_eq!(
        (times.ours.millis(), times.wall.millis(), times.in_doubt),
        (60_000, 2 * HOUR + 60_000, true)
    );
    assert_eq!((times.earlier(), times.later()), (times.ours, times.wall));
    // Accepted, and set back: our time stays where it is, and the wall clock is led there.
    let since = clock.doubt().unwrap().since;
    assert!(!clock.accept(since.plus_seconds(-1)) && clock.accept(since) && !clock.accept(since));
    assert_eq!(clock.now().millis(), 2 * HOUR + 60_000);
    clock.step_wall(-2 * HOUR);
    clock.advance(Duration::from_secs(600)).await;
    assert!(!clock.is_in_doubt(), "it has stood still");
    assert_eq!(clock.times().behind_ms(), 2 * HOUR);
    clock.advance(Duration::from_secs(3600)).await;
    assert_eq!(clock.times().behind_ms(), 2 * HOUR - 1_800_000);
}
