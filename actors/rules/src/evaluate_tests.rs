use super::*;

pub(super) fn turns(talk: &'static [(char, &'static str)]) -> Vec<Turn<'static>> {
    let role = |sign: char| match sign {
        'A' => Role::Agent,
        'U' => Role::User,
        _ => Role::Tool,
    };
    talk.iter()
        .map(|(sign, content)| Turn {
            role: role(*sign),
            content,
        })
        .collect()
}

fn choice(code: &'static str) -> Choice<'static> {
    Choice {
        code,
        label: "",
        description: "",
    }
}

const CODES: [&str; 12] = [
    "interested",
    "not_interested",
    "callback",
    "wrong_number",
    "do_not_call",
    "appointment",
    "sale",
    "voicemail",
    "no_answer",
    "hung_up",
    "transferred",
    "other",
];

#[test]
fn common_codes_are_told_by_what_was_said() {
    let codes = CODES.map(choice);
    for (said, language, expected) in [
        ("That sounds interesting, tell me more.", "en", "interested"),
        ("Yes, I'm interested.", "en", "interested"),
        ("I'm not interested.", "en", "not_interested"),
        ("No thanks, we already have one.", "en", "not_interested"),
        ("Could you call me back tomorrow?", "en", "callback"),
        ("I'm driving, it's a bad time.", "en", "callback"),
        ("You have the wrong number.", "en", "wrong_number"),
        ("There is nobody here by that name.", "en", "wrong_number"),
        ("I'm not interested, stop calling me.", "en", "do_not_call"),
        ("Take me off your list.", "en", "do_not_call"),
        ("Great, book me for Monday.", "en", "appointment"),
        ("OK, I'll take it.", "en", "sale"),
        ("Please leave a message after the tone.", "en", "voicemail"),
        ("I'm hanging up.", "en", "hung_up"),
        ("Let me speak to a human.", "en", "transferred"),
        ("The weather is nice.", "en", "other"),
        ("Nein danke, kein Interesse.", "de", "not_interested"),
        ("Rufen Sie mich nie wieder an.", "de", "do_not_call"),
        ("Sie haben sich verwählt.", "de", "wrong_number"),
        ("Je ne veux plus être appelé.", "fr", "do_not_call"),
        ("Número equivocado.", "es", "wrong_number"),
        ("Non mi interessa.", "it", "not_interested"),
        ("Não tenho interesse.", "pt", "not_interested"),
        ("Geen interesse.", "nl", "not_interested"),
        ("To pomyłka.", "pl", "wrong_number"),
        ("Yanlış numara.", "tr", "wrong_number"),
    ] {
        let talk = [
            Turn {
                role: Role::Agent,
                content: "Hello, this is Ada.",
            },
            Turn {
                role: Role::User,
                content: said,
            },
        ];
        let (code, note) = disposition(&talk, language, &codes);
        assert_eq!(code, expected, "{said}");
        assert!(expected == "other" || note == format!("said: {said}"), "{said}: {note}");
    }
}

#[test]
fn silence_and_changes_of_mind() {
    let codes = CODES.map(choice);
    let silent = turns(&[('A', "Hello? Are you interested?"), ('U', "  ")]);
    assert_eq!(
        disposition(&silent, "en", &codes),
        ("no_answer".into(), "the callee said nothing".into())
    );
    assert_eq!(disposition(&[], "en", &codes).0, "no_answer");
    let changed = turns(&[
        ('U', "I'm not interested."),
        ('A', "It is free."),
        ('U', "Oh, sounds good, tell me more."),
    ]);
    assert_eq!(disposition(&changed, "en", &codes).0, "interested");
    let tool = turns(&[('U', "Hello."), ('T', "I'm interested, wrong number, stop calling me")]);
    assert_eq!(
        disposition(&tool, "en", &codes).0,
        "other",
        "a tool says nothing for the callee"
    );
}

#[test]
fn own_codes_are_told_by_their_words() {
    let codes = [
        Choice {
            code: "price",
            label: "Too dear",
            description: "Complains about the price or the cost",
        },
        Choice {
            code: "delivery",
            label: "Late delivery",
            description: "The parcel has not arrived",
        },
        Choice {
            code: "misc",
            label: "Everything else",
            description: "",
        },
    ];
    for (talk, expected) in [
        (&[('U', "My parcel never arrived.")][..], "delivery"),
        (&[('U', "The prices are a joke.")], "price"),
        (
            &[('A', "Is it the price?"), ('U', "No, the delivery was late.")],
            "delivery",
        ),
        (&[('U', "Good morning.")], "misc"),
        (&[('A', "Is it about the price, the cost?"), ('U', "Hm.")], "price"),
    ] {
        assert_eq!(disposition(&turns(talk), "en", &codes).0, expected, "{talk:?}");
    }
    let alike = [choice("blue_car"), choice("red_car")];
    assert_eq!(
        disposition(&turns(&[('U', "About my car.")]), "en", &alike).0,
        "blue_car",
        "ties: the first"
    );
    assert_eq!(disposition(&turns(&[('U', "Hm.")]), "en", &alike).0, "blue_car");
    assert_eq!(disposition(&turns(&[('U', "Hm.")]), "en", &[]).0, "");
    let labelled = [
        Choice {
            code: "c1",
            label: "Wrong number",
            description: "",
        },
        Choice {
            code: "c2",
            label: "Other",
            description: "",
        },
    ];
    assert_eq!(disposition(&turns(&[('U', "Wrong number!")]), "en", &labelled).0, "c1");
}

#[test]
fn notes_are_short_and_everything_ends() {
    let long = "stop calling me ".repeat(5000);
    let talk: Vec<Turn<'_>> = (0..2000)
        .map(|_| Turn {
            role: Role::User,
            content: &long[..64],
        })
        .collect();
    let (code, note) = disposition(&talk, "en", &CODES.map(choice));
    assert_eq!(code, "do_not_call");
    assert!(note.chars().count() <= 200);
    let (_, note) = disposition(
        &[Turn {
            role: Role::User,
            content: &long,
        }],
        "en",
        &CODES.map(choice),
    );
    assert_eq!(note.chars().count(), 200);
}
