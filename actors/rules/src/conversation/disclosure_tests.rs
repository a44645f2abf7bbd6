use super::{speech::MARGIN, *};
use entities::{
    agent::{Channels, ConsentMode},
    ids::{AgentId, RoomId, SessionId, TenantId},
    law::{
        DisclosureKind::{Address, Ai, Callback, ClonedVoice, Human, Name, OptOut, Purpose, Recording},
        Legal, Purpose as For,
    },
    session::{CallLegal, Recorded},
    values::{Country, Env, Text},
};
use proptest::prelude::*;
use uuid::Uuid;

fn at(seconds: i64) -> Moment {
    Moment::from_millis(seconds * 1_000)
}

fn number(number: &str) -> E164 {
    E164::parse(number, Country::US).unwrap()
}

/// An outbound call for Acme about solar panels, in which these kinds are disclosed.
fn call(kinds: &[DisclosureKind], change: impl FnOnce(&mut Call)) -> Call {
    let id = Uuid::from_u128;
    let owner = (TenantId(id(1)), Env::Test);
    let agent = (AgentId(id(2)), 1);
    let mut call = Call::new(owner, SessionId(id(3)), agent, number("+15002345670"), at(0));
    call.from_number = Some(number("+15005550100"));
    call.options.legal = Some(CallLegal {
        legal: Legal {
            subject: Some(Text::parse("solar panels").unwrap()),
            ..Legal::default()
        },
        name: Some("Acme Inc.".into()),
        callback: Some(number("+18005550199")),
        staffed: Some(number("+12025550123")),
        address: Some("1 Main St, Springfield".into()),
        disclose: Some(Disclose {
            kinds: kinds.to_vec(),
            repeat_minutes: Some(10),
        }),
        ..CallLegal::default()
    });
    change(&mut call);
    call
}

fn recorded() -> Recorded {
    Recorded {
        channels: Channels::Dual,
        consent: ConsentMode::Verbal,
        retention_days: None,
        transfers: false,
    }
}

fn legal(call: &mut Call) -> &mut CallLegal {
    call.options.legal.as_mut().unwrap()
}

fn opening(call: &Call, language: &str, key: Option<&str>) -> String {
    let disclosures = Disclosures::of(call, language, key);
    disclosures.next().map(|speech| speech.text()).unwrap_or_default()
}

const USUAL: [DisclosureKind; 4] = [Ai, Name, Purpose, OptOut];

