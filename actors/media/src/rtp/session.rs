//! One phone leg's sound, from the outside: it begins with the SDP, is picked up, may be held, moved and connected to another leg,
//! and ends when it is dropped.
pub use super::shared::{Direction, Moments, Params, RtpEvent};

use super::{
    dtmf,
    leg::{Identity, Leg},
    ports::PortPair,
    relay::Inlet,
    rtcp::Quality,
    shared::{Order, Shared},
    speaking::Origin,
};
use crate::{bridge::MediaBridge, threads::MediaThreads};
use std::{
    sync::{
        Arc,
        mpsc::{SyncSender, sync_channel},
    },
    time::Instant,
};
use tokio::sync::mpsc;

/// Orders that a leg has not looked at yet; it looks every 10 ms.
const ORDERS: usize = 32;
/// Events that its owner has not looked at yet; what comes beyond is counted and lost.
const EVENTS: usize = 64;

/// A leg's; dropping it says goodbye and frees everything within 10 ms.
#[derive(Debug)]
pub struct RtpSession {
    orders: SyncSender<Order>,
    shared: Arc<Shared>,
    inlet: Arc<Inlet>,
    port: u16,
}

impl RtpSession {
    /// Sends silence and listens for tones from now on; the bridge is asked and told from the [pick-up](Self::picked_up) on.
    /// `chance`: 24 random bytes, from which the stream's name and numbers are made. The events end when the leg is gone. Fails if
    /// the codec cannot be set up, a key has the wrong length, or media is shutting down.
    pub fn start(
        threads: &MediaThreads,
        ports: PortPair,
        params: Params,
        bridge: Arc<MediaBridge>,
        chance: [u8; 24],
    ) -> Result<(Self, mpsc::Receiver<RtpEvent>), String> {
        let [i0, i1, i2, i3, s0, s1, t0, t1, t2, t3, c0, c1, name @ ..] = chance;
        let origin = Origin {
            ssrc: u32::from_be_bytes([i0, i1, i2, i3]),
            sequence: u16::from_be_bytes([s0, s1]),
            timestamp: u32::from_be_bytes([t0, t1, t2, t3]),
        };
        let name: String = name.iter().map(|byte| format!("{byte:02x}")).collect();
        let (orders, obeyed) = sync_channel(ORDERS);
        let (events, told) = mpsc::channel(EVENTS);
        let shared: Arc<Shared> = Arc::default();
        let inlet = Inlet::new(params.codec);
        let session = RtpSession {
            orders,
            shared: shared.clone(),
            inlet: inlet.clone(),
            port: ports.port(),
        };
        let identity = Identity {
            origin,
            name,
            chance: u32::from_be_bytes([c0, c1, i0, t3]),
        };
        let leg = Leg::new(
            ports,
            params,
            bridge,
            identity,
            shared,
            inlet,
            obeyed,
            events,
            Instant::now(),
        )?;
        match threads.join(Box::new(leg)) {
            true => Ok((session, told)),
            false => Err("media is shutting down".into()),
        }
    }

    /// Of RTP, for the SDP.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Somebody is there: the bridge speaks and hears from now on, and 10 s of nothing are told. `detect`: who it is, is told too.
    pub fn picked_up(&self, detect: bool) -> bool {
        self.order(Order::PickedUp { detect })
    }

    /// Presses keys of `0-9*#`, one after the other; the agent's words wait. `false`: another key, or too many at once.
    pub fn press(&self, keys: &str) -> bool {
        let fits = keys.len() <= dtmf::MOST_WAITING;
        fits && keys.chars().all(|key| dtmf::event_of(key).is_some()) && self.order(Order::Press(keys.to_owned()))
    }

    /// While it is held nothing is heard or said, silence is sent, and no silence is told.
    pub fn hold(&self, is_held: bool) -> bool {
        self.order(Order::Hold(is_held))
    }

    /// Another SDP was agreed on. What cannot be set up leaves everything as it was.
    pub fn retarget(&self, params: Params) -> bool {
        self.order(Order::Retarget(Box::new(params)))
    }

    /// Connects both: what one hears the other sends, keys too, of which whoever owns the leg is told; the bridges are not told and not
    /// asked. `is_recorded`: what passes is a part of the recording of either one's bridge, if it has one.
    pub fn relay(&self, other: &RtpSession, is_recorded: bool) -> bool {
        self.inlet.set_recorded(is_recorded);
        other.inlet.set_recorded(is_recorded);
        let (here, there) = (Some(self.inlet.clone()), Some(other.inlet.clone()));
        self.order(Order::Relay(there)) && other.order(Order::Relay(here))
    }

    /// Back to the bridge, if it was connected to another leg.
    pub fn end_relay(&self) -> bool {
        self.order(Order::Relay(None))
    }

    /// Test switch: the leg panics at its next look.
    pub fn fail(&self) -> bool {
        self.order(Order::Fail)
    }

    /// `false`: the leg is gone, or has not looked for long.
    fn order(&self, order: Order) -> bool {
        self.orders.try_send(order).is_ok()
    }

    /// As of a second ago at most.
    pub fn quality(&self) -> Quality {
        self.shared.view().quality
    }

    /// When a packet of the other side came last.
    pub fn last_heard(&self) -> Option<Instant> {
        self.shared.view().last_heard
    }

    /// Packets of others, who were not heard.
    pub fn strangers(&self) -> u64 {
        self.shared.view().strangers
    }

    pub fn moments(&self) -> Moments {
        self.shared.view().moments
    }
}
