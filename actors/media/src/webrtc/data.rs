//! What is said in words: captions to the page, keys from it, in the data channel.
use super::mux::dropped;
use crate::bridge::MediaBridge;
use serde::Deserialize;
use std::{
    collections::VecDeque,
    time::{Duration, Instant},
};
use str0m::{Rtc, channel::ChannelId};

/// The channel's label.
pub const LABEL: &str = "callboard";
/// Bytes of a message from the page.
const LONGEST: usize = 1_024;
/// Messages of the page in a second.
const PER_SECOND: u32 = 20;
/// Keys in a message.
const KEYS: usize = 32;
/// How long the page has to take the last note, from when it can.
const FAREWELL: Duration = Duration::from_secs(2);
/// So long a new connection may take until it can: a talk may be over before its page is connected.
const UNOPENED: Duration = Duration::from_secs(15);

#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Message {
    Keys { digits: String },
}

/// The data channel, once it is open.
#[derive(Default)]
pub struct Data {
    channel: Option<ChannelId>,
    /// When it was first asked whether there is something to tell.
    born_at: Option<Instant>,
    opened_at: Option<Instant>,
    /// The next note of the bridge.
    place: usize,
    /// Taken from the bridge and not sent yet; filled only when it is empty.
    queue: VecDeque<String>,
    /// The talk is over.
    over_at: Option<Instant>,
    /// When the page's messages of this second are counted from.
    since: Option<Instant>,
    messages: u32,
}

impl Data {
    pub fn open(&mut self, channel: ChannelId, now: Instant) {
        self.channel = Some(channel);
        self.opened_at.get_or_insert(now);
    }

    /// When the connection ends, whether the page knows or not that the talk is over.
    pub fn end_at(&self) -> Option<Instant> {
        let over_at = self.over_at?;
        let can_from = self
            .opened_at
            .or_else(|| self.born_at.map(|born_at| born_at + UNOPENED));
        Some(over_at.max(can_from.unwrap_or(over_at)) + FAREWELL)
    }

    pub fn is(&self, channel: ChannelId) -> bool {
        self.channel == Some(channel)
    }

    pub fn close(&mut self) {
        self.channel = None;
    }

    /// Sends what there is to tell, as far as the channel takes it. `true`: the talk is over and the page knows, or it is too late.
    pub fn tell(&mut self, rtc: &mut Rtc, bridge: &MediaBridge, now: Instant) -> bool {
        self.born_at.get_or_insert(now);
        if bridge.is_over() {
            self.over_at.get_or_insert(now);
        }
        let is_over = self.over_at.is_some();
        let channel = self.channel.and_then(|id| rtc.channel(id));
        let told = channel.is_some_and(|mut channel| {
            // To the bridge's end: what was waiting is not the last of it.
            while let Some(text) = self.next(bridge) {
                match channel.write(false, text.as_bytes()) {
                    Ok(true) => {}
                    // It is full for now; the next frame tries again.
                    Ok(false) => return false,
                    // Too long for this browser, or closing; the others may do.
                    Err(error) => tracing::debug!(%error, "a page was not told something"),
                }
                self.queue.pop_front();
            }
            // To ask makes the protocols look at everything anew, so it is asked only where it matters.
            is_over && channel.buffered_amount() == 0
        });
        self.end_at().is_some_and(|end_at| told || now >= end_at)
    }

    /// The next to be sent, from the bridge when nothing waits.
    fn next(&mut self, bridge: &MediaBridge) -> Option<&String> {
        if self.queue.is_empty() {
            let (notes, next) = bridge.notes_from(self.place);
            self.place = next;
            let texts = notes.iter().filter_map(|note| serde_json::to_string(note).ok());
            self.queue.extend(texts);
        }
        self.queue.front()
    }

    /// What the page says.
    pub fn hear(&mut self, text: &[u8], bridge: &MediaBridge, now: Instant) {
        if self.since.is_none_or(|since| now - since >= Duration::from_secs(1)) {
            self.since = Some(now);
            self.messages = 0;
        }
        self.messages += 1;
        if text.len() > LONGEST || self.messages > PER_SECOND {
            return dropped("message");
        }
        match serde_json::from_slice(text) {
            Ok(Message::Keys { digits }) if is_keys(&digits) => bridge.press(digits),
            Ok(Message::Keys { .. }) | Err(_) => dropped("message"),
        }
    }
}

fn is_keys(digits: &str) -> bool {
    (1..=KEYS).contains(&digits.len())
        && digits
            .bytes()
            .all(|key| key.is_ascii_digit() || matches!(key, b'*' | b'#'))
}