#[test]
fn the_opening_names_what_is_wanted_and_known() {
    let of = |kinds: &[DisclosureKind], change: fn(&mut Call)| opening(&call(kinds, change), "en-US", Some("9"));
    let as_it_is = |_: &mut Call| ();
    for (name, said, wanted) in [
        (
            "47 CFR 64.1200(b), AI Act 50",
            of(&USUAL, as_it_is),
            "This is the AI assistant of Acme Inc., calling about solar panels. Say stop or press 9 at any time and you will not \
             be called again.",
        ),
        (
            "only that it is one",
            of(&[Ai], as_it_is),
            "This is the AI assistant of Acme Inc.",
        ),
        (
            "who it is made for comes before who makes it",
            of(&[Ai, Name], |call| {
                legal(call).legal.seller = Some(Text::parse("Sun Ltd").unwrap())
            }),
            "This is the AI assistant of Sun Ltd.",
        ),
        (
            "no name is known",
            of(&[Ai, Name, Purpose], |call| legal(call).name = None),
            "This is an AI assistant, calling about solar panels.",
        ),
        (
            "no subject",
            of(&[Ai, Purpose], |call| legal(call).legal.subject = None),
            "This is the AI assistant of Acme Inc. This is a sales call.",
        ),
        (
            "who picks up need not be who owes it",
            of(&[Ai, Purpose], |call| legal(call).legal.purpose = For::Debt),
            "This is the AI assistant of Acme Inc. This is about a personal business matter.",
        ),
        (
            "one that comes in",
            of(&USUAL, |call| call.direction = Direction::Inbound),
            "You are speaking with the AI assistant of Acme Inc. Say stop or press 9 at any time and you will not be called again.",
        ),
        (
            "a room",
            of(&USUAL, |call| call.room_id = Some(RoomId(Uuid::from_u128(4)))),
            "You are speaking with the AI assistant of Acme Inc. Say stop or press 9 at any time and you will not be contacted \
             again.",
        ),
        (
            "CRTC, PECR, AI Act 50(4)",
            of(&[Ai, ClonedVoice, Recording, Callback, Address], as_it_is),
            "This is the AI assistant of Acme Inc. The voice that you hear is a digital copy of a real person's voice. This call \
             is transcribed. You can reach us at +1 8 0 0 5 5 5 0 1 9 9. Our address: 1 Main St, Springfield.",
        ),
        (
            "Cal. Penal Code 632: a transcript counts as a recording",
            of(&[Ai, OptOut, Recording], as_it_is),
            "This is the AI assistant of Acme Inc. Say stop or press 9 at any time and you will not be called again. This call is \
             transcribed.",
        ),
        (
            "what is recorded says so by itself",
            of(&[Ai, Recording], |call| call.options.recording = Some(recorded())),
            "This is the AI assistant of Acme Inc.",
        ),
        ("nothing", of(&[], as_it_is), ""),
        ("the law is not known", of(&USUAL, |call| call.options.legal = None), ""),
    ] {
        assert_eq!(said, wanted, "{name}");
    }
    // Source: 47 CFR 64.1200(b)(3): the opt-out follows the name within two seconds.
    assert_eq!(
        opening(&call(&[Address, OptOut, Name, Callback], |_| ()), "en", Some("9")),
        "This is the AI assistant of Acme Inc. Say stop or press 9 at any time and you will not be called again. You can reach us at \
         +1 8 0 0 5 5 5 0 1 9 9. Our address: 1 Main St, Springfield."
    );
    let call = call(&[OptOut], |_| ());
    assert_eq!(
        opening(&call, "en", None),
        "Say stop at any time and you will not be called again."
    );
    assert_eq!(
        opening(&call, "de-AT", Some("#")),
        "Sagen Sie jederzeit Stopp oder drücken Sie die Rautetaste, und Sie werden nicht mehr angerufen."
    );
}

/// Every text is filled, and none of them claims to be human.
#[test]
fn every_language_says_everything() {
    let all = [
        Ai,
        Name,
        Purpose,
        OptOut,
        Recording,
        Callback,
        Address,
        ClonedVoice,
        Human,
    ];
    let sides: [fn(&mut Call); 3] = [
        |_| (),
        |call| call.direction = Direction::Inbound,
        |call| legal(call).name = None,
    ];
    for (language, _) in texts::all() {
        assert!(speaks(language) && speaks(&format!("{language}-XX")));
        for (change, key) in sides.into_iter().flat_map(|side| [(side, Some("9")), (side, None)]) {
            let mut disclosures = Disclosures::of(&call(&all, change), language, key);
            let mut said = vec![disclosures.truth().text];
            for asked in [Asked::IsMachine, Asked::IsHuman, Asked::Either] {
                said.push(disclosures.answer(asked).text);
            }
            said.extend(disclosures.of_message().map(|speech| speech.text()));
            said.extend(disclosures.closing().map(|speech| speech.text()));
            for _ in 0..=MOST_TRIES {
                let speech = disclosures.next().unwrap();
                said.push(speech.text());
                disclosures.said(&speech, Came::CutIn(0), at(1));
            }
            disclosures.interrupted();
            said.push(disclosures.next().unwrap().text());
            for text in said {
                let is_filled = !text.contains(['{', '}']) && !text.contains("..") && !text.contains("  ");
                assert!(is_filled, "{language}: {text}");
                assert!(!crate::conversation::claims::claims_to_be_human(&text), "{text}");
            }
        }
        let abandoned = safe_harbour(language, "Acme", &number("+18005550199"), Some("9")).unwrap();
        assert!(abandoned.contains("Acme") && abandoned.contains("+1 8 0 0") && abandoned.contains('9'));
    }
    assert!(!speaks("ja-JP") && safe_harbour("ja", "Acme", &number("+18005550199"), None).is_none());
    assert_eq!(
        safe_harbour("en", "Acme", &number("+18005550199"), None).unwrap(),
        "This was a telemarketing call by Acme, +1 8 0 0 5 5 5 0 1 9 9. Call that number to be called no more."
    );
}

