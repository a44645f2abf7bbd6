//! Where what a leg hears goes: before the pick-up to those who listen for tones, then to the bridge, or to another leg.
use super::{
    codec::Codec,
    hearing::Heard,
    relay::{Inlet, Relayed},
    shared::{RtpEvent, Shared},
};
use crate::{answering::Listener, bridge::MediaBridge, tones::ProgressTones};
use std::{
    sync::Arc,
    time::{Duration, Instant},
};
use tokio::sync::mpsc;

/// Without a word from either side for so long there is no greeting to measure.
const GREETS_WITHIN: Duration = Duration::from_secs(30);

pub struct Outlet {
    bridge: Arc<MediaBridge>,
    shared: Arc<Shared>,
    events: mpsc::Sender<RtpEvent>,
    /// Until somebody picks up.
    progress: Option<ProgressTones>,
    listening: Option<Listening>,
    has_spoken: bool,
    to: Option<Arc<Inlet>>,
}

/// Who is it? And when was the greeting?
struct Listening {
    listener: Box<Listener>,
    since: Instant,
    /// Who it is, is told.
    detects: bool,
}

impl Outlet {
    pub fn new(bridge: Arc<MediaBridge>, shared: Arc<Shared>, events: mpsc::Sender<RtpEvent>) -> Self {
        Outlet {
            bridge,
            shared,
            events,
            progress: Some(ProgressTones::default()),
            listening: None,
            has_spoken: false,
            to: None,
        }
    }

    /// `false`: it was picked up before.
    pub fn pick_up(&mut self, detects: bool, now: Instant) -> bool {
        if self.progress.take().is_none() {
            return false;
        }
        self.listening = Some(Listening {
            listener: Box::default(),
            since: now,
            detects,
        });
        self.shared.change(|view| view.moments.picked_up_at = Some(now));
        true
    }

    pub fn is_live(&self) -> bool {
        self.progress.is_none()
    }

    /// To another leg, or back to the bridge.
    pub fn connect(&mut self, to: Option<Arc<Inlet>>) {
        self.to = to;
    }

    pub fn is_connected(&self) -> bool {
        self.to.is_some()
    }

    /// The leg that it is connected to sends payloads of that codec as they are.
    pub fn takes(&self, codec: Codec) -> bool {
        self.to
            .as_ref()
            .is_some_and(|to| to.codec() == codec && !to.is_recorded())
    }

    pub fn has_spoken(&self) -> bool {
        self.has_spoken
    }

    /// The first sound of ours went out.
    pub fn spoke(&mut self, now: Instant) {
        self.has_spoken = true;
        self.shared.change(|view| view.moments.first_sound_at = Some(now));
        self.tell(RtpEvent::FirstSound);
        // Whatever comes now is no greeting any more.
        self.listening = self.listening.take().filter(|listening| listening.detects);
    }

    pub fn tell(&self, event: RtpEvent) {
        tell(&self.events, event);
    }

    pub fn take(&mut self, heard: Heard<'_>, now: Instant) {
        match (heard, &self.to) {
            (Heard::Key(key), Some(to)) => {
                to.packet(Relayed::Key(key));
                self.tell(RtpEvent::Relayed(key));
            }
            (Heard::Sound(samples), Some(to)) => {
                to.sound(samples);
                if to.is_recorded() {
                    self.bridge.record_heard(samples, now);
                }
            }
            (Heard::Payload { header, payload }, Some(to)) => to.packet(Relayed::Payload {
                timestamp: header.timestamp,
                payload: payload.to_vec(),
            }),
            (Heard::Key(key), None) if self.is_live() => self.bridge.press(key.into()),
            (Heard::Sound(samples), None) => self.sound(samples, now),
            (Heard::Key(_) | Heard::Payload { .. }, None) => {}
        }
    }

    fn sound(&mut self, samples: &[i16], now: Instant) {
        if let Some(progress) = &mut self.progress {
            if let Some(tone) = progress.hear(samples) {
                tell(&self.events, RtpEvent::Tone(tone));
            }
            return;
        }
        self.listen(samples, now);
        self.bridge.hear_at(samples, now);
    }

    fn listen(&mut self, samples: &[i16], now: Instant) {
        let Some(listening) = &mut self.listening else { return };
        let Listening {
            listener,
            since,
            detects,
        } = listening;
        let (events, detects) = (&self.events, *detects);
        listener.hear(samples, |signal| {
            if detects {
                tell(events, signal.into());
            }
        });
        let has_spoken = self.has_spoken;
        if let Some((began, ended)) = listener.greeting().filter(|_| !has_spoken) {
            let at = |ms: u32| Some(*since + Duration::from_millis(u64::from(ms)));
            self.shared.change(|view| {
                view.moments.greeting_began_at = at(began);
                view.moments.greeting_ended_at = at(ended);
            });
        }
        let is_over = listener.is_over() || !detects && now.saturating_duration_since(*since) >= GREETS_WITHIN;
        if is_over {
            self.listening = None;
        }
    }
}

fn tell(events: &mpsc::Sender<RtpEvent>, event: RtpEvent) {
    if events.try_send(event).is_err() {
        metrics::counter!("callboard_media_unheard_total").increment(1);
    }
}
