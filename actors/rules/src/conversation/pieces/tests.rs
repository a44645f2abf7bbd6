use super::*;

/// Pushed as one, and letter by letter: the same, but for brackets that are not there yet.
fn cut(text: &str) -> Vec<String> {
    cut_with(text, Pieces::default)
}

fn cut_with(text: &str, new: fn() -> Pieces) -> Vec<String> {
    let (mut at_once, mut by_letter) = (new(), new());
    let mut pieces = Vec::new();
    for letter in text.chars() {
        by_letter.push(letter.encode_utf8(&mut [0; 4]));
        pieces.extend(std::iter::from_fn(|| by_letter.next()));
    }
    pieces.extend(by_letter.finish());
    at_once.push(text);
    let mut whole: Vec<String> = std::iter::from_fn(|| at_once.next()).collect();
    whole.extend(at_once.finish());
    assert_eq!(whole, pieces);
    assert_eq!(whole.concat().trim_end(), text.trim_end());
    whole.iter().map(|sentence| sentence.trim().to_owned()).collect()
}

#[test]
fn sentences_end_where_a_reader_would_pause() {
    for (text, expected) in [
        ("Hi. Yes! No? Well… So", vec!["Hi.", "Yes!", "No?", "Well…", "So"]),
        ("It is 3.5 or 1.000,00. Fine.", vec!["It is 3.5 or 1.000,00.", "Fine."]),
        (
            "Dr. Who (Mr. X) met J. S. Bach. Yes.",
            vec!["Dr. Who (Mr. X) met J. S. Bach.", "Yes."],
        ),
        (
            "Fruit, e.g. apples, z.B. or z. B. pears. No.",
            vec!["Fruit, e.g. apples, z.B. or z. B. pears.", "No."],
        ),
        (
            "Am 3. März. In 2026. Do I? So do I. Ja.",
            vec!["Am 3. März.", "In 2026.", "Do I?", "So do I.", "Ja."],
        ),
        ("1. One\n2. Two\n\n\nThree", vec!["1. One", "2. Two", "Three"]),
        (
            "He said \"Go.\" Then (he left!) What?! Wait... Now",
            vec!["He said \"Go.\"", "Then (he left!)", "What?!", "Wait...", "Now"],
        ),
        ("您好。再见！好吗？好", vec!["您好。", "再见！", "好吗？", "好"]),
        (
            "See example.com or v1.2!x for more. ",
            vec!["See example.com or v1.2!x for more."],
        ),
        ("  \n ", vec![]),
    ] {
        assert_eq!(cut(text), expected, "{text}");
    }
}

#[test]
fn long_sentences_are_cut_at_a_space() {
    let lengths = |text: &str| cut(text).iter().map(|part| part.chars().count()).collect::<Vec<_>>();
    assert_eq!(lengths(&"äbcd ".repeat(100)), [399, 99]);
    assert_eq!(lengths(&"ä".repeat(1000)), [400, 400, 200]);
    assert_eq!(lengths(&format!("{}. {}", "a".repeat(399), "b".repeat(10))), [400, 10]);
    assert_eq!(lengths(&format!("b {}.", "a".repeat(400))), [1, 399, 2]);
}

#[test]
fn the_first_piece_of_a_turn_may_be_a_clause() {
    for (text, expected) in [
        (
            "I can certainly do that, but first, tell me your name. Then, of course, we go on.",
            vec![
                "I can certainly do that,",
                "but first, tell me your name.",
                "Then, of course, we go on.",
            ],
        ),
        (
            "Yes, of course, I can do it: now.",
            vec!["Yes, of course,", "I can do it: now."],
        ),
        (
            "Sure. I can do that for you today, Ann.",
            vec!["Sure.", "I can do that for you today, Ann."],
        ),
        (
            "It costs 1,000,000 or 2,500 at 10:30 today",
            vec!["It costs 1,000,000 or 2,500 at 10:30 today"],
        ),
        (
            "That is what I would do – if I could. Yes.",
            vec!["That is what I would do –", "if I could.", "Yes."],
        ),
        (
            "Well-known and far-away places are",
            vec!["Well-known and far-away places are"],
        ),
        (
            "我们今天下午三点钟可以给您打电话确认一下，好吗？好",
            vec!["我们今天下午三点钟可以给您打电话确认一下，", "好吗？", "好"],
        ),
        (
            "\n\nAt nine o'clock tomorrow, if I may.",
            vec!["At nine o'clock tomorrow,", "if I may."],
        ),
        ("Yes, no, well", vec!["Yes, no, well"]),
        (
            "Certainly, I can move that for you. Wednesday it is.",
            vec!["Certainly,", "I can move that for you.", "Wednesday it is."],
        ),
        (
            "No, never, I can do that for you.",
            vec!["No, never,", "I can do that for you."],
        ),
        ("Yes, well, I can.", vec!["Yes, well,", "I can."]),
        ("Sure, I can.", vec!["Sure, I can."]),
        (
            "Please see [our page, the new one](https://a.example/b), and (if you like, of course) the old one.",
            vec![
                "Please see [our page, the new one](https://a.example/b),",
                "and (if you like, of course) the old one.",
            ],
        ),
        (
            "Wait <break time=\"1s\" of=\"silence, please\"/> and `type this, or that` now, if you like.",
            vec![
                "Wait <break time=\"1s\" of=\"silence, please\"/> and `type this, or that` now,",
                "if you like.",
            ],
        ),
    ] {
        assert_eq!(cut_with(text, Pieces::clause_first), expected, "{text}");
    }
}

#[test]
fn a_clause_is_told_from_a_sentence() {
    for clause in [
        "I can certainly do that,",
        "One of these: ",
        "That is it –",
        "我们今天下午，",
    ] {
        assert!(is_clause(clause), "{clause}");
    }
    for whole in ["Yes.", "Is it 10:30?", "no end", "好。", ""] {
        assert!(!is_clause(whole), "{whole}");
    }
}
