//! Told step by step: what is heard, and what follows at which millisecond.
use super::*;
use crate::turn::vocabulary;
use proptest::prelude::*;

fn settings() -> Settings {
    Settings {
        by_provider: false,
        silence_ms: 500,
        unfinished_ms: 1_400,
        eager: true,
        min_voice_ms: 200,
        min_words: 0,
        margin_db: 20.0,
        resumes: true,
        vocabulary: vocabulary::of("en"),
    }
}

fn told(output: Output) -> String {
    let known = |known: Known| match known {
        Known::Words(words) => words,
        Known::Never => "[speech]".into(),
        Known::Later(so_far) => format!("(later) {so_far}").trim_end().to_owned(),
    };
    match output {
        Output::Ask => "ask".into(),
        Output::Begin => "begin".into(),
        Output::Sure => "sure".into(),
        Output::GoOn => "go on".into(),
        Output::Provisional(words) => format!("seems over: {words}"),
        Output::Void => "void".into(),
        Output::Over(Outcome::Stands) => "stands".into(),
        Output::Over(Outcome::Turn(words)) => format!("turn: {}", known(words)),
        Output::Over(Outcome::Aside(words)) => format!("aside: {}", known(words)),
        Output::Over(Outcome::Noise) => "noise".into(),
    }
}

/// Somebody, 16 ms at a time.
struct Talk {
    machine: Machine,
    at: u32,
    out: Vec<(u32, String)>,
}

impl Talk {
    fn of(settings: Settings, ears: Ears, floor: Floor) -> Self {
        let mut talk = Talk {
            machine: Machine::new(settings, ears),
            at: 0,
            out: Vec::new(),
        };
        talk.step(Input::Floor(floor));
        talk
    }
    /// Words are told, and the agent listens.
    fn heard() -> Self {
        Talk::of(settings(), Ears::Words, Floor::User)
    }
    /// Words are told, and the agent speaks.
    fn over_the_agent() -> Self {
        Talk::of(settings(), Ears::Words, Floor::Agent)
    }
    fn step(&mut self, input: Input) {
        let outputs = self.machine.step(input);
        self.out
            .extend(outputs.into_iter().map(|output| (self.at, told(output))));
    }
    fn began(mut self) -> Self {
        self.step(Input::Began);
        self
    }
    fn sound(mut self, ms: u32, voice_db: Option<f32>) -> Self {
        for _ in 0..ms / 16 {
            self.at += 16;
            self.step(Input::Sound { ms: 16, voice_db });
        }
        self
    }
    fn voice(self, ms: u32) -> Self {
        self.sound(ms, Some(-25.0))
    }
    fn pause(self, ms: u32) -> Self {
        self.sound(ms, None)
    }
    fn then(mut self, input: Input) -> Self {
        self.step(input);
        self
    }
    fn words(self, words: &str) -> Self {
        self.then(Input::Final(words.into()))
    }
    fn partly(self, words: &str) -> Self {
        self.then(Input::Partial(words.into()))
    }
    fn assert(self, expected: &[(u32, &str)]) {
        let out: Vec<(u32, &str)> = self.out.iter().map(|(at, what)| (*at, what.as_str())).collect();
        assert_eq!(out, expected);
    }
}

#[test]
fn a_sentence_seems_over_as_soon_as_its_words_are_known_and_is_over_after_the_silence() {
    let talk = Talk::heard()
        .began()
        .pause(192)
        .voice(800)
        .pause(128)
        .words("I am fine.")
        .pause(400);
    talk.assert(&[
        (0, "begin"),
        (0, "sure"),
        (1_104, "ask"),
        (1_120, "seems over: I am fine."),
        (1_504, "stands"),
    ]);
}

#[test]
fn words_that_come_after_the_silence_are_waited_for() {
    let talk = Talk::heard()
        .began()
        .voice(800)
        .pause(608)
        .words("I am fine.")
        .pause(160);
    talk.assert(&[(0, "begin"), (0, "sure"), (912, "ask"), (1_408, "turn: I am fine.")]);
}

