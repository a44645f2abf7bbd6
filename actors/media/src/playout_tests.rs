//! What goes in comes out: all of it, once, in its order, and it is told how far it came.
use super::*;
use crate::feed::Playing;
use futures_util::FutureExt;
use proptest::prelude::*;
use std::sync::LazyLock;

/// Numbered samples: none is zero, so that silence can be told from them.
fn numbered(count: usize) -> Vec<i16> {
    (0..count).map(|n| (n % 30_000) as i16 + 1).collect()
}

fn sound(frames: impl IntoIterator<Item = SoundFrame>) -> Vec<i16> {
    let samples = frames.into_iter().flat_map(|frame| frame.samples);
    samples.filter(|sample| *sample != 0).collect()
}

#[test]
fn nothing_is_heard_before_something_has_come_and_what_is_late_leaves_a_pause() {
    let mut playout = Playout::new(8_000);
    assert_eq!((playout.next_frame(), playout.is_over()), (None, false));
    assert_eq!(playout.push(&numbered(200)), 200);
    assert_eq!(sound(playout.next_frame()), numbered(160));
    let frame = playout.next_frame().unwrap();
    assert_eq!(
        (&frame.samples[..40], &frame.samples[40..]),
        (&numbered(200)[160..], &[0; 120][..])
    );
    // Nothing has come: a pause, and no end.
    assert_eq!(playout.next_frame(), Some(SoundFrame::silence(8_000)));
    assert_eq!(
        (playout.played_ms(), playout.is_over()),
        (25, false),
        "a pause was not said"
    );
    assert_eq!(playout.push(&[7; 160]), 160);
    assert_eq!(playout.next_frame().unwrap().samples, [7; 160]);
    playout.finish();
    assert!(playout.is_over());
    assert_eq!((playout.push(&[8]), playout.played_ms()), (0, 45));
}

#[test]
fn frames_have_20_ms_at_every_rate() {
    for (rate, size) in [(8_000, 160), (16_000, 320), (22_050, 441), (24_000, 480)] {
        let mut playout = Playout::whole(rate, numbered(rate as usize).into());
        let frames: Vec<_> =
            std::iter::from_fn(|| (!playout.is_over()).then(|| playout.next_frame().unwrap())).collect();
        assert_eq!(frames.len(), 50);
        assert!(
            frames
                .iter()
                .all(|frame| frame.rate == rate && frame.samples.len() == size)
        );
        assert_eq!((sound(frames), playout.played_ms()), (numbered(rate as usize), 1_000));
    }
    for (rate, played_at) in [
        (0, 24_000),
        (4_000, 24_000),
        (11_025, 24_000),
        (22_051, 24_000),
        (48_000, 24_000),
    ] {
        assert_eq!(playable(rate), played_at, "{rate}");
    }
}

#[tokio::test]
async fn what_is_paused_keeps_all_that_comes_and_goes_on_where_it_stopped() {
    let (playing, mut feed, played) = Playing::fed(8_000);
    feed.push(&numbered(240));
    let mut heard = sound(playing.next_frame());
    playing.pause();
    assert_eq!(feed.push(&numbered(400)[240..]), 160);
    assert_eq!((playing.next_frame(), playing.is_over()), (None, false));
    playing.resume();
    heard.extend(sound(playing.next_frame()));
    playing.pause();
    feed.finish();
    assert_eq!(
        (playing.next_frame(), playing.is_over()),
        (None, false),
        "its end waits too"
    );
    playing.resume();
    heard.extend(sound(std::iter::from_fn(|| playing.next_frame())));
    assert_eq!(heard, numbered(400));
    assert_eq!(played.await, Ok(Played::Whole));
}

#[tokio::test]
async fn a_feed_that_is_far_ahead_waits() {
    let (playing, mut feed, played) = Playing::fed(16_000);
    assert!(feed.ready().await);
    let all = numbered(16_000 * 11);
    let most = 16_000 * MOST_SECONDS as usize;
    assert_eq!(feed.push(&all), most, "ten seconds");
    assert_eq!(feed.push(&all[most..]), 0);
    assert!(feed.ready().now_or_never().is_none());
    let rest = tokio::spawn(async move {
        assert!(feed.push_all(&all[most..]).await);
        feed.finish();
        all
    });
    let mut heard = Vec::new();
    while !playing.is_over() {
        heard.extend(playing.next_frame());
        tokio::task::yield_now().await;
    }
    assert!(
        sound(heard) == rest.await.unwrap(),
        "nothing is lost, nothing said twice"
    );
    assert_eq!(played.await, Ok(Played::Whole));
    assert_eq!(playing.next_frame(), None);
}

#[tokio::test]
async fn a_feed_is_told_when_nobody_hears_it_any_more() {
    let (playing, mut feed, played) = Playing::fed(8_000);
    feed.push(&numbered(80_000));
    for _ in 0..3 {
        playing.next_frame();
    }
    let waiting = tokio::spawn(async move {
        let went_on = feed.push_all(&[1; 1_000]).await;
        (went_on, feed.push(&[1]), feed.ready().await)
    });
    tokio::task::yield_now().await;
    playing.stop();
    assert_eq!(waiting.await.unwrap(), (false, 0, false));
    assert_eq!(played.await, Ok(Played::StoppedAfter(60)));
    assert_eq!((playing.next_frame(), playing.is_over()), (None, true));
}

