use super::*;
use crate::law::{Verdict, judge, pack, tests::facts};

fn workspace(n: u128) -> TenantId {
    uuid::Uuid::from_u128(n).into()
}

fn read(text: &str) -> Result<OperatorLaw, LawError> {
    pack().tighten("operator.toml", text)
}
fn rule(id: &str, rest: &str) -> String {
    format!("[[rule]]\nid = \"{id}\"\n{rest}\n")
}

/// Of the rule's table only what is stricter is written.
#[test]
fn what_is_stricter_is_taken() {
    for (id, rest) in [
        ("us.cap.day", "says = { most = 2 }"),
        ("us.cap.day", "says = { most = 3, hours = 48 }"),
        ("us.hours", "says = { open = [\"mon-fri 10:00-18:00\"] }"),
        (
            "fr.hours",
            "says = { open = [\"mon-fri 10:00-12:00\"], blackouts = [[\"2026-12-24\", \"2027-01-03\"]] }",
        ),
        ("us.consent.voice", "says = { any_of = [\"opt_in_double\"] }"),
        ("us.consent.voice", "says = { max_age_days = 365 }"),
        ("us.consent.voice", "from = \"2020-01-01\""),
        ("us.dnc", "says = { max_age_days = 7 }"),
        ("us.dnc", "purposes = [\"marketing\", \"service\"]"),
        ("us.abandonment", "says = { brake_permille = 10 }"),
        ("us.ring", "says = { least_seconds = 20 }"),
        ("fr.rest", "says = { hours = 2160 }"),
        ("us.reassigned", "says = { ask_after_days = 10 }"),
        ("everywhere.recording", "says = { consent = \"verbal\" }"),
        ("everywhere.opt_out", "says = { hang_up_ms = 5000 }"),
        ("us-wa.recorded", "lifted_by_consent = \"opt_in_double\""),
        ("us.email", "says = { kind = \"forbidden\" }"),
        ("gb.caller", "says = { required_prefixes = [\"+4420\"] }"),
        (
            "us.identity",
            "says = { fields = [\"registered_name\", \"callback\", \"toll_free\", \"postal_address\"] }",
        ),
    ] {
        let found = read(&rule(id, rest));
        assert!(found.is_ok(), "{id}: {rest}: {}", found.unwrap_err());
    }
}

#[test]
fn what_is_looser_is_refused_with_its_rule_and_field() {
    for (id, rest, field) in [
        ("us.cap.day", "says = { most = 4 }", "says"),
        ("us.cap.day", "says = { hours = 12 }", "says"),
        ("us.cap.day", "says = { kind = \"rest\" }", "says"),
        ("us.hours", "says = { open = [\"daily 07:59-21:00\"] }", "says"),
        ("us.hours", "says = { open = [\"daily 09:00-21:01\"] }", "says"),
        ("fr.hours", "says = { holidays = \"de\" }", "says"),
        ("us.consent.voice", "says = { any_of = [\"express\"] }", "says"),
        (
            "us.consent.voice",
            "says = { any_of = [\"express_written\", \"existing_contract\"] }",
            "says",
        ),
        ("us.consent.voice", "says = { automated_voice = false }", "says"),
        (
            "us.consent.voice",
            "says = { unless_register = { name = \"us_dnc\", max_age_days = 1 } }",
            "says",
        ),
        ("es.consent.renewed", "says = { max_age_days = 731 }", "says"),
        ("us.consent.voice", "from = \"2024-02-09\"", "from"),
        ("us.consent.voice", "until = \"2030-01-01\"", "until"),
        ("us.consent.voice", "places = [\"US-FL\"]", "places"),
        ("us.consent.voice", "excepted_places = [\"US-FL\"]", "excepted_places"),
        ("us.consent.voice", "audiences = [\"consumer\"]", "audiences"),
        ("us.consent.voice", "verticals = [\"health\"]", "verticals"),
        (
            "us.consent.voice",
            "lifted_by_consent = \"express\"",
            "lifted_by_consent",
        ),
        ("us-wa.recorded", "lifted_by_consent = \"express\"", "lifted_by_consent"),
        ("us.dnc", "channels = [\"phone\"]", "channels"),
        ("us.dnc", "says = { max_age_days = 32 }", "says"),
        ("us.dnc", "says = { waived_by = \"express\" }", "says"),
        ("us.dnc", "says = { listed = \"noted\" }", "says"),
        ("us.hours", "purposes = [\"marketing\"]", "purposes"),
        ("us.abandonment", "says = { brake_permille = 21 }", "says"),
        ("us.ring", "says = { least_seconds = 14 }", "says"),
        ("fr.caller", "says = { forbidden_prefixes = [\"+336\"] }", "says"),
        ("gb.caller", "says = { required_prefixes = [\"+4\"] }", "says"),
        ("us.disclosure", "says = { within_ms = 3000 }", "says"),
        ("us.disclosure", "says = { within_ms = 1000 }", "says"),
        ("us.abandonment", "says = { first_sound_ms = 1000 }", "says"),
        ("us.disclosure", "says = { what = [\"name\"] }", "says"),
        ("us.identity", "says = { fields = [\"registered_name\"] }", "says"),
        ("us.reassigned", "says = { max_age_days = 31 }", "says"),
        ("us.record", "says = { years = 4 }", "says"),
        ("unknown.marketing", "says = { kind = \"open\" }", "says"),
    ] {
        let refused = read(&rule(id, rest)).expect_err(rest);
        assert_eq!(
            (refused.rule.as_deref(), refused.field.as_deref()),
            (Some(id), Some(field)),
            "{rest}: {refused}"
        );
        assert!(
            refused
                .to_string()
                .starts_with(&format!("operator.toml, rule {id}, field {field}: "))
        );
    }
}