#[test]
fn a_pause_behind_an_unfinished_clause_is_no_end() {
    let talk = Talk::heard()
        .began()
        .voice(800)
        .pause(256)
        .words("I would like to book");
    let talk = talk
        .pause(1_008)
        .voice(480)
        .pause(256)
        .words("I would like to book an appointment.");
    let talk = talk.pause(320);
    talk.assert(&[
        (0, "begin"),
        (0, "sure"),
        (912, "ask"),
        (2_720, "ask"),
        (2_800, "seems over: I would like to book an appointment."),
        (3_056, "stands"),
    ]);
}

#[test]
fn who_does_not_go_on_behind_an_unfinished_clause_is_answered_all_the_same() {
    let talk = Talk::heard()
        .began()
        .voice(800)
        .pause(256)
        .words("I would like to")
        .pause(1_200);
    talk.assert(&[
        (0, "begin"),
        (0, "sure"),
        (912, "ask"),
        (2_208, "turn: I would like to"),
    ]);
}

#[test]
fn who_goes_on_behind_what_sounded_finished_has_said_one_thing() {
    let talk = Talk::heard()
        .began()
        .voice(800)
        .pause(256)
        .words("On Friday.")
        .pause(128)
        .voice(480);
    let talk = talk.pause(256).words("On Friday. At ten.").pause(320);
    talk.assert(&[
        (0, "begin"),
        (0, "sure"),
        (912, "ask"),
        (1_056, "seems over: On Friday."),
        (1_200, "void"),
        (1_792, "ask"),
        (1_920, "seems over: On Friday. At ten."),
        (2_176, "stands"),
    ]);
}

#[test]
fn partial_words_that_end_a_sentence_are_believed_until_the_last_ones_differ() {
    let fine = Talk::heard()
        .began()
        .voice(800)
        .partly("I am fine.")
        .pause(80)
        .words("I am fine")
        .pause(512);
    fine.assert(&[
        (0, "begin"),
        (0, "sure"),
        (864, "ask"),
        (864, "seems over: I am fine."),
        (1_312, "stands"),
    ]);
    let more = Talk::heard()
        .began()
        .voice(800)
        .partly("I am.")
        .pause(80)
        .words("I am fine.")
        .pause(64);
    more.assert(&[
        (0, "begin"),
        (0, "sure"),
        (864, "ask"),
        (864, "seems over: I am."),
        (880, "void"),
        (880, "seems over: I am fine."),
    ]);
    let old = Talk::heard().began().voice(400).partly("I am.").voice(400).pause(128);
    old.assert(&[(0, "begin"), (0, "sure"), (864, "ask")]);
}

/// A provider that takes half a second tells the words of a part when the voice has gone on and is over already.
#[test]
fn words_of_a_part_are_not_all_of_them() {
    let short = Talk::heard()
        .began()
        .voice(160)
        .pause(112)
        .voice(144)
        .words("No.")
        .pause(512);
    short.words("No. Not you.").assert(&[
        (0, "begin"),
        (0, "sure"),
        (272, "ask"),
        (544, "ask"),
        (544, "seems over: No."),
        (928, "void"),
        (928, "turn: No. Not you."),
    ]);
    let long = Talk::heard()
        .began()
        .voice(160)
        .pause(112)
        .voice(400)
        .words("No.")
        .pause(512);
    long.words("No. Never call me.").assert(&[
        (0, "begin"),
        (0, "sure"),
        (272, "ask"),
        (800, "ask"),
        (1_184, "turn: No. Never call me."),
    ]);
    // The same, when all of them have been asked for.
    let asked = Talk::heard().began().voice(160).pause(112).voice(400).pause(176);
    let asked = asked.then(Input::Earlier("No.".into())).pause(400);
    asked.words("No. Never.").assert(&[
        (0, "begin"),
        (0, "sure"),
        (272, "ask"),
        (848, "ask"),
        (1_248, "turn: No. Never."),
    ]);
}

