//! Words whose sound is still being made when they begin: the session learns how long they took, and how they sounded.
use super::*;
use crate::conversation::{
    bench_tests::answered,
    transport::{Due, Event, Voice},
};
use adapters::sound::PcmStream;
use entities::{
    agent::{Channels, ConsentMode},
    session::{Options, Recorded},
};
use futures_util::{
    future::{BoxFuture, FutureExt, pending},
    stream::{self, StreamExt},
};
use std::sync::Arc;

/// 35 letters, which take 1,925 ms by a guess.
const TEXT: &str = "Hello, this is Mia from the clinic.";

/// Plays pieces of 100 ms as they come, and is cut in on after so many of them.
struct Line {
    pieces: usize,
    cut_after: usize,
}

/// So many pieces, whatever is said.
struct Throat(usize);

impl Voice for Throat {
    fn is_streamed(&self) -> bool {
        true
    }
    fn speak(&self, _: String, _: bool, _: Option<Due>) -> BoxFuture<'static, Sound> {
        let chunks = stream::iter(vec![vec![1_000; 2_400]; self.0]).boxed();
        async { Sound::Stream(PcmStream::new(24_000, chunks)) }.boxed()
    }
}

impl CallTransport for Line {
    fn voice(&self) -> Option<Arc<dyn Voice>> {
        Some(Arc::new(Throat(self.pieces)))
    }
    fn say<'a>(&'a mut self, saying: Saying<'a>) -> BoxFuture<'a, Said> {
        async move {
            let Some(Sound::Stream(mut sound)) = saying.sound else {
                return Said::Whole;
            };
            for _ in 0..self.cut_after {
                if sound.chunks.next().await.is_none() {
                    return Said::Whole;
                }
            }
            Said::CutInAfter(100 * self.cut_after as u64)
        }
        .boxed()
    }
    fn listen(&mut self) -> BoxFuture<'_, Event> {
        pending().boxed()
    }
    fn wanted(&mut self) -> BoxFuture<'_, E164> {
        pending().boxed()
    }
    fn hand_over<'a>(&'a mut self, _: &'a E164) -> BoxFuture<'a, Result<(), String>> {
        pending().boxed()
    }
    fn dawdle(&mut self, _: u64) -> BoxFuture<'_, Option<(E164, u64)>> {
        pending().boxed()
    }
}

fn speech_out(line: Line) -> SpeechOut<Line> {
    let recording = Recorded {
        channels: Channels::Dual,
        consent: ConsentMode::Notice,
        retention_days: None,
        transfers: false,
    };
    let options = Options {
        recording: Some(recording),
        ..Options::default()
    };
    let mut speech_out = SpeechOut::new(answered(options), line);
    speech_out.keeps_sound = true;
    speech_out
}

/// What was heard and how long it took; and the turn's words, its end, and the bytes of its sound.
async fn said(line: Line) -> ((String, u64, bool), (String, f64, usize)) {
    let mut speech_out = speech_out(line);
    let Spoken { said, ms, is_cut, .. } = speech_out.say(TEXT, None).await;
    let SessionLink::Dry(session, _) = speech_out.session_link else {
        unreachable!()
    };
    let (turn, sound) = (&session.log.turns[0], &session.log.sounds[0]);
    assert_eq!((session.log.turns.len(), sound.0), (1, 0));
    let words = turn.content.clone().unwrap();
    ((said, ms, is_cut), (words, turn.end_t.unwrap(), sound.1.len()))
}

#[tokio::test]
async fn words_take_as_long_as_their_sound_was_when_it_had_come() {
    for (pieces, seconds) in [(10, 1.0), (30, 3.0)] {
        let (spoken, turn) = said(Line { pieces, cut_after: 100 }).await;
        assert_eq!(spoken, (TEXT.into(), 100 * pieces as u64, false));
        assert_eq!(turn, (TEXT.into(), seconds, 800 * pieces));
    }
}

#[tokio::test]
async fn who_cuts_in_heard_so_much_of_them() {
    // It is not known how long they would have been: as long as such words take, or longer, if more of them has come.
    let (spoken, turn) = said(Line {
        pieces: 30,
        cut_after: 3,
    })
    .await;
    assert_eq!(spoken, ("Hello".into(), 300, true));
    assert_eq!(turn, ("Hello".into(), 0.3, 2_400));
    let (spoken, turn) = said(Line {
        pieces: 40,
        cut_after: 35,
    })
    .await;
    assert_eq!(spoken, (TEXT.into(), 3_500, true));
    assert_eq!(turn, (TEXT.into(), 3.5, 28_000));
}

#[tokio::test]
async fn nothing_is_kept_of_what_is_not_recorded() {
    let mut speech_out = speech_out(Line {
        pieces: 10,
        cut_after: 100,
    });
    speech_out.keeps_sound = false;
    assert_eq!(speech_out.say(TEXT, Some(Pcm::new(8_000, vec![1; 800]))).await.ms, 100);
    assert_eq!(speech_out.say(TEXT, None).await.ms, 1_000);
    let SessionLink::Dry(session, _) = speech_out.session_link else {
        unreachable!()
    };
    assert_eq!((session.log.turns.len(), session.log.sounds.len()), (2, 0));
}
