//! What holds each campaign up, and how fast it dials: noted by the dispatchers, for those who ask.
use entities::{ids::CampaignId, values::Moment};
use rules::dispatch::limiting::LimitingFactor;
use std::{
    collections::{HashMap, VecDeque},
    sync::{Mutex, MutexGuard, PoisonError},
};

/// What is noted of one campaign.
#[derive(Default)]
struct Note {
    limiting: Option<LimitingFactor>,
    /// Dials per second, for the last minute.
    seconds: VecDeque<(i64, u32)>,
}

/// Seconds over which the pace is measured.
const SPAN: i64 = 60;

#[derive(Default)]
pub struct PacingReport(Mutex<HashMap<CampaignId, Note>>);

impl PacingReport {
    fn lock(&self) -> MutexGuard<'_, HashMap<CampaignId, Note>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn limited(&self, campaign: CampaignId, by: LimitingFactor) {
        self.lock().entry(campaign).or_default().limiting = Some(by);
    }

    pub fn dialed(&self, campaign: CampaignId, at: Moment) {
        let second = at.millis().div_euclid(1000);
        let mut notes = self.lock();
        let seconds = &mut notes.entry(campaign).or_default().seconds;
        match seconds.back_mut() {
            Some((last, count)) if *last == second => *count += 1,
            _ => seconds.push_back((second, 1)),
        }
        while seconds.front().is_some_and(|(first, _)| *first < second - SPAN) {
            seconds.pop_front();
        }
    }

    /// It dispatches no more.
    pub fn forget(&self, campaign: CampaignId) {
        self.lock().remove(&campaign);
    }

    pub fn limiting(&self, campaign: CampaignId) -> Option<LimitingFactor> {
        self.lock().get(&campaign).and_then(|note| note.limiting)
    }

    /// Dials per second over the last minute.
    pub fn dials_per_second(&self, campaign: CampaignId, now: Moment) -> f64 {
        let since = now.millis().div_euclid(1000) - SPAN;
        let notes = self.lock();
        let seconds = notes.get(&campaign).map(|note| &note.seconds).into_iter().flatten();
        let (mut first, mut count) = (None, 0);
        for (second, dials) in seconds.filter(|(second, _)| *second > since) {
            first.get_or_insert(*second);
            count += dials;
        }
        let span = first.map_or(1, |first| (now.millis().div_euclid(1000) - first + 1).clamp(1, SPAN));
        f64::from(count) / span as f64
    }
}
