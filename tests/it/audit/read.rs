//! From JSON lines to rows. Strict: a field that is absent or of another type makes the line unreadable, and only what
//! may be null reads as `None`.
use super::facts::{Campaign, Contact, Dnc, Evaluation, Event, Move, Recording, Schedule, Session, Totals, Window};
use chrono::NaiveDate;
use serde_json::Value;

pub fn event(line: &Value) -> Result<Event<'_>, String> {
    let kind = need(line, "type", Value::as_str)?;
    let is_of_recording = kind.starts_with("session.") && kind.contains("recording");
    let recording = is_of_recording.then(|| need(line, "recording", Value::as_str));
    let totals = (kind == "campaign.completed").then(|| totals(need(line, "totals", Some)?, "total_contacts"));
    // Null is for bodies that lack it.
    let number = |name: &str| line.get(name).and_then(Value::as_i64);
    Ok(Event {
        cost: number("cost"),
        threshold: number("threshold"),
        balance: number("balance"),
        payment: line.get("payment_intent").and_then(Value::as_str),
        id: need(line, "id", Value::as_str)?,
        tenant: need(line, "tenant", Value::as_str)?,
        env: need(line, "env", Value::as_str)?,
        kind,
        subject: or_null(line, "subject", Value::as_str)?,
        seq: need(line, "seq", Value::as_i64)?,
        session: line.get("session").and_then(Value::as_str),
        recording: recording.transpose()?,
        totals: totals.transpose()?,
    })
}

fn totals(value: &Value, contacts: &str) -> Result<Totals, String> {
    Ok(Totals {
        contacts: need(value, contacts, Value::as_i64)?,
        completed_sessions: need(value, "completed_sessions", Value::as_i64)?,
        failed_sessions: need(value, "failed_sessions", Value::as_i64)?,
    })
}

pub fn campaign(line: &Value) -> Result<Campaign<'_>, String> {
    let caps = need(line, "caps", Some)?;
    let moves = need(line, "moves", Value::as_array)?.iter().map(|line| {
        Ok(Move {
            seq: need(line, "seq", Value::as_i64)?,
            at: millis(need(line, "at", Value::as_str)?),
            to: need(line, "to", Value::as_str)?,
        })
    });
    let mut moves = moves.collect::<Result<Vec<_>, String>>()?;
    moves.sort_by_key(|step| step.seq);
    Ok(Campaign {
        id: need(line, "id", Value::as_str)?,
        tenant: need(line, "tenant", Value::as_str)?,
        env: need(line, "env", Value::as_str)?,
        status: need(line, "status", Value::as_str)?,
        moves,
        totals: totals(need(line, "totals", Some)?, "total")?,
        schedule: schedule(need(line, "schedule", Some)?)?,
        per_number_24h: or_null(caps, "per_number_24h", Value::as_i64)?,
        per_number_7d: or_null(caps, "per_number_7d", Value::as_i64)?,
        ring_timeout_seconds: need(line, "ring_timeout_seconds", Value::as_i64)?,
    })
}

fn schedule(value: &Value) -> Result<Schedule<'_>, String> {
    let date = |value: &Value| value.as_str()?.parse().ok();
    Ok(Schedule {
        windows: need(value, "windows", |windows| {
            windows.as_array()?.iter().map(window).collect()
        })?,
        blackout_dates: need(value, "blackout_dates", |dates| {
            dates.as_array()?.iter().map(date).collect()
        })?,
        fixed: need(value, "mode", |mode| match mode.as_str()? {
            "fixed" => Some(true),
            "contact" => Some(false),
            _ => None,
        })?,
        fallback: need(value, "fallback", Value::as_str)?,
    })
}

fn window(value: &Value) -> Option<Window> {
    // `24:00` is the end of a day, which no type of time knows.
    let minutes = |name: &str| {
        let (hours, minutes) = value[name].as_str()?.split_once(':')?;
        Some(hours.parse::<u32>().ok()? * 60 + minutes.parse::<u32>().ok()?).filter(|minutes| *minutes <= 24 * 60)
    };
    let day = |day: &Value| day.as_str()?.parse().ok();
    Some(Window {
        days: value["days"].as_array()?.iter().map(day).collect::<Option<_>>()?,
        start: minutes("start")?,
        end: minutes("end")?,
    })
}