/// A rule of the operator's own closes; one that would open something is refused.
#[test]
fn a_rule_of_its_own_holds_beside_the_pack() {
    let own = |says: &str| {
        rule(
            "house.sundays",
            &format!(
                "title = \"No Sundays\"\nplaces = [\"US\"]\npurposes = [\"marketing\"]\nchannels = [\"phone\"]\nsays = {says}\n\
                 source = \"house\"\nconfidence = \"high\"\nmend = \"Wait.\"\n"
            ),
        )
    };
    let text = own("{ kind = \"windows\", open = [\"mon-sat 08:00-21:00\"] }");
    let law = Law::read(pack(), Some(("operator.toml", &text))).unwrap();
    let sunday = facts("US-NY 2026-12-06T13:00");
    assert!(judge(Law::untouched(), &sunday).is_yes());
    assert!(matches!(
        judge(&law, &sunday).of("house.sundays"),
        Some(Verdict::Wait(Some(_)))
    ));
    let refused = read(&own("{ kind = \"open\" }")).unwrap_err();
    assert_eq!(refused.field.as_deref(), Some("says"));
    assert_eq!(read(&format!("{text}{text}")).unwrap_err().field.as_deref(), Some("id"));
    assert!(read("[[rules]]\n").is_err() && read("rule = 3\n").is_err());
    // A consent that the operator asks for makes no country known.
    let brazil = own("{ kind = \"consent\", any_of = [\"express\"] }").replace("\"US\"", "\"BR\"");
    let law = Law::read(pack(), Some(("operator.toml", &brazil))).unwrap();
    assert_eq!(
        judge(&law, &facts("BR 2026-12-01T12:00")).of("unknown.marketing"),
        Some(Verdict::Never)
    );
}

/// A stricter rule speaks with the id of the pack's, once.
#[test]
fn what_is_tightened_speaks_as_one_rule() {
    let law = Law::read(
        pack(),
        Some(("operator.toml", &rule("us.cap.day", "says = { most = 1 }"))),
    )
    .unwrap();
    let judgement = judge(&law, &facts("US-NY 2026-12-01T12:00 recent=1h"));
    assert!(matches!(judgement.of("us.cap.day"), Some(Verdict::Wait(Some(_)))));
    assert_eq!(
        judgement
            .asked
            .iter()
            .filter(|asked| &*asked.rule == "us.cap.day")
            .count(),
        1
    );
    assert_eq!(law.rule("us.cap.day"), pack().rule("us.cap.day"));
}

