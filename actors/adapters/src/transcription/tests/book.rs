//! Turns and their words, told in positions.
use super::*;
use std::time::Duration;

const SECOND: u64 = 16_000;

struct Told {
    book: Book,
    now: Instant,
    is_sure: bool,
}

impl Told {
    fn new() -> Self {
        Told {
            book: Book::new(Patience::default()),
            now: Instant::now(),
            is_sure: true,
        }
    }

    /// A turn of so many seconds, given to the connection.
    fn turn(&mut self, seconds: u64) -> &mut Self {
        self.book.begin();
        self.more(seconds)
    }

    fn more(&mut self, seconds: u64) -> &mut Self {
        let samples = vec![1; (seconds * SECOND) as usize];
        self.book.hear(&samples);
        match self.book.is_known() {
            true => self.book.pass(samples.len()),
            false => assert_eq!(self.book.next_unsent(self.now, 0).unwrap().samples, samples),
        }
        self
    }

    fn ask(&mut self) -> &mut Self {
        self.book.ask(self.now);
        self
    }

    fn heard(&mut self, from: u64, to: u64, text: &str, is_done: bool) -> bool {
        let piece = Piece {
            from: from * SECOND,
            to: to * SECOND,
            text: text.into(),
            is_done,
        };
        self.book.heard(piece).unwrap()
    }

    /// What is answered by now.
    fn answers(&mut self) -> Vec<String> {
        let answers = self.book.settle(self.now, self.is_sure, None);
        let told = answers.into_iter().map(|answer| match answer {
            Transcribed::Final(words) => words,
            Transcribed::Failed(failure) => format!("! {}", failure.name()),
            other => panic!("{other:?}"),
        });
        told.collect()
    }
}

fn none() -> Vec<String> {
    Vec::new()
}

#[test]
fn a_turn_has_all_its_words_in_their_order() {
    let mut told = Told::new();
    told.turn(3).ask();
    assert!(told.heard(0, 1, "I woud", false));
    assert!(told.heard(0, 2, " I would like ", true));
    assert_eq!(told.book.words(), "I would like");
    assert_eq!(told.answers(), none(), "a second is missing");
    assert!(told.heard(2, 3, "to book", true));
    assert_eq!(told.answers(), ["I would like to book"]);
    told.more(1).ask();
    assert_eq!(told.answers(), none());
    told.heard(3, 4, "a table.", true);
    assert_eq!(told.answers(), ["I would like to book a table."], "all since its begin");
}

#[test]
fn each_question_has_one_answer_in_their_order() {
    let mut told = Told::new();
    told.turn(2).ask().ask();
    told.turn(1).ask();
    told.book.begin();
    assert!(!told.heard(0, 2, "One.", true), "of a turn that is over");
    assert_eq!(told.answers(), ["One.", "One."]);
    told.ask();
    assert_eq!(
        told.answers(),
        none(),
        "nothing was said there, but the second comes first"
    );
    told.heard(2, 3, "Two.", true);
    assert_eq!(told.answers(), ["Two.", ""]);
    told.book.discard();
    told.ask();
    assert_eq!(told.answers(), [""], "no turn has no words");
}

#[test]
fn late_words_of_a_forgotten_turn_are_nobodys() {
    let mut told = Told::new();
    told.turn(2).ask();
    told.turn(2).ask();
    assert_eq!(told.book.discard(), Some(2 * SECOND));
    told.turn(1);
    assert_eq!(told.answers(), none());
    assert!(!told.heard(0, 2, "Yes.", true));
    assert!(!told.heard(2, 4, "Uh-huh", true));
    assert_eq!(told.book.words(), "");
    assert_eq!(told.answers(), ["Yes.", ""]);
    // Forgotten without a question; its words run into those of nobody.
    told.book.discard();
    told.turn(1).ask();
    assert!(!told.heard(4, 5, "Hm", true));
    told.heard(5, 6, "No.", true);
    assert_eq!(told.answers(), ["No."]);
}

#[test]
fn a_little_that_is_not_told_is_not_waited_for() {
    let mut told = Told::new();
    told.is_sure = false;
    told.turn(2).ask();
    told.heard(0, 1, "Yes", false);
    told.now += Duration::from_millis(1_200);
    assert_eq!(told.answers(), none(), "a second is more than a little");
    let mut heard_to = |lacking: u64, text: &str| {
        let to = 2 * SECOND - lacking;
        let text = text.to_owned();
        let (from, is_done) = (0, false);
        told.book
            .heard(Piece {
                from,
                to,
                text,
                is_done,
            })
            .unwrap();
        told.answers()
    };
    assert_eq!(heard_to(3_200, "Yes, but"), none(), "a `no` takes 200 ms");
    assert_eq!(heard_to(2_400, "Yes, but no"), ["Yes, but no"]);
    // A short turn of which nothing was heard.
    told.book.begin();
    told.book.hear(&[1; 3_200]);
    told.book.next_unsent(told.now, 0).unwrap();
    told.ask();
    told.now += Duration::from_millis(1_200);
    assert_eq!(told.answers(), none());
    assert_eq!(
        told.book.wake(told.now, false),
        Some(told.now + Duration::from_millis(8_800))
    );
    told.now += Duration::from_millis(8_800);
    assert_eq!(told.answers(), ["! timeout"]);
}

