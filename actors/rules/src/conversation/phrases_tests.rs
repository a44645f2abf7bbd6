use super::*;

const CASES: [(&str, &str); 9] = [
    ("en", include_str!("phrases/cases/en.txt")),
    ("de", include_str!("phrases/cases/de.txt")),
    ("fr", include_str!("phrases/cases/fr.txt")),
    ("es", include_str!("phrases/cases/es.txt")),
    ("it", include_str!("phrases/cases/it.txt")),
    ("pt", include_str!("phrases/cases/pt.txt")),
    ("nl", include_str!("phrases/cases/nl.txt")),
    ("pl", include_str!("phrases/cases/pl.txt")),
    ("tr", include_str!("phrases/cases/tr.txt")),
];

const QUESTIONS: [&str; 7] = ["opt_out", "consent", "recording", "human", "goodbye", "menu", "mailbox"];

/// What was made of a sentence: `+`, `-`, or `?` for a consent that is not clear.
fn judge(question: &str, sentence: &str, language: &str) -> &'static str {
    let sign = |is_it: bool| if is_it { "+" } else { "-" };
    match question {
        "opt_out" => sign(is_opt_out(sentence, language, &[])),
        "consent" => consent(sentence, language).map_or("?", sign),
        "recording" => sign(objects_to_recording(sentence, language)),
        "human" => sign(wants_human(sentence, language)),
        "goodbye" => sign(is_goodbye(sentence, language)),
        "menu" => sign(greeting(sentence, language) == Some(Greeting::Menu)),
        "mailbox" => sign(greeting(sentence, language) == Some(Greeting::Mailbox)),
        other => panic!("{other} is no question"),
    }
}

#[test]
fn every_sentence_is_understood_in_every_language() {
    let mut wrong = Vec::new();
    for (language, cases) in CASES {
        let mut heading = ("", "");
        let mut counts = HashMap::<&str, usize>::new();
        for line in cases.lines() {
            if let Some(parts) = line
                .split_once(' ')
                .filter(|(question, _)| QUESTIONS.contains(question))
            {
                heading = parts;
                continue;
            }
            *counts.entry(heading.1).or_default() += 1;
            let judged = judge(heading.0, line, language);
            if judged != heading.1 {
                wrong.push(format!("{language} {} {judged}: {line}", heading.0));
            }
        }
        let least = if language == "en" { 150 } else { 20 };
        assert!(counts.values().sum::<usize>() >= least, "{language}: {counts:?}");
    }
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

/// A list of another language must not find wishes in a sentence of English that has none.
#[test]
fn the_language_of_the_agent_spoils_no_english() {
    let wishes = ["opt_out +", "recording +", "human +"];
    for (language, _) in CASES {
        let mut heading = "";
        for line in CASES[0].1.lines() {
            if line.ends_with(" +") || line.ends_with(" -") || line.ends_with(" ?") {
                heading = line;
            } else if let Some((question, _)) = wishes
                .iter()
                .find(|wish| **wish == heading)
                .and_then(|wish| wish.split_once(' '))
            {
                assert_eq!(judge(question, line, language), "+", "{language}: {line}");
            } else if heading == "opt_out -" {
                assert_eq!(judge("opt_out", line, language), "-", "{language}: {line}");
            }
        }
    }
}

#[test]
fn the_language_is_bcp_47_and_english_always_counts() {
    for language in ["de", "DE", "de-AT", "de_CH", "de-Latn-DE-1996"] {
        assert!(is_opt_out("Rufen Sie mich nicht mehr an", language, &[]), "{language}");
        assert!(is_opt_out("stop calling me", language, &[]), "{language}");
    }
    for language in ["", "xx", "ja-JP", "🦀"] {
        assert!(is_opt_out("stop calling me", language, &[]), "{language}");
        assert!(!is_opt_out("Rufen Sie mich nicht mehr an", language, &[]), "{language}");
    }
    assert_eq!(consent("Yes, that is fine.", "de"), Some(true));
    assert_eq!(consent("fine", "it"), None, "the end");
    assert_eq!(consent("no", "de"), Some(false));
    assert_eq!(consent("Ja, aber please don't record this", "de"), Some(false));
}

#[test]
fn own_phrases_are_whole_words_in_any_case() {
    let own = ["Basta".to_owned(), "no  GRACIAS!".to_owned(), " ".to_owned()];
    for (text, expected) in [
        ("basta", true),
        ("Ya, BASTA.", true),
        ("No, gracias", true),
        ("bastante", false),
        ("gracias", false),
        ("", false),
        ("hello", false),
    ] {
        assert_eq!(is_opt_out(text, "en", &own), expected, "{text}");
    }
}

#[test]
fn letters_and_marks_do_not_matter() {
    for text in [
        "DON'T CALL ME AGAIN",
        "don‘t call me again",
        "dont call me again",
        "  don't\n call   me — again…",
        "Do not\tcall me again",
    ] {
        assert!(is_opt_out(text, "en", &[]), "{text:?}");
    }
    assert!(is_opt_out("losch meine nummer", "de", &[]), "without its accents");
    assert!(
        is_opt_out("lo\u{308}sch meine Nummer", "de", &[]),
        "with combining marks"
    );
}

#[test]
fn any_text_has_an_answer() {
    let long = "don't call me before ".repeat(20_000);
    let odd = [
        "",
        "?",
        "\0",
        "'",
        "''''",
        "don't",
        "no no no no",
        "\u{202e}llac t'nod",
        "🦀🦀",
        &long,
    ];
    for text in odd {
        for (language, _) in CASES {
            assert!(!is_opt_out(text, language, &[]), "{}", text.get(..40).unwrap_or(text));
            consent(text, language);
            objects_to_recording(text, language);
            wants_human(text, language);
            is_goodbye(text, language);
        }
    }
}

#[test]
fn the_lists_are_whole() {
    for (language, lists) in &LISTS {
        let mut sections: Vec<_> = lists.0.keys().copied().collect();
        sections.sort_unstable();
        assert_eq!(
            sections,
            [
                "filler",
                "goodbye",
                "human",
                "keyword",
                "keyword_alone",
                "mailbox",
                "menu",
                "no",
                "opt_out",
                "plain",
                "polite",
                "recording",
                "refusal",
                "stop",
                "told",
                "yes"
            ],
            "{language}"
        );
        assert!(
            pattern::faults(&lists.0).is_empty(),
            "{language}: {:?}",
            pattern::faults(&lists.0)
        );
    }
}
