//! What the service itself lets an agent say: around consent, opt-out and functions. In the agent's language where there is
//! one, else in English.

use entities::values::Country;

pub struct StockPhrases {
    pub consent_question: &'static str,
    pub consent_notice: &'static str,
    pub consent_again: &'static str,
    pub consent_keys: &'static str,
    pub consent_refused: &'static str,
    pub opted_out: &'static str,
    pub still_working: &'static str,
    pub bear_with_me: &'static str,
    pub one_moment: &'static str,
    pub nobody_available: &'static str,
    pub sorry: &'static str,
    pub closing: &'static str,
}

/// `language`: BCP 47.
pub fn of(language: &str) -> &'static StockPhrases {
    let primary = language.split(['-', '_']).next().unwrap_or_default().to_lowercase();
    let found = ALL.iter().find(|(code, _)| *code == primary);
    found.map_or(&ENGLISH, |(_, stock_phrases)| stock_phrases)
}

/// What is spoken in a country, of the languages here; where several are, English.
pub fn language_of(country: Country) -> &'static str {
    match country.to_string().as_str() {
        "DE" | "AT" | "LI" => "de",
        "FR" | "MC" => "fr",
        "AR" | "BO" | "CL" | "CO" | "CR" | "CU" | "DO" | "EC" | "ES" | "GT" | "HN" | "MX" | "NI" | "PA" | "PE"
        | "PY" | "SV" | "UY" | "VE" => "es",
        "IT" | "SM" | "VA" => "it",
        "BR" | "PT" => "pt",
        "NL" => "nl",
        "PL" => "pl",
        "TR" => "tr",
        _ => "en",
    }
}

const ENGLISH: StockPhrases = StockPhrases {
    consent_question: "Before we begin: may I record this call?",
    consent_notice: "This call is recorded.",
    consent_again: "Sorry, I did not get that. May this call be recorded, yes or no?",
    consent_keys: "Press 1 for yes or 2 for no.",
    consent_refused: "I understand. Then this call ends here. Goodbye.",
    opted_out: "I understand. You will not be called again. Goodbye.",
    still_working: "I am still working on that, one moment please.",
    bear_with_me: "One moment, please.",
    one_moment: "One moment, I will connect you.",
    nobody_available: "I am sorry, nobody is available right now.",
    sorry: "I am sorry, there is a technical problem. Goodbye.",
    closing: "Thank you for your time. Goodbye!",
};