#[test]
fn words_that_were_given_do_not_stand_before_all_of_them_are_known() {
    let late = Talk::heard().began().voice(800).partly("I am.").pause(608);
    late.words("I am not.").assert(&[
        (0, "begin"),
        (0, "sure"),
        (864, "ask"),
        (864, "seems over: I am."),
        (1_408, "void"),
        (1_408, "turn: I am not."),
    ]);
    let failed = Talk::heard().began().voice(800).partly("I am.").pause(608);
    failed.then(Input::Failed).assert(&[
        (0, "begin"),
        (0, "sure"),
        (864, "ask"),
        (864, "seems over: I am."),
        (1_408, "stands"),
    ]);
    let next = Talk::heard().began().voice(800).partly("I am.").pause(80).began();
    next.assert(&[
        (0, "begin"),
        (0, "sure"),
        (864, "ask"),
        (864, "seems over: I am."),
        (880, "void"),
        (880, "turn: (later) I am."),
        (880, "begin"),
        (880, "sure"),
    ]);
}

#[test]
fn what_was_told_was_said_if_the_rest_fails() {
    let talk = Talk::heard()
        .began()
        .voice(800)
        .partly("Please never call me again")
        .pause(1_408);
    talk.then(Input::Failed).assert(&[
        (0, "begin"),
        (0, "sure"),
        (912, "ask"),
        (2_208, "turn: Please never call me again"),
    ]);
    let gone = Talk::heard()
        .began()
        .voice(800)
        .partly("Please never call me again")
        .then(Input::Ears(Ears::None))
        .pause(1_408);
    let last = gone.out.last().map(|(_, what)| what.as_str());
    assert_eq!(last, Some("turn: Please never call me again"));
}

/// Who speaks haltingly is not asked about at every breath.
#[test]
fn early_questions_and_answers_have_a_limit() {
    let mut talk = Talk::heard().began();
    for _ in 0..6 {
        talk = talk.voice(160).pause(240).words("On Friday.").pause(64);
    }
    let count = |what: &str| talk.out.iter().filter(|(_, said)| said.starts_with(what)).count();
    assert_eq!((count("ask"), count("seems over")), (4, 3), "{:?}", talk.out);
}

#[test]
fn who_is_not_eager_waits_for_the_silence() {
    let settings = Settings {
        eager: false,
        ..settings()
    };
    let talk = Talk::of(settings, Ears::Words, Floor::User)
        .began()
        .voice(800)
        .pause(512);
    talk.words("I am fine.")
        .assert(&[(0, "begin"), (0, "sure"), (1_312, "ask"), (1_312, "turn: I am fine.")]);
}

#[test]
fn without_words_the_silence_decides() {
    let talk = Talk::of(settings(), Ears::None, Floor::User)
        .began()
        .voice(320)
        .pause(512);
    talk.assert(&[(0, "begin"), (0, "sure"), (832, "turn: [speech]")]);
    let beside = Talk::of(settings(), Ears::Beside, Floor::User)
        .began()
        .voice(320)
        .pause(512);
    beside.assert(&[(0, "begin"), (0, "sure"), (832, "ask"), (832, "turn: (later)")]);
    let open = Talk::of(settings(), Ears::Beside, Floor::User)
        .began()
        .voice(320)
        .partly("Yes and")
        .pause(1_408);
    open.assert(&[
        (0, "begin"),
        (0, "sure"),
        (832, "ask"),
        (1_728, "turn: (later) Yes and"),
    ]);
}

#[test]
fn words_that_fail_are_speech() {
    let talk = Talk::heard()
        .began()
        .voice(800)
        .pause(256)
        .then(Input::Failed)
        .pause(256);
    talk.assert(&[(0, "begin"), (0, "sure"), (912, "ask"), (1_312, "turn: [speech]")]);
    // One that was asked for before somebody went on is none of the whole.
    let talk = Talk::heard()
        .began()
        .voice(800)
        .pause(256)
        .voice(96)
        .then(Input::Failed)
        .pause(512);
    talk.assert(&[(0, "begin"), (0, "sure"), (912, "ask"), (1_328, "ask")]);
}

