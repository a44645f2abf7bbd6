use super::*;
use crate::turn::vocabulary;

#[test]
fn a_clause_that_must_go_on_is_unfinished() {
    let table = [
        ("en-US", "I would like to", false),
        ("en-US", "I would like to book", false),
        ("en-US", "I would like to book.", false),
        ("en-US", "I would like to book an appointment", true),
        ("en-US", "On Friday and", false),
        ("en-US", "It costs the.", false),
        ("en-US", "My number is", false),
        ("en-US", "Well, um", false),
        ("en-US", "On Monday,", false),
        ("en-US", "On Monday...", false),
        ("en-US", "On Monday…", false),
        ("en-US", "What are you looking for?", true),
        ("en-US", "That is what I came for.", true),
        ("en-US", "That is what I came for", false),
        ("en-US", "I have read the book", true),
        ("en-US", "Yes", true),
        ("en-US", "No.", true),
        ("en-US", "", true),
        ("en-US", "…", true),
        ("de-DE", "Ich möchte gern einen", false),
        ("de-DE", "Ich komme am Freitag und", false),
        ("de-DE", "Ich komme am Freitag", true),
        ("de", "Also ich ähm", false),
        ("es-ES", "Quisiera reservar", false),
        ("es-ES", "Quisiera una cita para el", false),
        ("es-ES", "Quisiera una cita", true),
        ("fr-FR", "Je voudrais prendre", false),
        ("fr-FR", "Je voudrais un rendez-vous", true),
        ("fr-FR", "Je viens avec", false),
        ("it", "Vorrei prenotare", false),
        ("it", "Vengo con il", false),
        ("pt", "Eu gostaria de", false),
        ("nl", "Ik wil graag een", false),
        ("pl", "Przyjdę w piątek i", false),
        ("tr", "Cuma günü ve", false),
        ("tr", "Cuma günü gelirim", true),
        // Of a language that nobody knows nothing is held back but what the marks say.
        ("ja", "明日は", true),
        ("ja", "明日は…", false),
    ];
    for (language, text, expected) in table {
        assert_eq!(
            is_finished(text, vocabulary::of(language)),
            expected,
            "{language}: {text}"
        );
    }
}

#[test]
fn signs_that_one_listens_are_told_from_words() {
    let table = [
        ("en", "Uh-huh.", true),
        ("en", "Mm-hmm", true),
        ("en", "Yeah, okay, I see.", true),
        ("en", "Got it!", true),
        ("en", "Yeah, but", false),
        ("en", "Wait", false),
        ("en", "No", false),
        ("en", "Stop.", false),
        ("en", "I see a problem", false),
        ("en", "", false),
        ("en", "yeah yeah yeah yeah yeah yeah yeah", false),
        ("de", "Ja, genau.", true),
        ("de", "Nein", false),
        ("es", "Sí, claro", true),
        ("es", "Espere", false),
        ("fr", "D'accord, oui", true),
        ("fr", "Attendez", false),
        ("it", "Va bene", true),
        ("pt", "Tá bom", true),
        ("nl", "Ja hoor", true),
        ("pl", "No tak", true),
        ("tr", "Tamam, evet", true),
    ];
    for (language, text, expected) in table {
        assert_eq!(
            is_backchannel(text, vocabulary::of(language)),
            expected,
            "{language}: {text}"
        );
    }
}

#[test]
fn words_are_compared_without_their_marks() {
    assert!(same("yes it's me", "Yes, it’s me."));
    assert!(!same("yes it's me", "Yes, it's me too."));
    assert_eq!((count(""), count("Uh-huh, it's me.")), (0, 4));
    assert!(ends_sentence("Is it \"Friday\"?") && ends_sentence("He said \"Friday.\""));
    assert!(!ends_sentence("Friday") && !ends_sentence("Friday...") && !ends_sentence(""));
}
