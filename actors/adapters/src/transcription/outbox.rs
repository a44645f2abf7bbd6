//! What a talk has not taken yet: as little as it needs to know, however much is said.
use super::{MOST_WAITING, Transcribed};
use std::collections::VecDeque;

/// Answers stay in their order. Of what is told of the turn that is spoken, only what still counts is kept.
#[derive(Debug, Default)]
pub struct Outbox(VecDeque<Transcribed>);

impl Outbox {
    pub fn push(&mut self, event: Transcribed) {
        use Transcribed::{EagerEnd, Failed, Final, Partial, Resumed, TurnEnd};
        match event {
            Final(_) | Failed(_) => {}
            Partial { .. } => self.forget_last(|last| matches!(last, Partial { .. })),
            EagerEnd { .. } => self.forget_last(|last| matches!(last, Partial { .. } | EagerEnd { .. })),
            // All words up to here are in the newest.
            TurnEnd { .. } => {
                self.forget_last(|last| matches!(last, Partial { .. } | EagerEnd { .. } | TurnEnd { .. }));
            }
            Resumed { .. } => {
                self.forget_last(|last| matches!(last, Partial { .. }));
                match self.last().map(|at| &self.0[at]) {
                    // Nobody has begun to answer.
                    Some(EagerEnd { .. }) => return self.forget_last(|last| matches!(last, EagerEnd { .. })),
                    Some(Resumed { .. } | TurnEnd { .. }) => return,
                    _ => {}
                }
            }
        }
        self.0.push_back(event);
    }

    pub fn pop(&mut self) -> Option<Transcribed> {
        self.0.pop_front()
    }

    /// The turn is another one: only answers are left.
    pub fn forget_turn(&mut self) {
        self.0.retain(is_answer);
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn has_room(&self) -> bool {
        self.0.len() < MOST_WAITING
    }

    /// Where the last is that tells of the turn.
    fn last(&self) -> Option<usize> {
        self.0.iter().rposition(|event| !is_answer(event))
    }

    /// Such as do not count any more.
    fn forget_last(&mut self, is_stale: impl Fn(&Transcribed) -> bool) {
        while let Some(at) = self.last().filter(|at| is_stale(&self.0[*at])) {
            self.0.remove(at);
        }
    }
}

fn is_answer(event: &Transcribed) -> bool {
    matches!(event, Transcribed::Final(_) | Transcribed::Failed(_))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept(pushed: &str) -> String {
        let mut outbox = Outbox::default();
        let turn = 1;
        for event in pushed.split(' ') {
            let words = event[1..].to_owned();
            outbox.push(match &event[..1] {
                "p" => Transcribed::Partial { turn, words },
                "f" => Transcribed::Final(words),
                "e" => Transcribed::EagerEnd { turn, words },
                "r" => Transcribed::Resumed { turn },
                "t" => Transcribed::TurnEnd { turn, words },
                other => panic!("{other}"),
            });
        }
        let kept = std::iter::from_fn(|| outbox.pop()).map(|event| match event {
            Transcribed::Partial { words, .. } => format!("p{words}"),
            Transcribed::Final(words) => format!("f{words}"),
            Transcribed::EagerEnd { words, .. } => format!("e{words}"),
            Transcribed::Resumed { .. } => "r".into(),
            Transcribed::TurnEnd { words, .. } => format!("t{words}"),
            Transcribed::Failed(_) => "x".into(),
        });
        kept.collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn the_newest_is_kept_and_no_answer_is_lost() {
        for (pushed, expected) in [
            ("p1 p2 p3", "p3"),
            ("p1 f1 p2 f2", "f1 p2 f2"),
            ("f1 f2 f3", "f1 f2 f3"),
            ("p1 e1", "e1"),
            ("e1 e2", "e2"),
            ("e1 p1 r", ""),
            ("e1 r e2 r e3", "e3"),
            ("r r r", "r"),
            ("r e1 t1", "r t1"),
            ("t1 r p1 t2", "t2"),
            ("t1 e1 r", "t1"),
            ("e1 f1 t1", "f1 t1"),
            ("p1 t1 p2", "t1 p2"),
        ] {
            assert_eq!(kept(pushed), expected, "{pushed}");
        }
    }

    #[test]
    fn another_turn_leaves_only_answers() {
        let mut outbox = Outbox::default();
        let answer = Transcribed::Final("Ja.".into());
        for event in [
            Transcribed::TurnEnd {
                turn: 1,
                words: "Nein.".into(),
            },
            answer.clone(),
            Transcribed::Resumed { turn: 1 },
        ] {
            outbox.push(event);
        }
        outbox.forget_turn();
        assert_eq!((outbox.pop(), outbox.pop()), (Some(answer), None));
    }
}