#[test]
fn an_interruption_stops_the_agent_in_time() {
    let talk = Talk::over_the_agent().began().voice(800).partly("Wait a").voice(160);
    talk.assert(&[(208, "begin"), (800, "sure")]);
    let long = Talk::over_the_agent().began().voice(1_200);
    long.assert(&[(208, "begin"), (1_008, "sure")]);
    let deaf = Talk::of(settings(), Ears::None, Floor::Agent)
        .began()
        .voice(480)
        .pause(512);
    deaf.assert(&[(208, "begin"), (416, "sure"), (992, "turn: [speech]")]);
}

#[test]
fn a_sign_that_one_listens_stops_nothing() {
    let short = Talk::over_the_agent()
        .began()
        .voice(192)
        .pause(128)
        .words("Uh-huh.")
        .pause(512);
    short.assert(&[(304, "ask"), (704, "aside: Uh-huh.")]);
    // It was long enough to fall silent for, and is known too late.
    let longer = Talk::over_the_agent()
        .began()
        .voice(320)
        .pause(256)
        .words("Yeah, okay.")
        .pause(512);
    longer.assert(&[
        (208, "begin"),
        (432, "ask"),
        (576, "go on"),
        (832, "aside: Yeah, okay."),
    ]);
    let early = Talk::over_the_agent()
        .began()
        .voice(160)
        .partly("Yeah")
        .voice(480)
        .pause(256);
    early
        .words("Yeah, yeah.")
        .pause(256)
        .assert(&[(752, "ask"), (1_152, "aside: Yeah, yeah.")]);
    let deaf = Talk::of(settings(), Ears::None, Floor::Agent)
        .began()
        .voice(320)
        .pause(512);
    deaf.assert(&[(208, "begin"), (624, "go on"), (832, "noise")]);
    let noise = Talk::over_the_agent()
        .began()
        .voice(480)
        .pause(256)
        .words("")
        .pause(256);
    noise.assert(&[(208, "begin"), (592, "ask"), (736, "go on"), (992, "noise")]);
}

#[test]
fn words_that_are_late_do_not_hold_the_agent_up() {
    let short = Talk::over_the_agent().began().voice(320).pause(1_008).words("Stop it!");
    short.assert(&[
        (208, "begin"),
        (432, "ask"),
        (1_328, "go on"),
        (1_328, "begin"),
        (1_328, "sure"),
        (1_328, "turn: Stop it!"),
    ]);
    let long = Talk::over_the_agent().began().voice(480).pause(1_008);
    long.assert(&[(208, "begin"), (592, "ask"), (1_488, "sure")]);
    let never = Talk::over_the_agent()
        .began()
        .voice(320)
        .pause(256)
        .then(Input::Failed)
        .pause(256);
    never.assert(&[(208, "begin"), (432, "ask"), (576, "go on"), (832, "noise")]);
}

#[test]
fn a_sign_that_goes_on_is_an_interruption() {
    let talk = Talk::over_the_agent()
        .began()
        .voice(320)
        .pause(256)
        .words("Yeah,")
        .voice(320);
    let talk = talk.pause(256).words("Yeah, but wait.").pause(256);
    talk.assert(&[
        (208, "begin"),
        (432, "ask"),
        (576, "go on"),
        (1_072, "ask"),
        (1_152, "begin"),
        (1_152, "sure"),
        (1_152, "seems over: Yeah, but wait."),
        (1_408, "stands"),
    ]);
}

#[test]
fn an_answer_that_overlaps_the_end_of_the_agents_words_is_one() {
    let talk = Talk::over_the_agent()
        .began()
        .voice(160)
        .then(Input::Floor(Floor::User))
        .voice(96);
    let talk = talk.pause(128).words("Yeah.").pause(384);
    talk.assert(&[
        (160, "begin"),
        (160, "sure"),
        (368, "ask"),
        (384, "seems over: Yeah."),
        (768, "stands"),
    ]);
}