#[tokio::test]
async fn who_stops_feeding_ends_what_is_said_after_what_has_come() {
    // In the middle, at the end of what has come, and before anything has.
    for (pushed, taken, left) in [(400, 1, 2), (320, 2, 0), (0, 0, 1)] {
        let (playing, mut feed, played) = Playing::fed(8_000);
        feed.push(&numbered(pushed));
        let mut heard: Vec<_> = (0..taken).filter_map(|_| playing.next_frame()).collect();
        drop(feed);
        let rest: Vec<_> = std::iter::from_fn(|| playing.next_frame()).collect();
        assert_eq!(rest.len(), left, "of {pushed}");
        heard.extend(rest);
        assert_eq!(sound(heard), numbered(pushed));
        assert_eq!(played.await, Ok(Played::Whole));
    }
}

/// Ten seconds at most, in their own rate, whatever the rate that is fed.
#[test]
fn a_rate_that_does_not_fit_is_made_to() {
    for rate in [4_000_u32, 11_025, 44_100, 48_000] {
        let (playing, mut feed, _played) = Playing::fed(rate);
        let second = vec![1_000; rate as usize];
        let mut pushed = 0;
        for _ in 0..12 {
            pushed += feed.push(&second);
        }
        assert!(pushed.abs_diff(10 * rate as usize) <= 10, "{rate}: {pushed}");
        drop(feed);
        let frames: Vec<_> = std::iter::from_fn(|| playing.next_frame()).collect();
        assert!(
            frames
                .iter()
                .all(|frame| frame.rate == 24_000 && frame.samples.len() == 480)
        );
        assert!(frames.len().abs_diff(500) <= 1, "{rate}: {}", frames.len());
        let middle = &frames[200].samples;
        assert!(
            middle.iter().all(|sample| sample.abs_diff(1_000) < 20),
            "{rate}: {middle:?}"
        );
    }
    let (playing, played) = Playing::whole(48_000, vec![1_000; 48_000].into());
    let frames = std::iter::from_fn(|| playing.next_frame()).count();
    assert_eq!((frames, played.now_or_never()), (50, Some(Ok(Played::Whole))));
    let (playing, mut feed, _played) = Playing::fed(0);
    assert_eq!(
        (feed.push(&[1; 10]), playing.next_frame().is_some()),
        (10, true),
        "it stands nothing on its head"
    );
}

#[derive(Clone, Debug)]
enum Step {
    Push(usize),
    Frame,
    Pause(bool),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        (0..3_000_usize).prop_map(Step::Push),
        Just(Step::Frame),
        Just(Step::Frame),
        any::<bool>().prop_map(Step::Pause)
    ];
    prop::collection::vec(step, 0..200)
}

/// More than any steps push.
static ALL: LazyLock<Vec<i16>> = LazyLock::new(|| numbered(3_000 * 200));

proptest! {
    /// However pushes and frames follow each other, and whenever it is stopped.
    #[test]
    fn nothing_is_lost_nothing_is_repeated_and_it_is_told_how_far_it_came(
        rate in prop::sample::select(vec![8_000_u32, 16_000, 22_050, 24_000]),
        steps in steps(),
        is_stopped: bool,
    ) {
        let (playing, mut feed, mut played) = Playing::fed(rate);
        let (all, most) = (&*ALL, (rate * MOST_SECONDS) as usize);
        let (mut pushed, mut heard, mut is_paused) = (0, Vec::new(), false);
        for step in steps {
            match step {
                Step::Push(count) => {
                    let taken = feed.push(&all[pushed..pushed + count]);
                    pushed += taken;
                    let waiting = pushed - heard.len();
                    prop_assert!(waiting <= most, "memory is bounded");
                    prop_assert!(taken == count || waiting == most, "nothing is refused without need");
                }
                Step::Frame => {
                    let frame = playing.next_frame();
                    prop_assert!(frame.is_none() || !is_paused, "nothing goes out meanwhile");
                    heard.extend(sound(frame));
                }
                Step::Pause(pauses) => {
                    is_paused = pauses;
                    if pauses { playing.pause() } else { playing.resume() }
                }
            }
        }
        prop_assert!(played.try_recv().is_err(), "it has not ended");
        if is_stopped {
            playing.stop();
            drop(feed);
            prop_assert_eq!(&heard[..], &all[..heard.len()]);
            let ms = heard.len() as u64 * 1_000 / u64::from(rate);
            prop_assert_eq!(played.try_recv(), Ok(Played::StoppedAfter(ms)));
            prop_assert_eq!(playing.next_frame(), None);
        } else {
            feed.finish();
            playing.resume();
            heard.extend(sound(std::iter::from_fn(|| playing.next_frame())));
            prop_assert!(heard == all[..pushed]);
            prop_assert_eq!(played.try_recv(), Ok(Played::Whole));
        }
    }
}
