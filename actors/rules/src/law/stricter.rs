//! Is a rule that an operator has written at least as strict as the rule of the pack with its id?
use super::rule::{LawRule, Says, Where, suffices};
use entities::law::ConsentTier;

/// The field in which it is looser, and why; none: in nothing.
pub fn looser(base: &LawRule, own: &LawRule) -> Option<(&'static str, String)> {
    let in_scope = [
        ("places", !holds_everywhere(base, own)),
        (
            "excepted_places",
            !own.excepted_places
                .iter()
                .all(|place| base.excepted_places.contains(place)),
        ),
        (
            "purposes",
            !base.purposes.iter().all(|purpose| own.purposes.contains(purpose)),
        ),
        (
            "channels",
            !base.channels.iter().all(|channel| own.channels.contains(channel)),
        ),
        ("audiences", !includes(&own.audiences, &base.audiences)),
        ("verticals", !includes(&own.verticals, &base.verticals)),
        ("from", own.from > base.from),
        (
            "until",
            own.until.is_some() && (base.until.is_none() || own.until < base.until),
        ),
        (
            "lifted_by_consent",
            !gives_way_no_sooner(base.lifted_by_consent, own.lifted_by_consent),
        ),
    ];
    if let Some((field, _)) = in_scope.into_iter().find(|(_, is_looser)| *is_looser) {
        return Some((field, "holds for less than the rule of the pack".to_owned()));
    }
    says(&base.says, &own.says).map(|why| ("says", why))
}

fn holds_everywhere(base: &LawRule, own: &LawRule) -> bool {
    let Where {
        is_everywhere,
        is_unnamed,
        is_nowhere,
        places,
    } = &base.places;
    let held = &own.places;
    held.is_everywhere
        || (!is_everywhere
            && (!is_unnamed || held.is_unnamed)
            && (!is_nowhere || held.is_nowhere)
            && places
                .iter()
                .all(|place| held.places.iter().any(|other| place.lies_in(other))))
}

/// Of lists that mean all when they are empty.
fn includes<T: PartialEq>(own: &[T], base: &[T]) -> bool {
    own.is_empty() || (!base.is_empty() && base.iter().all(|item| own.contains(item)))
}

fn gives_way_no_sooner(base: Option<ConsentTier>, own: Option<ConsentTier>) -> bool {
    match (base, own) {
        (_, None) => true,
        (None, Some(_)) => false,
        // Whatever sets the own one aside does so with that of the pack.
        (Some(base), Some(own)) => suffices(own, base),
    }
}

/// Why it says less; none: it does not.
fn says(base: &Says, own: &Says) -> Option<String> {
    let is_as_strict = match (base, own) {
        (Says::Open {}, Says::Open {}) => true,
        // What forbids is stricter than whatever else was said of it.
        (Says::Open {} | Says::Closed {} | Says::Forbidden {}, Says::Closed {} | Says::Forbidden {}) => true,
        (Says::Windows { .. }, Says::Windows { .. }) => return windows(base, own),
        (
            Says::Cap { most, hours },
            Says::Cap {
                most: own,
                hours: in_hours,
            },
        ) => own <= most && in_hours >= hours,
        (
            Says::Rest { cause, hours },
            Says::Rest {
                cause: own,
                hours: in_hours,
            },
        ) => cause == own && in_hours >= hours,
        (Says::Consent { .. }, Says::Consent { .. }) => consent(base, own),
        (Says::Register { .. }, Says::Register { .. }) => register(base, own),
        (Says::OwnList {}, Says::OwnList {}) => true,
        (
            Says::Reassigned {
                max_age_days,
                ask_after_days,
            },
            Says::Reassigned {
                max_age_days: own_age,
                ask_after_days: own_after,
            },
        ) => own_age <= max_age_days && own_after <= ask_after_days,
        (Says::CallerId { .. }, Says::CallerId { .. }) => caller_id(base, own),
        (Says::Identity { fields }, Says::Identity { fields: own }) => fields.iter().all(|field| own.contains(field)),
        (Says::Disclosure { .. }, Says::Disclosure { .. }) => disclosure(base, own),
        (Says::Recording { consent }, Says::Recording { consent: own }) => own >= consent,
        (Says::Ring { least_seconds }, Says::Ring { least_seconds: own }) => own >= least_seconds,
        (Says::Abandonment { .. }, Says::Abandonment { .. }) => abandonment(base, own),
        (Says::HonourOptOut { .. }, Says::HonourOptOut { .. }) => opt_out(base, own),
        (Says::Marking {}, Says::Marking {}) => true,
        (Says::KeepRecord { years }, Says::KeepRecord { years: own }) => own >= years,
        (Says::Registration { name }, Says::Registration { name: own }) => name == own,
        _ => return Some("says something of another kind".to_owned()),
    };
    (!is_as_strict).then(|| "allows more than the rule of the pack".to_owned())
}