#[test]
fn a_far_voice_stops_nothing_and_does_not_become_the_speaker() {
    let talk = Talk::heard()
        .began()
        .voice(800)
        .pause(512)
        .words("I am fine.")
        .then(Input::Floor(Floor::Agent));
    let talk = talk
        .began()
        .sound(1_600, Some(-55.0))
        .pause(256)
        .words("The news at ten.")
        .pause(512);
    talk.assert(&[
        (0, "begin"),
        (0, "sure"),
        (912, "ask"),
        (1_312, "turn: I am fine."),
        (3_024, "ask"),
        (3_424, "aside: The news at ten."),
    ]);
    let first = Talk::over_the_agent().began().sound(1_600, Some(-55.0));
    first.assert(&[]);
    let soft = Settings {
        margin_db: 40.0,
        ..settings()
    };
    let mut talk = Talk::of(soft, Ears::Words, Floor::Agent);
    talk.machine.usual.learn(-25.0);
    talk.began().sound(320, Some(-55.0)).assert(&[(208, "begin")]);
}

#[test]
fn settings_of_interruptions_are_obeyed() {
    let at_once = Settings {
        resumes: false,
        ..settings()
    };
    let talk = Talk::of(at_once, Ears::Words, Floor::Agent)
        .began()
        .voice(320)
        .pause(256);
    talk.words("Uh-huh.").pause(256).assert(&[
        (208, "begin"),
        (208, "sure"),
        (432, "ask"),
        (576, "seems over: Uh-huh."),
        (832, "stands"),
    ]);
    let words = Settings {
        min_words: 2,
        ..settings()
    };
    let talk = Talk::of(words, Ears::Words, Floor::Agent)
        .began()
        .voice(480)
        .partly("Wait")
        .voice(160);
    talk.partly("Wait a").assert(&[(640, "begin"), (640, "sure")]);
    let long = Settings {
        min_voice_ms: 800,
        ..settings()
    };
    let talk = Talk::of(long, Ears::None, Floor::Agent).began().voice(960);
    talk.assert(&[(800, "begin"), (800, "sure")]);
    let any = Settings {
        min_voice_ms: 0,
        ..settings()
    };
    let talk = Talk::of(any, Ears::None, Floor::Agent).began().voice(32).pause(512);
    talk.assert(&[(16, "begin"), (336, "go on"), (544, "noise")]);
}

#[test]
fn a_provider_that_detects_turns_is_believed() {
    let provider = || Settings {
        by_provider: true,
        ..settings()
    };
    let eager = |words: &str| Input::EagerEnd(words.into());
    let talk = Talk::of(provider(), Ears::Words, Floor::User)
        .began()
        .voice(800)
        .pause(800);
    let talk = talk
        .then(eager("On Friday"))
        .pause(160)
        .then(Input::Resumed)
        .voice(480)
        .pause(160);
    let talk = talk
        .then(eager("On Friday at ten"))
        .pause(160)
        .then(Input::TurnEnd("On Friday at ten".into()));
    talk.assert(&[
        (0, "begin"),
        (0, "sure"),
        (1_600, "seems over: On Friday"),
        (1_760, "void"),
        (2_400, "seems over: On Friday at ten"),
        (2_560, "stands"),
    ]);
    // One that does not say that somebody goes on is wrong.
    let wrong = Talk::of(provider(), Ears::Words, Floor::User)
        .began()
        .voice(800)
        .pause(160)
        .then(eager("On Friday"))
        .voice(416)
        .pause(160);
    wrong.then(Input::TurnEnd("On Friday at ten".into())).assert(&[
        (0, "begin"),
        (0, "sure"),
        (960, "seems over: On Friday"),
        (1_376, "void"),
        (1_536, "turn: On Friday at ten"),
    ]);
    // What it says before there is a voice is about another one.
    let early = Talk::of(provider(), Ears::Words, Floor::User)
        .began()
        .pause(96)
        .then(eager("On Friday"))
        .then(Input::TurnEnd("On Friday".into()))
        .voice(160);
    early.assert(&[(0, "begin"), (0, "sure")]);
    // One that never says so is asked.
    let mute = Talk::of(provider(), Ears::Words, Floor::User)
        .began()
        .voice(800)
        .pause(2_912)
        .words("Hello?");
    mute.assert(&[(0, "begin"), (0, "sure"), (3_712, "ask"), (3_712, "turn: Hello?")]);
    // One that was not asked to decide does not.
    let other = Talk::heard()
        .began()
        .voice(800)
        .then(Input::TurnEnd("Hello?".into()))
        .pause(32);
    other.assert(&[(0, "begin"), (0, "sure")]);
}