#[test]
fn only_a_reasoned_override_loosens() {
    let with = |rule: &str, reason: &str, by: &str| {
        read(&format!(
            "[[override]]\nrule = \"{rule}\"\nreason = \"{reason}\"\napproved_by = \"{by}\"\n"
        ))
    };
    let made = with("us.cap.week", "Counsel has agreed", "J. Doe").unwrap();
    assert_eq!(made.overrides.len(), 1);
    assert_eq!(made.sha256.len(), 64);
    let law = Law::new(pack(), Some(made));
    assert_eq!(law.overridden(workspace(1)), ["us.cap.week"]);
    let mut attempt = facts("US-NY 2026-12-01T12:00 recent=30h,31h,32h,33h,34h,35h,36h");
    assert!(
        !judge(&law, &attempt).is_yes(),
        "the facts say what is overridden, so that a record is judged the same"
    );
    attempt.overrides = law.overridden(workspace(1));
    let judgement = judge(&law, &attempt);
    assert!(judgement.is_yes());
    assert_eq!(judgement.overridden().collect::<Vec<_>>(), ["us.cap.week"]);
    for (rule, reason, by, field) in [
        ("us.cap.month", "Counsel has agreed", "J. Doe", "rule"),
        ("everywhere.floor", "Counsel has agreed", "J. Doe", "rule"),
        ("everywhere.own_list", "Counsel has agreed", "J. Doe", "rule"),
        ("us.cap.week", "  because  ", "J. Doe", "reason"),
        ("us.cap.week", "Counsel has agreed", " ", "approved_by"),
    ] {
        assert_eq!(
            with(rule, reason, by).unwrap_err().field.as_deref(),
            Some(field),
            "{rule} {reason}"
        );
    }
    let missing = read("[[override]]\nrule = \"us.cap.week\"\nreason = \"Counsel has agreed\"\n").unwrap_err();
    assert!(missing.why.contains("approved_by"));
    let windows = Law::read(
        pack(),
        Some((
            "operator.toml",
            "[[override]]\nrule = \"us.hours.default\"\nreason = \"Counsel has agreed\"\napproved_by = \"J. Doe\"\n",
        )),
    )
    .unwrap();
    let attempt = facts("US-NY 2026-12-01T20:30");
    let is_open = |law: &Law| {
        let kept = law.windows(&attempt.places, attempt.purpose, attempt.audience, attempt.channel);
        let parts = kept.into_iter().map(|calendar| (calendar, attempt.zones[0].tz()));
        crate::hours::Hours::new(parts.collect()).is_open(attempt.at, 0)
    };
    assert!(is_open(&windows) && !is_open(Law::untouched()));
}

/// Anybody can claim an emergency.
#[test]
fn what_is_closed_can_be_opened_for_some_workspaces() {
    let for_one = |rule: &str| {
        read(&format!(
            "[[override]]\nrule = \"{rule}\"\nreason = \"It runs the flood warnings\"\napproved_by = \"J. Doe\"\n\
             workspaces = [\"{}\"]\n",
            workspace(1)
        ))
    };
    let law = Law::new(pack(), Some(for_one("everywhere.emergency").unwrap()));
    let judged = |tenant: TenantId| {
        let mut attempt = facts("US-NY 2026-12-01T12:00 purpose=emergency consent=none");
        attempt.overrides = law.overridden(tenant);
        judge(&law, &attempt)
    };
    assert!(judged(workspace(1)).is_yes());
    assert_eq!(
        judged(workspace(1)).overridden().collect::<Vec<_>>(),
        ["everywhere.emergency"]
    );
    assert_eq!(judged(workspace(2)).of("everywhere.emergency"), Some(Verdict::Never));
    // Hours are the same for all who call there.
    let refused = for_one("us.hours.default").unwrap_err();
    assert_eq!(refused.field.as_deref(), Some("workspaces"));
}
