use super::*;
use crate::evaluate::tests::turns;
use serde_json::json;

/// One question, asked and answered.
fn value(kind: Kind, said: &str, language: &str) -> Option<Value> {
    let text = "How about the thing we talked over?";
    let talk = [
        Turn {
            role: Role::Agent,
            content: "So, how about the thing we talked over?",
        },
        Turn {
            role: Role::User,
            content: said,
        },
    ];
    let question = Question { key: "k", text, kind };
    answers(&talk, language, &[question]).into_iter().next().map(|found| {
        assert_eq!((found.key.as_str(), found.evidence_turn), ("k", 1));
        found.value
    })
}

#[test]
fn booleans() {
    for (said, language, expected) in [
        ("Yes.", "en", Some(true)),
        ("Of course!", "en", Some(true)),
        ("Nope.", "en", Some(false)),
        ("No, thank you.", "en", Some(false)),
        ("No problem.", "en", Some(true)),
        ("What do you mean?", "en", None),
        ("Ja, gerne.", "de", Some(true)),
        ("Nein.", "de", Some(false)),
        ("Bien sûr.", "fr", Some(true)),
        ("Claro que sí.", "es", Some(true)),
        ("Certo.", "it", Some(true)),
        ("Não.", "pt", Some(false)),
        ("Nee.", "nl", Some(false)),
        ("Oczywiście.", "pl", Some(true)),
        ("Hayır.", "tr", Some(false)),
    ] {
        assert_eq!(
            value(Kind::Boolean, said, language),
            expected.map(Value::Bool),
            "{said}"
        );
    }
}

#[test]
fn numbers() {
    for (said, expected) in [
        ("Three.", json!(3)),
        ("About 12 of them", json!(12)),
        ("twenty-five people", json!(25)),
        ("I have one hundred and twenty", json!(120)),
        ("a dozen", json!(12)),
        ("2.5 percent", json!(2.5)),
        ("2,5 Prozent", json!(2.5)),
        ("1,200 dollars", json!(1200)),
        ("1.200,50 Euro", json!(1200.5)),
        ("minus -3 degrees", json!(-3)),
        ("one of my friends has seven", json!(7)),
        ("just one", json!(1)),
        ("1,000,000", json!(1_000_000)),
        ("zero", json!(0)),
        ("two dozen", json!(24)),
        ("nine hundred and ninety nine", json!(999)),
    ] {
        assert_eq!(value(Kind::Number, said, "en"), Some(expected), "{said}");
    }
    for said in [
        "many",
        "a few",
        "",
        "someone",
        "between 3-5",
        "three or four",
        "half a dozen",
        "not 12",
        "I don't have two",
        "my order number is 4711",
        "it is about invoice 2027-118",
        "9007199254740993",
        "twenty, no, thirty",
    ] {
        assert_eq!(value(Kind::Number, said, "en"), None, "{said}");
    }
    assert_eq!(value(Kind::Number, "ich habe keine 12", "de"), None);
    let huge = value(Kind::Number, &"9".repeat(400), "en");
    assert_eq!(huge, None, "no number of JSON");
}

#[test]
fn dates() {
    for (said, language, expected) in [
        ("2027-03-02", "en", Some("2027-03-02")),
        ("On 2.3.2027 please", "de", Some("2027-03-02")),
        ("3/2/2027", "en-US", Some("2027-03-02")),
        ("3/2/2027", "en-GB", Some("2027-02-03")),
        ("25/12/2027", "en", Some("2027-12-25")),
        ("March 2nd, 2027", "en", Some("2027-03-02")),
        ("the 2nd of March 2027", "en", Some("2027-03-02")),
        ("am 2. März 2027", "de", Some("2027-03-02")),
        ("le 1er août 2027", "fr", Some("2027-08-01")),
        ("el 5 de mayo de 2027", "es", Some("2027-05-05")),
        ("24 de dezembro de 2027", "pt", Some("2027-12-24")),
        ("3 ocak 2027", "tr", Some("2027-01-03")),
        ("2 marca 2027", "pl", Some("2027-03-02")),
        ("31.2.2027", "de", None),
        ("maybe tomorrow", "en", None),
        ("in May", "en", None),
    ] {
        assert_eq!(
            value(Kind::Date, said, language),
            expected.map(|date| json!(date)),
            "{said}"
        );
    }
}

#[test]
fn choices() {
    let kind = || {
        Kind::Choice(
            ["red", "dark red", "blue_green", "none of these"]
                .map(str::to_owned)
                .to_vec(),
        )
    };
    for (said, expected) in [
        ("Red, please.", Some("red")),
        ("The dark red one.", Some("dark red")),
        ("blue green", Some("blue_green")),
        ("something greenish, green", Some("blue_green")),
        ("none of these", Some("none of these")),
        ("not red", None),
        ("anything but red, I don't like red", None),
        ("red or blue green", None),
        ("red or dark red", None),
        ("I was bored", None),
        ("no idea", None),
    ] {
        assert_eq!(value(kind(), said, "en"), expected.map(|label| json!(label)), "{said}");
    }
}

#[test]
fn the_answer_is_what_follows_the_question() {
    let talk = turns(&[
        ('A', "Hello! May I ask how many employees your company has?"),
        ('U', "Well, around forty."),
        ('A', "And which city is your office in?"),
        ('T', "{\"ok\":true}"),
        ('U', "  Rotterdam, near the harbour.  "),
        ('A', "Do you own the building?"),
        ('A', "Are you still there?"),
        ('U', "Yes."),
        ('A', "Sorry, how many employees has the company?"),
        ('U', "Forty-two, to be exact."),
    ]);
    let question = |key, text, kind| Question { key, text, kind };
    let found = answers(
        &talk,
        "en",
        &[
            question("staff", "How many employees does the company have?", Kind::Number),
            question("city", "Which city is the office in?", Kind::Text),
            question("owner", "Do you own the building?", Kind::Boolean),
            question("budget", "What is the yearly budget for telephones?", Kind::Number),
        ],
    );
    let expected = [
        ("staff", json!(42), 9),
        ("city", json!("Rotterdam, near the harbour."), 4),
    ];
    let expected = expected.map(|(key, value, evidence_turn)| FoundAnswer {
        key: key.into(),
        value,
        evidence_turn,
    });
    assert_eq!(found, expected);
    let long = "x".repeat(3000);
    let Some(Value::String(text)) = value(Kind::Text, &long, "en") else {
        panic!("no text")
    };
    assert_eq!(text.chars().count(), 500);
}