/// Source: Cal. AB 3030: at the end, too, and with how a person is reached.
#[test]
fn the_last_words_say_what_has_spoken_and_where_people_answer() {
    let of = |kinds: &[DisclosureKind], change: fn(&mut Call)| {
        let closing = Disclosures::of(&call(kinds, change), "en-US", None).closing();
        closing.map(|speech| (speech.text(), kinds_of(&speech.sentences), speech.is_whole))
    };
    let was = "This was an AI assistant.";
    let whole = format!("{was} To speak with a person, call +1 2 0 2 5 5 5 0 1 2 3.");
    let told = Some((whole, vec![Ai, Human], true));
    assert_eq!(of(&[Ai, Human], |_| ()), told);
    assert_eq!(of(&[Human], |call| call.direction = Direction::Inbound), told);
    let nobody = of(&[Ai, Human], |call| legal(call).staffed = None);
    assert_eq!(nobody, Some((was.to_owned(), vec![Ai], true)));
    assert_eq!(of(&USUAL, |_| ()), None);
    // Nothing of it is said, or owed, before.
    let mut disclosures = Disclosures::of(&call(&[Ai, Human], |_| ()), "en", None);
    let opening = "This is the AI assistant of Acme Inc.".to_owned();
    assert_eq!(say(&mut disclosures, None, 1), (opening, false, vec![Ai, Name]));
    assert_eq!(disclosures.next(), None);
}

/// What was said, and which kinds were heard of it.
fn say(disclosures: &mut Disclosures, heard: Option<usize>, seconds: i64) -> (String, bool, Vec<DisclosureKind>) {
    let speech = disclosures.next().unwrap();
    let came = heard.map_or(Came::Whole, Came::CutIn);
    let (whole, _) = disclosures.said(&speech, came, at(seconds));
    (speech.text(), speech.is_whole, kinds_of(&whole))
}

#[test]
fn what_was_talked_over_is_said_again_and_then_in_its_shortest_form() {
    let mut disclosures = Disclosures::of(&call(&USUAL, |_| ()), "en-US", Some("9"));
    let whole = opening(&call(&USUAL, |_| ()), "en-US", Some("9"));
    let offer = "Say stop or press 9 at any time and you will not be called again.";
    let nothing = Vec::new();
    assert_eq!(
        say(&mut disclosures, Some(12), 1),
        (whole.clone(), false, nothing.clone())
    );
    // One that has just ended may not have been heard.
    let first = whole.len() - offer.len();
    let second = say(&mut disclosures, Some(first + MARGIN - 1), 2);
    assert_eq!(second, (whole, false, nothing.clone()));
    let third = say(&mut disclosures, Some(first + MARGIN), 3);
    assert_eq!((third.1, third.2), (false, vec![Ai, Name, Purpose]));
    let last = say(&mut disclosures, None, 4);
    assert_eq!(
        last,
        ("Say stop or press 9 for no more calls.".into(), true, vec![OptOut])
    );
    assert_eq!(disclosures.next(), None);
    // The same, heard at once.
    let mut disclosures = Disclosures::of(&call(&USUAL, |_| ()), "en-US", Some("9"));
    assert_eq!(say(&mut disclosures, None, 4).2, [Ai, Name, Purpose, OptOut]);
    assert_eq!(disclosures.next(), None);
}

/// Nothing is begun more often than that, whoever talks over what.
#[test]
fn nobody_is_told_for_ever() {
    for heard in [0, 30, 60, 90, 1_000] {
        let mut disclosures = Disclosures::of(&call(&USUAL, |_| ()), "en-US", Some("9"));
        let mut said = 0;
        while disclosures.next().is_some() {
            say(&mut disclosures, Some(heard), 1);
            said += 1;
        }
        assert!(said <= MOST_TRIES + 1, "{heard}: {said}");
    }
}