pub fn contact(line: &Value) -> Result<Contact<'_>, String> {
    Ok(Contact {
        id: need(line, "id", Value::as_str)?,
        campaign: need(line, "campaign", Value::as_str)?,
        tenant: need(line, "tenant", Value::as_str)?,
        env: need(line, "env", Value::as_str)?,
        number: or_null(line, "number", Value::as_str)?,
        erased: need(line, "erased", Value::as_bool)?,
        zones: words(line, "zones")?,
        state: need(line, "state", Value::as_str)?,
        max_attempts: need(line, "max_attempts", |max| usize::try_from(max.as_u64()?).ok())?,
        gap: need(line, "gap", Value::as_i64)?,
    })
}

pub fn session(line: &Value) -> Result<Session<'_>, String> {
    let time = |name| time_or_null(line, name);
    Ok(Session {
        id: need(line, "id", Value::as_str)?,
        tenant: need(line, "tenant", Value::as_str)?,
        env: need(line, "env", Value::as_str)?,
        contact: or_null(line, "contact", Value::as_str)?,
        campaign: or_null(line, "campaign", Value::as_str)?,
        number: or_null(line, "number", Value::as_str)?,
        from: or_null(line, "from", Value::as_str)?,
        inbound: need(line, "direction", |direction| match direction.as_str()? {
            "inbound" => Some(true),
            "outbound" => Some(false),
            _ => None,
        })?,
        status: need(line, "status", Value::as_str)?,
        end_reason: or_null(line, "end_reason", Value::as_str)?,
        // Of stories that tell nothing of it: nobody in particular.
        ended_by: line.get("ended_by").and_then(Value::as_str),
        consent: need(line, "consent", Value::as_str)?,
        recording: or_null(line, "recording", Value::as_str)?,
        opted_out_at: time("opted_out_at")?,
        created_at: time("created_at")?,
        intent_seq: or_null(line, "intent_seq", Value::as_i64)?,
        intents: need(line, "intents", |count| usize::try_from(count.as_u64()?).ok())?,
        dialed_at: time("dialed_at")?,
        // Of stories that tell nothing of these: nobody has picked up early, or taken over.
        picked_up_at: line.get("picked_up_at").and_then(Value::as_str).and_then(millis),
        started_at: time("started_at")?,
        bridged_at: line.get("bridged_at").and_then(Value::as_str).and_then(millis),
        ended_at: time("ended_at")?,
        hold: need(line, "hold", Value::as_i64)?,
        cost: need(line, "cost", Value::as_i64)?,
        price: need(line, "price", Value::as_i64)?,
    })
}

pub fn recording(line: &Value) -> Result<Recording<'_>, String> {
    let time = |name| time_or_null(line, name);
    Ok(Recording {
        id: need(line, "id", Value::as_str)?,
        tenant: need(line, "tenant", Value::as_str)?,
        env: need(line, "env", Value::as_str)?,
        session: need(line, "session", Value::as_str)?,
        state: need(line, "state", Value::as_str)?,
        created_at: time("created_at")?,
        completed_at: time("completed_at")?,
        purge_after: time("purge_after")?,
        purge_reason: or_null(line, "purge_reason", Value::as_str)?,
        purged_at: time("purged_at")?,
    })
}

pub fn evaluation(line: &Value) -> Result<Evaluation<'_>, String> {
    Ok(Evaluation {
        session: need(line, "session", Value::as_str)?,
        tenant: need(line, "tenant", Value::as_str)?,
        env: need(line, "env", Value::as_str)?,
        state: need(line, "state", Value::as_str)?,
    })
}