static ALL: [(&str, StockPhrases); 9] = [
    ("en", ENGLISH),
    (
        "de",
        StockPhrases {
            consent_question: "Bevor wir beginnen: Darf ich dieses Gespräch aufzeichnen?",
            consent_notice: "Dieses Gespräch wird aufgezeichnet.",
            consent_again: "Das habe ich nicht verstanden. Darf das Gespräch aufgezeichnet werden, ja oder nein?",
            consent_keys: "Drücken Sie 1 für Ja oder 2 für Nein.",
            consent_refused: "Ich verstehe. Dann endet das Gespräch hier. Auf Wiederhören.",
            opted_out: "Ich verstehe. Sie werden nicht mehr angerufen. Auf Wiederhören.",
            still_working: "Ich bin noch dabei, einen Moment bitte.",
            bear_with_me: "Einen Moment bitte.",
            one_moment: "Einen Moment, ich verbinde Sie.",
            nobody_available: "Es tut mir leid, im Moment ist niemand erreichbar.",
            sorry: "Es tut mir leid, es gibt ein technisches Problem. Auf Wiederhören.",
            closing: "Vielen Dank für Ihre Zeit. Auf Wiederhören!",
        },
    ),
    (
        "fr",
        StockPhrases {
            consent_question: "Avant de commencer : puis-je enregistrer cet appel ?",
            consent_notice: "Cet appel est enregistré.",
            consent_again: "Pardon, je n'ai pas compris. L'appel peut-il être enregistré, oui ou non ?",
            consent_keys: "Appuyez sur 1 pour oui ou sur 2 pour non.",
            consent_refused: "Je comprends. L'appel se termine donc ici. Au revoir.",
            opted_out: "Je comprends. Vous ne serez plus appelé. Au revoir.",
            still_working: "J'y travaille encore, un instant s'il vous plaît.",
            bear_with_me: "Un instant, s'il vous plaît.",
            one_moment: "Un instant, je vous mets en relation.",
            nobody_available: "Je suis désolé, personne n'est disponible pour le moment.",
            sorry: "Je suis désolé, il y a un problème technique. Au revoir.",
            closing: "Merci pour votre temps. Au revoir !",
        },
    ),
    (
        "es",
        StockPhrases {
            consent_question: "Antes de empezar: ¿puedo grabar esta llamada?",
            consent_notice: "Esta llamada se graba.",
            consent_again: "Perdón, no le he entendido. ¿Se puede grabar la llamada, sí o no?",
            consent_keys: "Pulse 1 para sí o 2 para no.",
            consent_refused: "Entiendo. Entonces la llamada termina aquí. Adiós.",
            opted_out: "Entiendo. No le volveremos a llamar. Adiós.",
            still_working: "Sigo en ello, un momento por favor.",
            bear_with_me: "Un momento, por favor.",
            one_moment: "Un momento, le paso.",
            nobody_available: "Lo siento, ahora no hay nadie disponible.",
            sorry: "Lo siento, hay un problema técnico. Adiós.",
            closing: "Gracias por su tiempo. ¡Adiós!",
        },
    ),
    (
        "it",
        StockPhrases {
            consent_question: "Prima di iniziare: posso registrare questa chiamata?",
            consent_notice: "Questa chiamata viene registrata.",
            consent_again: "Scusi, non ho capito. La chiamata può essere registrata, sì o no?",
            consent_keys: "Prema 1 per sì o 2 per no.",
            consent_refused: "Capisco. Allora la chiamata finisce qui. Arrivederci.",
            opted_out: "Capisco. Non sarà più chiamato. Arrivederci.",
            still_working: "Ci sto ancora lavorando, un momento per favore.",
            bear_with_me: "Un momento, per favore.",
            one_moment: "Un momento, la metto in contatto.",
            nobody_available: "Mi dispiace, al momento non c'è nessuno disponibile.",
            sorry: "Mi dispiace, c'è un problema tecnico. Arrivederci.",
            closing: "Grazie per il suo tempo. Arrivederci!",
        },
    ),
    (
        "pt",
        StockPhrases {
            consent_question: "Antes de começar: posso gravar esta chamada?",
            consent_notice: "Esta chamada é gravada.",
            consent_again: "Desculpe, não percebi. A chamada pode ser gravada, sim ou não?",
            consent_keys: "Prima 1 para sim ou 2 para não.",
            consent_refused: "Compreendo. Então a chamada termina aqui. Adeus.",
            opted_out: "Compreendo. Não voltaremos a ligar. Adeus.",
            still_working: "Ainda estou a tratar disso, um momento por favor.",
            bear_with_me: "Um momento, por favor.",
            one_moment: "Um momento, vou passar a chamada.",
            nobody_available: "Lamento, de momento não há ninguém disponível.",
            sorry: "Lamento, há um problema técnico. Adeus.",
            closing: "Obrigado pelo seu tempo. Adeus!",
        },
    ),
    (
        "nl",
        StockPhrases {
            consent_question: "Voordat we beginnen: mag ik dit gesprek opnemen?",
            consent_notice: "Dit gesprek wordt opgenomen.",
            consent_again: "Sorry, dat heb ik niet verstaan. Mag het gesprek worden opgenomen, ja of nee?",
            consent_keys: "Druk op 1 voor ja of op 2 voor nee.",
            consent_refused: "Ik begrijp het. Dan eindigt het gesprek hier. Tot ziens.",
            opted_out: "Ik begrijp het. U wordt niet meer gebeld. Tot ziens.",
            still_working: "Ik ben er nog mee bezig, een moment alstublieft.",
            bear_with_me: "Een moment, alstublieft.",
            one_moment: "Een moment, ik verbind u door.",
            nobody_available: "Het spijt me, er is nu niemand beschikbaar.",
            sorry: "Het spijt me, er is een technisch probleem. Tot ziens.",
            closing: "Bedankt voor uw tijd. Tot ziens!",
        },
    ),
    (
        "pl",
        StockPhrases {
            consent_question: "Zanim zaczniemy: czy mogę nagrywać tę rozmowę?",
            consent_notice: "Ta rozmowa jest nagrywana.",
            consent_again: "Przepraszam, nie zrozumiałem. Czy rozmowa może być nagrywana, tak czy nie?",
            consent_keys: "Proszę nacisnąć 1, jeśli tak, lub 2, jeśli nie.",
            consent_refused: "Rozumiem. W takim razie rozmowa kończy się tutaj. Do widzenia.",
            opted_out: "Rozumiem. Nie będziemy już dzwonić. Do widzenia.",
            still_working: "Jeszcze nad tym pracuję, proszę o chwilę.",
            bear_with_me: "Chwileczkę, proszę.",
            one_moment: "Chwileczkę, łączę.",
            nobody_available: "Przykro mi, w tej chwili nikt nie jest dostępny.",
            sorry: "Przepraszam, wystąpił problem techniczny. Do widzenia.",
            closing: "Dziękuję za rozmowę. Do widzenia!",
        },
    ),
    (
        "tr",
        StockPhrases {
            consent_question: "Başlamadan önce: bu görüşmeyi kaydedebilir miyim?",
            consent_notice: "Bu görüşme kaydedilmektedir.",
            consent_again: "Üzgünüm, anlamadım. Görüşme kaydedilebilir mi, evet mi hayır mı?",
            consent_keys: "Evet için 1'e, hayır için 2'ye basın.",
            consent_refused: "Anlıyorum. Öyleyse görüşme burada bitiyor. Hoşça kalın.",
            opted_out: "Anlıyorum. Bir daha aranmayacaksınız. Hoşça kalın.",
            still_working: "Hâlâ üzerinde çalışıyorum, bir dakika lütfen.",
            bear_with_me: "Bir dakika, lütfen.",
            one_moment: "Bir dakika, sizi bağlıyorum.",
            nobody_available: "Üzgünüm, şu anda kimse müsait değil.",
            sorry: "Üzgünüm, teknik bir sorun var. Hoşça kalın.",
            closing: "Zaman ayırdığınız için teşekkürler. Hoşça kalın!",
        },
    ),
];
