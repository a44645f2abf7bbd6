//! A rule of the pack, or of the operator, made ready to be asked.
use super::{
    Pack,
    rule::{LawRule, Says},
    span::Span,
};
use crate::hours::Calendar;
use entities::{
    dnc::DncChannel,
    law::{Audience, Purpose},
};
use std::sync::Arc;

/// One rule, made ready.
#[derive(Debug)]
pub(super) struct Entry {
    pub rule: LawRule,
    /// The rule's, shared by all verdicts of it.
    pub id: Arc<str>,
    /// It is the operator's: it closes, and opens nothing.
    pub is_added: bool,
    /// A bit for each kind of attempt that it concerns: [`kind`].
    pub kinds: u64,
    pub calendars: Option<Calendars>,
}

/// Of a rule's windows.
#[derive(Debug)]
pub(super) struct Calendars {
    pub plain: Arc<Calendar>,
    /// Open before the rule begins and after it has ended.
    pub dated: Arc<Calendar>,
}

impl Calendars {
    /// Are these the same hours? Equal ones are shared: [`share`].
    pub fn are(&self, other: &Calendars) -> bool {
        Arc::ptr_eq(&self.plain, &other.plain) && Arc::ptr_eq(&self.dated, &other.dated)
    }
}

impl Entry {
    pub fn new(pack: &Pack, rule: LawRule, is_added: bool) -> Self {
        let calendars = match &rule.says {
            Says::Windows {
                open,
                holidays,
                blackouts,
            } => {
                let windows = open.iter().flat_map(Span::windows);
                let closed = blackouts
                    .iter()
                    .flat_map(|(first, last)| first.iter_days().take_while(move |day| day <= last));
                let plain = Calendar::new(windows, closed);
                let plain = match holidays.as_ref().and_then(|name| pack.holidays.get(name)) {
                    Some(holidays) => plain.without(holidays.all().clone()),
                    None => plain,
                };
                Some(Calendars {
                    dated: Arc::new(plain.clone().within(rule.from, rule.until)),
                    plain: Arc::new(plain),
                })
            }
            _ => None,
        };
        Entry {
            kinds: kinds(&rule),
            id: rule.id.as_str().into(),
            rule,
            is_added,
            calendars,
        }
    }
}

/// The bit of a kind of attempt: each judgement asks of some sixty rules whether they concern it.
pub(super) fn kind(purpose: Purpose, audience: Audience, channel: DncChannel) -> u64 {
    const CHANNELS: u32 = DncChannel::Email as u32 + 1;
    const AUDIENCES: u32 = Audience::Business as u32 + 1;
    1 << ((purpose as u32 * CHANNELS + channel as u32) * AUDIENCES + audience as u32)
}

/// Those that a rule concerns, wherever and whenever they are made.
fn kinds(rule: &LawRule) -> u64 {
    let audiences = match rule.audiences.as_slice() {
        [] => &[Audience::Consumer, Audience::Business],
        named => named,
    };
    let mut kinds = 0;
    for purpose in &rule.purposes {
        for channel in &rule.channels {
            for audience in audiences {
                kinds |= kind(*purpose, *audience, *channel);
            }
        }
    }
    kinds
}

/// Equal hours of several rules become one: they are looked up once for all of them.
pub(super) fn share(entries: &mut [Entry]) {
    let mut known: Vec<Arc<Calendar>> = Vec::new();
    let mut shared = |calendar: &mut Arc<Calendar>| match known.iter().find(|known| **known == *calendar) {
        Some(same) => *calendar = same.clone(),
        None => known.push(calendar.clone()),
    };
    for calendars in entries.iter_mut().filter_map(|entry| entry.calendars.as_mut()) {
        shared(&mut calendars.plain);
        shared(&mut calendars.dated);
    }
}
