use super::*;
use proptest::prelude::*;

fn check(table: &[(&str, &str)]) {
    for (written, expected) in table {
        assert_eq!(spoken(written), *expected, "{written:?}");
    }
}

#[test]
fn plain_words_stay_as_they_are() {
    for text in [
        "Sure, I can do that. When would you like to come?",
        "It is 10:30, and costs 1,000.50 € (about 5 % more).",
        "We're at \"Ann's\", O'Neill & Sons; C# or C++, ok?",
        "Write to ann@example.com or see example.com.",
        "3 * 4 is 12, 3*4 too, and 2 < 3 > 1.",
        "Grüße aus Köln – bis später… ja!",
        "您好。我们下午三点见，好吗？",
        "क्‍ष नमस्ते",
        "It takes ~5 minutes, -3 °C outside.",
        "1. One",
    ] {
        assert_eq!(spoken(text), text);
    }
    check(&[("  Two\u{a0}words \t here ", "Two words here"), ("Ça va ?", "Ça va?")]);
}

#[test]
fn emphasis_and_code_lose_their_marks() {
    check(&[
        (
            "This is **very** *important*, __really__ _so_.",
            "This is very important, really so.",
        ),
        ("***Both*** and ~~not this~~ that", "Both and not this that"),
        ("It costs *5* euros, **12** with it.", "It costs 5 euros, 12 with it."),
        ("Press `Enter` or ``x``.", "Press Enter or x."),
        ("the field snake_case_name", "the field snake case name"),
        (r"Not \*bold\* here", "Not bold here"),
        ("```rust\nlet it be;\n```", "let it be;"),
        ("~~~\n4711\n~~~\nThat is it", "4711. That is it"),
        ("```one line```", "one line"),
    ]);
}

#[test]
fn lines_become_sentences_where_they_are_blocks() {
    check(&[
        (
            "## Opening hours ##\nMonday to Friday",
            "Opening hours. Monday to Friday",
        ),
        ("#hashtag and # 1", "#hashtag and # 1"),
        (
            "We have:\n- red\n* **blue**\n+ green.\n\nWhich one?",
            "We have: red. blue. green. Which one?",
        ),
        ("1. One\n2) Two", "1. One. 2) Two"),
        ("- [ ] open\n- [x] done", "open. done"),
        ("> She said\n> > so", "She said so"),
        ("a line that\ngoes on", "a line that goes on"),
        ("One\n\n\nTwo", "One. Two"),
        ("Title\n=====\nText\n---\n* * *\nEnd", "Title. Text. End"),
        ("red • blue", "red, blue"),
    ]);
}

#[test]
fn tables_are_read_cell_by_cell() {
    check(&[(
        "| Day | Open |\n|:----|-----:|\n| Monday | 9 to 5 |\n| Sunday | - |",
        "Day, Open. Monday, 9 to 5. Sunday",
    )]);
}

#[test]
fn links_keep_their_label_and_addresses_go() {
    check(&[
        (
            "See [our page](https://example.com/a_(b)?c=d) now.",
            "See our page now.",
        ),
        (
            "See [the **terms**][1].\n\n[1]: https://example.com/terms",
            "See the terms.",
        ),
        ("![A red car](car.png) is here", "A red car is here"),
        ("[![Logo](logo.png)](https://example.com)", "Logo"),
        ("Go to https://example.com/path?x=1#y. Then call.", "Go to. Then call."),
        (
            "Our page (https://example.com) has it: www.example.com/x!",
            "Our page has it:",
        ),
        ("**https://example.com**", ""),
        ("<https://example.com> and HTTP://EXAMPLE.COM", "and"),
        ("Mail [us](mailto:ann@example.com)", "Mail us"),
        ("[an aside] and a [half", "an aside and a half"),
    ]);
}

#[test]
fn pictures_and_tags_are_not_spoken() {
    check(&[
        ("Great 🎉! See you 👋🏽", "Great! See you"),
        ("A family 👨\u{200d}👩\u{200d}👧 of 3\u{fe0f}\u{20e3}", "A family of 3"),
        ("🇩🇪 Germany ✅ done ★ A → B", "Germany done A B"),
        (
            "one<br/>two <b>three</b> &amp; four&nbsp;five",
            "one two three & four five",
        ),
        ("<speak>Hi<break time=\"300s\"/> there</speak>", "Hi there"),
        ("zero\u{200b}width\u{feff} \u{202e}turned", "zerowidth turned"),
        ("bell\u{7}bell", "bell bell"),
    ]);
}

#[test]
fn nothing_is_said_where_there_is_no_word() {
    for text in [
        "",
        " \n ",
        "...",
        "🎉🎉",
        "---",
        "| --- |",
        "**",
        "https://example.com",
        "?!",
        "<br>",
        "```\n```",
        "( )",
    ] {
        assert_eq!(spoken(text), "", "{text:?}");
    }
}

#[test]
fn brackets_without_end_are_worked_off() {
    let open = "[".repeat(8_000);
    assert_eq!(spoken(&open), "");
    let nested = format!("{}a{}", "[".repeat(2_000), "](b)".repeat(2_000));
    assert_eq!(spoken(&nested), "");
}

proptest! {
    #[test]
    fn whatever_is_written(text in r"(?s)([a-z \n]|[-*_~`#>|<&!\[\]()\\]|https://x\.y|🎉|[1-9]|\PC){0,80}") {
        let said = spoken(&text);
        prop_assert!(said.is_empty() || said.chars().any(char::is_alphanumeric));
        prop_assert!(!said.contains(['\n', '`', '🎉']));
        prop_assert!(!said.contains("https://x"));
        prop_assert_eq!(said.trim(), &*said);
    }
}