#[test]
fn a_microphone_that_is_gone_ends_the_turn() {
    let talk = Talk::heard().began().voice(800).then(Input::Cut).words("I am fine.");
    talk.assert(&[(0, "begin"), (0, "sure"), (800, "ask"), (800, "turn: I am fine.")]);
    let nothing = Talk::heard().began().then(Input::Cut);
    nothing.assert(&[(0, "begin"), (0, "sure"), (0, "turn: ")]);
    // The next one does not wait for the words of the one before.
    let two = Talk::heard().began().voice(800).then(Input::Cut).began().voice(160);
    two.assert(&[
        (0, "begin"),
        (0, "sure"),
        (800, "ask"),
        (800, "turn: (later)"),
        (800, "begin"),
        (800, "sure"),
    ]);
    let asides = Talk::over_the_agent().began().voice(160).began();
    asides.assert(&[(160, "ask"), (160, "aside: (later)")]);
}

fn inputs() -> impl Strategy<Value = Vec<Input>> {
    let text = prop::sample::select(vec!["", "Yeah.", "Wait a moment.", "I would like to"]).prop_map(str::to_owned);
    let loud = prop::option::of(prop::sample::select(vec![-25.0_f32, -55.0]));
    let input = prop_oneof![
        1 => Just(Input::Began),
        20 => (prop::sample::select(vec![16_u32, 96, 320]), loud).prop_map(|(ms, voice_db)| Input::Sound { ms, voice_db }),
        1 => Just(Input::Cut),
        2 => prop::sample::select(vec![Floor::Agent, Floor::User]).prop_map(Input::Floor),
        1 => prop::sample::select(vec![Ears::None, Ears::Words, Ears::Beside]).prop_map(Input::Ears),
        3 => text.clone().prop_map(Input::Partial),
        1 => text.clone().prop_map(Input::Earlier),
        4 => text.clone().prop_map(Input::Final),
        1 => Just(Input::Failed),
        1 => text.clone().prop_map(Input::EagerEnd),
        1 => Just(Input::Resumed),
        1 => text.prop_map(Input::TurnEnd),
    ];
    prop::collection::vec(input, 0..300)
}

proptest! {
    /// Whatever comes in whatever order: a turn that counted begins once and ends, what is provisional is settled once, and the
    /// agent goes on only where it fell silent for the time being.
    #[test]
    fn every_turn_is_a_whole(inputs in inputs(), by_provider: bool, eager: bool, resumes: bool) {
        let mut machine = Machine::new(Settings { by_provider, eager, resumes, ..settings() }, Ears::Words);
        let (mut begun, mut sure, mut provisional) = (false, false, false);
        for input in inputs {
            for output in machine.step(input) {
                match output {
                    Output::Ask => {}
                    Output::Begin => {
                        prop_assert!(!begun);
                        begun = true;
                    }
                    Output::Sure => {
                        prop_assert!(begun && !sure);
                        sure = true;
                    }
                    Output::GoOn => {
                        prop_assert!(begun && !sure && resumes);
                        begun = false;
                    }
                    Output::Provisional(words) => {
                        prop_assert!(sure && !provisional && eager && !words.is_empty());
                        provisional = true;
                    }
                    Output::Void => {
                        prop_assert!(provisional);
                        provisional = false;
                    }
                    Output::Over(outcome) => {
                        prop_assert_eq!(outcome == Outcome::Stands, provisional);
                        prop_assert_eq!(matches!(outcome, Outcome::Stands | Outcome::Turn(_)), begun);
                        prop_assert_eq!(begun, sure);
                        (begun, sure, provisional) = (false, false, false);
                    }
                }
            }
        }
    }
}