#[test]
fn times_are_not_believed() {
    let mut told = Told::new();
    told.turn(1);
    told.heard(0, 1_000_000, "One.", true);
    told.heard(5_000, 4_000, "Two.", true);
    told.more(1).ask();
    assert_eq!(told.answers(), none(), "of what was said later nothing was known");
    told.heard(1, 2, "Three.", true);
    assert_eq!(told.answers(), ["One. Two. Three."]);
    let too_many = (0..).find_map(|at| {
        told.more(1);
        told.book
            .heard(Piece {
                from: at,
                to: at + 1,
                text: "a".into(),
                is_done: true,
            })
            .err()
    });
    assert_eq!(too_many, Some(SpeechError::TooLong));
    assert!(told.book.words().chars().count() <= guard::MAX_WORDS);
}

#[test]
fn another_connection_gets_what_has_no_answer_once() {
    let mut told = Told::new();
    told.turn(2).ask();
    told.turn(1);
    told.heard(0, 2, "One", false);
    told.book.broke(SpeechError::Closed);
    assert!(told.book.wants_link());
    assert_eq!(told.answers(), none());
    let first = told.book.next_unsent(told.now, 0).unwrap();
    assert_eq!((first.samples.len(), first.is_asked), (32_000, true));
    let second = told.book.next_unsent(told.now, 0).unwrap();
    assert_eq!((second.samples.len(), second.is_asked), (16_000, false));
    assert!(told.book.next_unsent(told.now, 0).is_none() && !told.book.wants_link());
    told.heard(0, 2, "One.", true);
    assert_eq!(told.answers(), ["One."]);
    told.book.broke(SpeechError::Closed);
    assert!(!told.book.wants_link(), "it was given twice");
    told.ask();
    assert_eq!(told.answers(), ["! closed"]);
    told.turn(1).ask();
    told.heard(0, 1, "Again.", true);
    assert_eq!(told.answers(), ["Again."], "the next turn is a new one");
}

#[test]
fn a_pause_of_the_connection_loses_no_words() {
    let mut told = Told::new();
    told.turn(1);
    told.heard(0, 1, "Well", true);
    told.book.rest();
    assert!(!told.book.wants_link());
    told.more(1).ask();
    told.heard(0, 1, "yes.", true);
    assert_eq!(told.answers(), ["Well yes."]);
}

#[test]
fn what_is_answered_costs_no_other_connection() {
    let mut told = Told::new();
    told.turn(1).ask();
    told.heard(0, 1, "Yes,", true);
    assert_eq!(told.answers(), ["Yes,"]);
    told.book.broke(SpeechError::Closed);
    assert!(!told.book.wants_link());
    told.ask();
    assert_eq!(told.answers(), ["Yes,"], "it is known");
    told.more(1);
    told.book.broke(SpeechError::Closed);
    assert!(told.book.wants_link(), "of what was said later nothing is known");
    assert_eq!(told.book.next_unsent(told.now, 0).unwrap().samples.len(), 16_000);
    told.ask();
    told.heard(0, 1, "please.", true);
    assert_eq!(told.answers(), ["Yes, please."]);
}

#[test]
fn what_is_lost_fails_and_what_waits_too_long_too() {
    let mut told = Told::new();
    told.turn(1).ask();
    told.book.lose(0, SECOND, SpeechError::Garbage);
    assert_eq!(told.answers(), ["! garbage"]);
    told.turn(1).ask();
    told.now += Duration::from_secs(10);
    assert_eq!(told.answers(), ["! timeout"]);
    told.book.begin();
    told.book.hear(&[1; 100]);
    told.ask();
    told.book.give_up(SpeechError::Absent);
    assert_eq!(told.answers(), ["! absent"]);
}

#[test]
fn only_so_much_is_kept() {
    let mut told = Told::new();
    let mut failed = Vec::new();
    for _ in 0..100 {
        told.turn(1).ask();
        failed.extend(told.answers());
    }
    assert_eq!(failed, vec!["! timeout"; 100 - MOST_TURNS], "the others wait");
    assert!(told.book.has_room());
    for _ in 0..MOST_TURNS {
        told.turn(45).ask();
        told.answers();
    }
    let kept: usize = told.book.turns.iter().map(|turn| turn.sound.len()).sum();
    assert!(kept <= 3 * LONGEST, "{kept}");
}

#[test]
fn messages_are_whole_while_a_turn_goes_on() {
    let mut told = Told::new();
    told.book.begin();
    told.book.hear(&[1; 3_000]);
    let unsent = told.book.next_unsent(told.now, 1_280).unwrap();
    assert_eq!((unsent.samples.len(), unsent.rest.len()), (2_560, 440));
    assert_eq!(told.book.sent(), 2_560);
    told.book.broke(SpeechError::Closed);
    told.ask();
    let unsent = told.book.next_unsent(told.now, 1_280).unwrap();
    assert_eq!(
        (unsent.samples.len(), unsent.rest.len()),
        (3_000, 0),
        "all of it is wanted"
    );
}