/// It keeps the holidays and blackouts, and opens no minute that is closed.
fn windows(base: &Says, own: &Says) -> Option<String> {
    let (
        Says::Windows {
            open,
            holidays,
            blackouts,
        },
        Says::Windows {
            open: own_open,
            holidays: own_holidays,
            blackouts: own_blackouts,
        },
    ) = (base, own)
    else {
        return None;
    };
    if holidays.is_some() && holidays != own_holidays {
        return Some("must keep the holidays of the rule of the pack".to_owned());
    }
    if !blackouts.iter().all(|days| own_blackouts.contains(days)) {
        return Some("must keep the blackouts of the rule of the pack".to_owned());
    }
    let minutes = |spans: &[super::Span]| {
        let mut week = vec![false; 7 * 24 * 60];
        for (day, start, end) in spans.iter().flat_map(super::Span::windows) {
            let midnight = day.num_days_from_monday() as usize * 24 * 60;
            let span = week.get_mut(midnight + usize::from(start)..midnight + usize::from(end));
            span.into_iter().flatten().for_each(|minute| *minute = true);
        }
        week
    };
    let (open, own_open) = (minutes(open), minutes(own_open));
    let is_wider = open.iter().zip(&own_open).any(|(open, own)| *own && !open);
    is_wider.then(|| "is open when the rule of the pack is closed".to_owned())
}

fn consent(base: &Says, own: &Says) -> bool {
    let (
        Says::Consent {
            any_of,
            automated_voice,
            max_age_days,
            contract_max_age_days,
            newer_than_register,
            unless_register,
        },
        Says::Consent {
            any_of: own_any_of,
            automated_voice: own_voice,
            max_age_days: own_age,
            contract_max_age_days: own_contract_age,
            newer_than_register: own_register,
            unless_register: own_unless,
        },
    ) = (base, own)
    else {
        return false;
    };
    let enough = |tier: &ConsentTier| any_of.iter().any(|needed| suffices(*tier, *needed));
    let unless = match (unless_register, own_unless) {
        (_, None) => true,
        (Some(base), Some(own)) => base.name == own.name && own.max_age_days <= base.max_age_days,
        (None, Some(_)) => false,
    };
    own_any_of.iter().all(enough)
        && (*own_voice || !automated_voice)
        && no_more(*own_age, *max_age_days)
        && no_more(*own_contract_age, *contract_max_age_days)
        && (newer_than_register.is_none() || newer_than_register == own_register)
        && unless
}

fn register(base: &Says, own: &Says) -> bool {
    let (
        Says::Register {
            name,
            max_age_days,
            listed,
            waived_by,
        },
        Says::Register {
            name: own_name,
            max_age_days: own_age,
            listed: own_listed,
            waived_by: own_waived_by,
        },
    ) = (base, own)
    else {
        return false;
    };
    name == own_name
        && own_age <= max_age_days
        && listed == own_listed
        && gives_way_no_sooner(*waived_by, *own_waived_by)
}

fn caller_id(base: &Says, own: &Says) -> bool {
    let (
        Says::CallerId {
            answered,
            right_to_use,
            registered,
            forbidden_prefixes,
            required_prefixes,
        },
        Says::CallerId {
            answered: own_answered,
            right_to_use: own_right,
            registered: own_registered,
            forbidden_prefixes: own_forbidden,
            required_prefixes: own_required,
        },
    ) = (base, own)
    else {
        return false;
    };
    let begins_so = |prefix: &String| required_prefixes.iter().any(|known| prefix.starts_with(known.as_str()));
    (*own_answered || !answered)
        && (*own_right || !right_to_use)
        && (*own_registered || !registered)
        && forbidden_prefixes.iter().all(|prefix| own_forbidden.contains(prefix))
        && (required_prefixes.is_empty() || (!own_required.is_empty() && own_required.iter().all(begins_so)))
}

fn disclosure(base: &Says, own: &Says) -> bool {
    let (
        Says::Disclosure {
            what,
            within_ms,
            repeat_minutes,
        },
        Says::Disclosure {
            what: own_what,
            within_ms: own_within,
            repeat_minutes: own_repeat,
        },
    ) = (base, own)
    else {
        return false;
    };
    what.iter().all(|kind| own_what.contains(kind))
        && no_more(*own_within, *within_ms)
        && no_more(*own_repeat, *repeat_minutes)
}

fn abandonment(base: &Says, own: &Says) -> bool {
    let (
        Says::Abandonment {
            limit_permille,
            brake_permille,
            hours,
            first_sound_ms,
        },
        Says::Abandonment {
            limit_permille: own_limit,
            brake_permille: own_brake,
            hours: own_hours,
            first_sound_ms: own_first,
        },
    ) = (base, own)
    else {
        return false;
    };
    own_limit <= limit_permille && own_brake <= brake_permille && own_hours == hours && own_first <= first_sound_ms
}

fn opt_out(base: &Says, own: &Says) -> bool {
    let (
        Says::HonourOptOut {
            days,
            hang_up_ms,
            everything,
        },
        Says::HonourOptOut {
            days: own_days,
            hang_up_ms: own_hang_up_ms,
            everything: own_everything,
        },
    ) = (base, own)
    else {
        return false;
    };
    own_days <= days && no_more(*own_hang_up_ms, *hang_up_ms) && (*own_everything || !everything)
}

/// Of limits that may be left out.
fn no_more(own: Option<u32>, base: Option<u32>) -> bool {
    base.is_none_or(|base| own.is_some_and(|own| own <= base))
}