/// A voice that fails is not somebody who talks over it.
#[test]
fn what_no_voice_says_stays_owed() {
    let of = || Disclosures::of(&call(&USUAL, |_| ()), "en-US", Some("9"));
    let fail = |disclosures: &mut Disclosures| {
        let speech = disclosures.next().unwrap();
        disclosures.said(&speech, Came::BrokeOff(3), at(1));
        speech.is_whole
    };
    let mut disclosures = of();
    for nth in 1..=MOST_TRIES {
        assert!(!disclosures.have_failed(), "{nth}");
        assert!(!fail(&mut disclosures), "in full: {nth}");
    }
    assert!(disclosures.have_failed() && disclosures.next().is_some());
    // In the shortest form there is nothing left to be tried.
    let mut disclosures = of();
    for _ in 0..MOST_TRIES {
        say(&mut disclosures, Some(0), 1);
    }
    assert!(!disclosures.have_failed() && fail(&mut disclosures));
    assert!(disclosures.have_failed() && disclosures.next().is_some());
    // One that is got over is forgotten.
    let mut disclosures = of();
    for _ in 0..2 * MOST_TRIES {
        fail(&mut disclosures);
        say(&mut disclosures, None, 2);
        assert!(!disclosures.have_failed());
        assert_eq!(disclosures.next(), None);
        disclosures.interrupted();
    }
}

#[test]
fn a_long_talk_is_reminded_and_so_is_one_that_was_interrupted() {
    let mut disclosures = Disclosures::of(&call(&[Ai, Purpose, OptOut, Callback], |_| ()), "en-US", None);
    say(&mut disclosures, None, 10);
    disclosures.look(at(609));
    assert_eq!(disclosures.next(), None);
    disclosures.look(at(610));
    let (text, is_whole, kinds) = say(&mut disclosures, Some(5), 611);
    let reminder = "A reminder: you are speaking with the AI assistant of Acme Inc. Say stop at any time and you will not be \
                    called again.";
    assert_eq!((text.as_str(), is_whole, kinds.len()), (reminder, false, 0));
    assert_eq!(
        say(&mut disclosures, None, 700).0,
        reminder,
        "it is owed until it was heard"
    );
    disclosures.look(at(1_299));
    assert_eq!(disclosures.next(), None, "from then on");
    disclosures.interrupted();
    assert_eq!(say(&mut disclosures, None, 1_299).0, reminder);

    let mut once = Disclosures::of(
        &call(&[Ai], |call| {
            legal(call).disclose.as_mut().unwrap().repeat_minutes = None
        }),
        "en",
        None,
    );
    say(&mut once, None, 10);
    once.look(at(100_000));
    assert_eq!(once.next(), None);
    once.interrupted();
    assert!(once.next().is_some());
    // Where nothing is wanted, nothing interrupts.
    let mut none = Disclosures::of(&call(&[], |_| ()), "en", None);
    none.interrupted();
    assert_eq!((none.next(), none.are_wanted()), (None, false));
}

#[test]
fn who_asks_gets_the_truth() {
    let disclosures = Disclosures::of(&call(&[], |_| ()), "en-US", None);
    for (asked, wanted) in [
        (
            Asked::IsMachine,
            "Yes. I am the AI assistant of Acme Inc., not a human being.",
        ),
        (
            Asked::IsHuman,
            "No. I am the AI assistant of Acme Inc., not a human being.",
        ),
        (Asked::Either, "I am the AI assistant of Acme Inc., not a human being."),
    ] {
        assert_eq!(disclosures.answer(asked).text, wanted);
    }
    let mut unknown = Disclosures::of(&call(&[], |call| call.options.legal = None), "de", None);
    assert_eq!(unknown.truth().text, "Ich bin ein KI-Assistent, kein Mensch.");
    assert_eq!(unknown.next(), None);
    unknown.owe_truth();
    assert_eq!(
        unknown.next().unwrap().text(),
        "Zur Erinnerung: Sie sprechen mit einem KI-Assistenten."
    );
}

