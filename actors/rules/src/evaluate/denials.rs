//! Whether something is denied.
use crate::conversation::phrases::words;

/// Words that deny what stands beside them, by language; folded.
const DENIALS: [(&str, &[&str]); 9] = [
    (
        "en",
        &[
            "not", "no", "nope", "never", "none", "neither", "nor", "without", "except", "dont", "doesnt", "didnt",
            "isnt", "arent", "wasnt", "werent", "wont", "wouldnt", "cant", "cannot", "havent", "hasnt", "hardly",
        ],
    ),
    (
        "de",
        &[
            "nicht", "nein", "kein", "keine", "keinen", "keiner", "keines", "nie", "niemals", "weder", "ohne", "ausser",
        ],
    ),
    (
        "fr",
        &[
            "pas", "ne", "n", "non", "jamais", "aucun", "aucune", "ni", "sans", "sauf",
        ],
    ),
    (
        "es",
        &[
            "no", "nunca", "jamas", "ni", "ningun", "ninguna", "ninguno", "sin", "tampoco", "salvo", "excepto",
        ],
    ),
    (
        "it",
        &[
            "non", "no", "mai", "nessun", "nessuna", "nessuno", "ne", "senza", "neanche", "tranne",
        ],
    ),
    (
        "pt",
        &[
            "nao", "nunca", "jamais", "nem", "nenhum", "nenhuma", "sem", "tampouco", "exceto", "menos",
        ],
    ),
    (
        "nl",
        &["niet", "nee", "neen", "geen", "nooit", "noch", "zonder", "behalve"],
    ),
    (
        "pl",
        &["nie", "nigdy", "bez", "zaden", "zadna", "zadne", "ani", "oprocz"],
    ),
    (
        "tr",
        &["degil", "hayir", "yok", "hic", "asla", "olmaz", "istemiyorum", "haric"],
    ),
];

/// Whether something is denied in what was said, in the agent's language or in English.
pub fn denies(text: &str, language: &str) -> bool {
    let primary = language
        .split(['-', '_'])
        .next()
        .unwrap_or_default()
        .to_ascii_lowercase();
    let of = |wanted: &str| {
        DENIALS
            .iter()
            .find(|(known, _)| *known == wanted)
            .map(|(_, words)| *words)
    };
    let own = of(&primary).unwrap_or_default();
    let english = of("en").unwrap_or_default();
    words(text)
        .iter()
        .any(|word| own.contains(&word.as_str()) || english.contains(&word.as_str()))
}