pub fn dnc(line: &Value) -> Result<Dnc<'_>, String> {
    let source = need(line, "source", Value::as_str)?;
    let channels = need(line, "channels", Value::as_array)?;
    Ok(Dnc {
        tenant: need(line, "tenant", Value::as_str)?,
        env: need(line, "env", Value::as_str)?,
        number: or_null(line, "number", Value::as_str)?,
        added_seq: need(line, "added_seq", Value::as_i64)?,
        removed_seq: or_null(line, "removed_seq", Value::as_i64)?,
        phone: channels.iter().any(|channel| channel == "phone"),
        sms: channels.iter().any(|channel| channel == "sms"),
        email: or_null(line, "email", Value::as_str)?.filter(|_| channels.iter().any(|channel| channel == "email")),
        said_in: or_null(line, "session", Value::as_str)?.filter(|_| source == "opt_out_voice"),
    })
}

pub struct CarrierLine<'a> {
    pub at: i64,
    pub call: Step<'a>,
}

pub enum Step<'a> {
    Placed {
        session: &'a str,
        to: &'a str,
        tenant: &'a str,
        env: &'a str,
    },
    Ended {
        session: &'a str,
        never_accepted: bool,
    },
}

pub fn carrier_line(line: &Value) -> Result<CarrierLine<'_>, String> {
    let session = need(line, "session", Value::as_str)?;
    let call = match need(line, "what", Value::as_str)? {
        "placed" => Step::Placed {
            session,
            to: need(line, "to", Value::as_str)?,
            tenant: need(line, "tenant", Value::as_str)?,
            env: need(line, "env", Value::as_str)?,
        },
        "ended" => Step::Ended {
            session,
            never_accepted: line.get("outcome").is_some_and(|outcome| outcome == "never_accepted"),
        },
        other => return Err(format!("`what` is `{other}`")),
    };
    Ok(CarrierLine {
        at: need(line, "at", Value::as_i64)?,
        call,
    })
}

pub fn need<'a, T>(line: &'a Value, name: &str, read: impl Fn(&'a Value) -> Option<T>) -> Result<T, String> {
    line.get(name)
        .and_then(read)
        .ok_or_else(|| format!("no readable `{name}`"))
}

/// Null is an answer, an absent field is none.
pub fn or_null<'a, T>(line: &'a Value, name: &str, read: impl Fn(&'a Value) -> Option<T>) -> Result<Option<T>, String> {
    need(line, name, |value| {
        if value.is_null() {
            Some(None)
        } else {
            read(value).map(Some)
        }
    })
}

/// Unix milliseconds of a time that may be null.
pub fn time_or_null(line: &Value, name: &str) -> Result<Option<i64>, String> {
    Ok(or_null(line, name, Value::as_str)?.and_then(millis))
}

pub fn words<'a>(line: &'a Value, name: &str) -> Result<Vec<&'a str>, String> {
    need(line, name, |list| list.as_array()?.iter().map(Value::as_str).collect())
}

/// When something was made, by its id. Source: RFC 9562, section 5.7.
pub fn made_at(id: &str) -> Option<i64> {
    let hex: String = id.chars().filter(|letter| *letter != '-').take(12).collect();
    i64::from_str_radix(&hex, 16).ok()
}

/// Unix milliseconds of `2027-03-02T13:00:00.000Z`; any other form is `None`, and a breach of I20.
pub fn millis(text: &str) -> Option<i64> {
    let pattern = "0000-00-00T00:00:00.000Z";
    let fits = |(byte, like): (u8, u8)| {
        if like == b'0' {
            byte.is_ascii_digit()
        } else {
            byte == like
        }
    };
    if text.len() != pattern.len() || !text.bytes().zip(pattern.bytes()).all(fits) {
        return None;
    }
    let number = |from: usize, to: usize| text[from..to].parse::<u32>().ok();
    let date = NaiveDate::from_ymd_opt(text[..4].parse().ok()?, number(5, 7)?, number(8, 10)?)?;
    let time = date.and_hms_milli_opt(number(11, 13)?, number(14, 16)?, number(17, 19)?, number(20, 23)?)?;
    Some(time.and_utc().timestamp_millis())
}
