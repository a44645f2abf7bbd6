use super::*;

const CASES: [(&str, &str); 9] = [
    ("en", include_str!("claims/cases/en.txt")),
    ("de", include_str!("claims/cases/de.txt")),
    ("fr", include_str!("claims/cases/fr.txt")),
    ("es", include_str!("claims/cases/es.txt")),
    ("it", include_str!("claims/cases/it.txt")),
    ("pt", include_str!("claims/cases/pt.txt")),
    ("nl", include_str!("claims/cases/nl.txt")),
    ("pl", include_str!("claims/cases/pl.txt")),
    ("tr", include_str!("claims/cases/tr.txt")),
];

/// What people ask, and what only sounds like it; then what a model must not say, and what only sounds like it.
const HEADINGS: [&str; 6] = ["machine", "human", "either", "neither", "claim", "true"];

fn judged(heading: &str, sentence: &str) -> &'static str {
    match heading {
        "claim" | "true" if claims_to_be_human(sentence) => "claim",
        "claim" | "true" => "true",
        _ => match asked(sentence) {
            Some(Asked::IsMachine) => "machine",
            Some(Asked::IsHuman) => "human",
            Some(Asked::Either) => "either",
            None => "neither",
        },
    }
}

#[test]
fn every_sentence_is_understood_in_every_language() {
    let mut wrong = Vec::new();
    for (language, cases) in CASES {
        let mut heading = "";
        let mut counts = HashMap::<&str, usize>::new();
        for line in cases.lines().filter(|line| !line.is_empty()) {
            if HEADINGS.contains(&line) {
                heading = line;
                continue;
            }
            *counts.entry(heading).or_default() += 1;
            let judged = judged(heading, line);
            if judged != heading {
                wrong.push(format!("{language} {heading}, not {judged}: {line}"));
            }
        }
        for heading in ["machine", "human", "neither", "claim", "true"] {
            assert!(counts[heading] >= 9, "{language} {heading}: {counts:?}");
        }
    }
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

#[test]
fn the_lists_have_no_faults() {
    for (language, text) in TEXTS {
        let lists = pattern::read(text);
        assert_eq!(pattern::faults(&lists), Vec::<String>::new(), "{language}");
        for section in ["machine", "human", "claim"] {
            assert!(lists.contains_key(section), "{language} {section}");
        }
    }
}

/// The cases ask each sentence of all lists; these are of two languages at once.
#[test]
fn every_language_counts_and_quotes_nowhere() {
    assert_eq!(asked("Sorry, ¿eres un robot?"), Some(Asked::IsMachine));
    assert_eq!(asked("Excuse me, sind Sie ein Roboter?"), Some(Asked::IsMachine));
    assert!(claims_to_be_human("Of course not: soy una persona real."));
    assert!(!claims_to_be_human("My son said \"I'm a real person\" to it."));
}

/// Whatever the agent speaks, in what it says a claim of another language is none the less one.
#[test]
fn a_model_that_changes_its_language_says_the_truth() {
    for text in ["Ich bin ein Mensch.", "No soy un robot.", "Je suis humain."] {
        assert_eq!(watch(false).look(text).as_deref(), Some(TRUTH), "{text}");
    }
}

const TRUTH: &str = "I am an AI.";

fn watch(is_answered: bool) -> Watch {
    Watch::new("en-US", TRUTH.into(), is_answered)
}

/// Texts of one answer, and what is said of them.
#[test]
fn a_claim_is_replaced_by_the_truth_and_nothing_else_is() {
    let table: [(&str, &[&str], &[&str]); 7] = [
        (
            "no claim",
            &["Hello there.", "A real person will call you."],
            &["Hello there.", "A real person will call you."],
        ),
        (
            "one of several sentences",
            &["Sure. I'm a real person. So, Friday?"],
            &["Sure. I am an AI. So, Friday?"],
        ),
        (
            "once in an answer",
            &["I'm human.", "Really, I'm not a robot. Friday?"],
            &[TRUTH, "Friday?"],
        ),
        (
            "over the pieces of a sentence",
            &["Well, I'm not,", "of course, a robot."],
            &["Well, I'm not,", TRUTH],
        ),
        (
            "one sentence does not go on in the next",
            &["That is what I'm not.", "A robot cleans it."],
            &["That is what I'm not.", "A robot cleans it."],
        ),
        (
            "a clause before it",
            &["Let me be honest with you:", "I am human."],
            &["Let me be honest with you:", TRUTH],
        ),
        ("nothing", &["", "  "], &["", "  "]),
    ];
    for (name, texts, wanted) in table {
        let mut watch = watch(false);
        let said: Vec<String> = texts
            .iter()
            .map(|text| watch.look(text).unwrap_or_else(|| (*text).to_owned()))
            .collect();
        assert_eq!(said, wanted, "{name}");
    }
}

#[test]
fn what_was_replaced_is_told() {
    let mut watch = watch(false);
    watch.look("I'm human. I'm a person. I'm not a bot. I'm not a machine. I am real.");
    assert_eq!(
        watch.replaced(),
        ["I'm human.", "I'm a person.", "I'm not a bot.", "I'm not a machine."]
    );
    assert!(watch.replaced().is_empty(), "once");
}

/// "Are you a robot?" was answered with the truth: a model's "No." would take it back.
#[test]
fn a_question_that_was_answered_is_not_answered_again() {
    for text in ["No.", "No, of course not.", "Yes."] {
        assert_eq!(watch(true).look(text).as_deref(), Some(""), "{text}");
        assert_eq!(watch(false).look(text), None, "{text}");
    }
    let mut first = watch(true);
    assert_eq!(first.look("No. Shall we go on?").as_deref(), Some("Shall we go on?"));
    assert_eq!(first.look("Yes."), None, "that answers something else");
    assert_eq!(watch(true).look("Shall we go on?"), None);
}