#[test]
fn a_message_begins_with_the_name_and_how_to_opt_out() {
    let message = |change: fn(&mut Call)| {
        let disclosures = Disclosures::of(&call(&USUAL, change), "en-US", Some("9"));
        disclosures.of_message().map(|speech| speech.text())
    };
    assert_eq!(
        message(|_| ()).unwrap(),
        "This is the AI assistant of Acme Inc., calling about solar panels. To be called no more, call +1 8 0 0 5 5 5 0 1 9 9."
    );
    let shown = message(|call| legal(call).callback = None).unwrap();
    assert!(shown.ends_with("call +1 5 0 0 5 5 5 0 1 0 0."), "{shown}");
    let hidden = message(|call| {
        legal(call).callback = None;
        call.from_number = None;
    });
    assert!(hidden.unwrap().ends_with("solar panels."));
    assert_eq!(message(|call| call.options.legal = None), None);
}

#[test]
fn the_word_that_is_offered_counts_when_it_is_all_that_is_said() {
    for (language, said) in [
        ("en-US", "Stop."),
        ("en-US", "Stop, please!"),
        ("en-US", "Okay, stop, stop."),
        ("de-DE", "Stopp!"),
        ("de-DE", "stop bitte"),
        ("fr", "Stop, s'il vous plaît."),
        ("es", "Baja."),
        ("it", "Basta."),
        ("pt", "Parar, por favor."),
        ("nl", "Stop."),
        ("pl", "Proszę, stop."),
        ("tr", "İptal."),
        ("ja", "Stop."),
    ] {
        assert!(is_stop(said, language), "{language}: {said}");
    }
    for (language, said) in [
        ("en-US", ""),
        ("en-US", "Please."),
        ("en-US", "Stop by tomorrow."),
        ("en-US", "Where is the bus stop?"),
        ("de-DE", "Bitte."),
        ("es", "Estoy de baja."),
        ("tr", "İptal etmek istediğim bir sipariş var."),
    ] {
        assert!(!is_stop(said, language), "{language}: {said}");
    }
    // Each opening names a word that counts.
    for (language, texts) in texts::all() {
        assert!(is_stop(texts.stop, language), "{language}");
    }
}

#[test]
fn a_value_that_looks_like_a_gap_stays_as_it_is() {
    let odd = call(&[Ai, Purpose], |call| {
        legal(call).name = Some("{subject} {key}\n&  Sons".into())
    });
    assert_eq!(
        opening(&odd, "en", None),
        "This is the AI assistant of {subject} {key} & Sons, calling about solar panels."
    );
}

/// How often the other side cuts in, and after how many characters; `None`: it listens.
fn interruptions() -> impl Strategy<Value = Vec<Option<usize>>> {
    proptest::collection::vec(proptest::option::of(0usize..300), 0..8)
}

proptest! {
    // L4
    #[test]
    fn the_brain_speaks_only_once_all_was_heard_or_said_to_its_end(interruptions in interruptions()) {
        let mut disclosures = Disclosures::of(&call(&USUAL, |_| ()), "en-US", Some("9"));
        let (mut heard, mut said_to_its_end) = (Vec::new(), false);
        let mut interruptions = interruptions.into_iter();
        // `next` is what is said before the brain may speak.
        for _ in 0..=MOST_TRIES {
            let Some(speech) = disclosures.next() else { break };
            let came = match interruptions.next().flatten() {
                Some(characters) => Came::CutIn(characters),
                None => Came::Whole,
            };
            said_to_its_end |= speech.is_whole;
            let (whole, cut) = disclosures.said(&speech, came, at(1));
            prop_assert_eq!(whole.len() + cut.len(), speech.sentences.len());
            heard.extend(kinds_of(&whole));
        }
        prop_assert!(disclosures.next().is_none(), "it ends");
        prop_assert!(said_to_its_end || USUAL.iter().all(|kind| heard.contains(kind)), "{heard:?}");
    }
}
