//! Session timers (RFC 4028): a call whose other end has silently gone is noticed, because one side has to refresh
//! the call before its interval is over.
use std::time::{Duration, Instant};

/// Seconds. The shortest interval that is bearable, for whoever asks for less. RFC 4028 §5.
pub const MIN_SE: u32 = 90;

/// Seconds. Longer ones are read as this.
const MOST: u32 = 86_400;

/// Who refreshes: the one who sent the request that set the timer (`uac`), or the one who answered it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refresher {
    Uac,
    Uas,
}

impl Refresher {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Uac => "uac",
            Self::Uas => "uas",
        }
    }
}

/// The value of `Session-Expires`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SessionExpires {
    pub seconds: u32,
    pub refresher: Option<Refresher>,
}

impl SessionExpires {
    /// `1800;refresher=uac`. `None`: not well-formed, and then as if it were absent.
    pub fn read(value: &str) -> Option<Self> {
        let mut parts = value.split(';').map(str::trim);
        let seconds: u32 = parts.next()?.parse().ok()?;
        let refresher = parts.find_map(|part| {
            let (name, value) = part.split_once('=')?;
            match (
                name.trim().to_ascii_lowercase().as_str(),
                value.trim().to_ascii_lowercase().as_str(),
            ) {
                ("refresher", "uac") => Some(Refresher::Uac),
                ("refresher", "uas") => Some(Refresher::Uas),
                _ => None,
            }
        });
        Some(Self {
            seconds: seconds.min(MOST),
            refresher,
        })
    }
}

impl std::fmt::Display for SessionExpires {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.seconds)?;
        match self.refresher {
            Some(refresher) => write!(f, ";refresher={}", refresher.as_str()),
            None => Ok(()),
        }
    }
}

/// What a request that sets a timer is answered with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Terms {
    /// No timer.
    None,
    /// `Session-Expires` of the 2xx; `require`: with `Require: timer`.
    Agreed { expires: SessionExpires, require: bool },
    /// 422 with `Min-SE`.
    TooShort,
}

/// The answer of a UAS. `asked`: their `Session-Expires`; `supports`: `timer` is in their `Supported` or `Require`;
/// `ours`: the interval that we want where they leave it to us, `None`: none. RFC 4028 §9 and its table 2.
pub fn answer(asked: Option<SessionExpires>, supports: bool, ours: Option<u32>) -> Terms {
    match asked {
        // Who does not know timers would not understand the refusal: a proxy has put it in, and gets what it wants.
        Some(asked) if asked.seconds < MIN_SE && supports => Terms::TooShort,
        Some(asked) => {
            let refresher = match supports {
                true => asked.refresher.unwrap_or(Refresher::Uac),
                false => Refresher::Uas,
            };
            let seconds = asked.seconds.max(MIN_SE);
            let expires = SessionExpires {
                seconds,
                refresher: Some(refresher),
            };
            Terms::Agreed {
                expires,
                require: refresher == Refresher::Uac,
            }
        }
        None => match ours {
            Some(seconds) if supports => {
                let expires = SessionExpires {
                    seconds: seconds.clamp(MIN_SE, MOST),
                    refresher: Some(Refresher::Uas),
                };
                Terms::Agreed {
                    expires,
                    require: false,
                }
            }
            _ => Terms::None,
        },
    }
}

/// The timer of one session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionTimer {
    interval: Duration,
    ours: bool,
    since: Instant,
    /// `None`: it is not for us to ask, or we have asked.
    ask_at: Option<Instant>,
    /// How often we have asked.
    tries: u8,
}

/// What a moment of the timer asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Due {
    /// It is for us to send UPDATE or re-INVITE.
    Refresh,
    /// Nobody refreshed in time: BYE.
    Expired,
}

impl SessionTimer {
    /// `ours`: we refresh.
    pub fn new(seconds: u32, ours: bool, now: Instant) -> Self {
        let interval = Duration::from_secs(seconds.clamp(MIN_SE, MOST).into());
        Self {
            interval,
            ours,
            since: now,
            ask_at: ours.then(|| now + interval / 2),
            tries: 0,
        }
    }

    pub fn seconds(&self) -> u32 {
        u32::try_from(self.interval.as_secs()).unwrap_or(MOST)
    }

    pub fn is_ours(&self) -> bool {
        self.ours
    }

    /// We ask at half of the interval, and give up a third of it, at most 32 s, before its end. RFC 4028 §7.2, §10.
    pub fn deadline(&self) -> Instant {
        self.ask_at.unwrap_or(self.ends_at())
    }

    fn ends_at(&self) -> Instant {
        self.since + self.interval - (self.interval / 3).min(Duration::from_secs(32))
    }

    pub fn tries(&self) -> u8 {
        self.tries
    }

    /// The peer could not answer just now. `false`: the session is over before `at`.
    pub fn ask_again(&mut self, at: Instant) -> bool {
        let is_in_time = at < self.ends_at();
        if is_in_time {
            self.ask_at = Some(at);
        }
        is_in_time
    }

    pub fn tick(&mut self, now: Instant) -> Option<Due> {
        if now < self.deadline() {
            return None;
        }
        if self.ask_at.take().is_some() {
            self.tries = self.tries.saturating_add(1);
            return Some(Due::Refresh);
        }
        Some(Due::Expired)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn expires(seconds: u32, refresher: Option<Refresher>) -> Option<SessionExpires> {
        Some(SessionExpires { seconds, refresher })
    }

    #[test]
    fn headers_are_read() {
        for (text, expected) in [
            ("1800", expires(1800, None)),
            ("1800;refresher=uac", expires(1800, Some(Refresher::Uac))),
            (" 90 ; Refresher = UAS ", expires(90, Some(Refresher::Uas))),
            ("90;refresher=both", expires(90, None)),
            ("90;x=1;refresher=uas", expires(90, Some(Refresher::Uas))),
            ("4294967295", expires(86_400, None)),
            ("4294967296", None),
            ("soon", None),
            ("", None),
        ] {
            assert_eq!(SessionExpires::read(text), expected, "{text}");
        }
    }

    /// RFC 4028, table 2, and what is below it.
    #[test]
    fn every_line_of_table_2() {
        use Refresher::{Uac, Uas};
        let agreed = |seconds, refresher, require| Terms::Agreed {
            expires: SessionExpires {
                seconds,
                refresher: Some(refresher),
            },
            require,
        };
        for (asked, supports, ours, expected) in [
            (expires(1800, None), false, None, agreed(1800, Uas, false)),
            (expires(1800, Some(Uac)), false, None, agreed(1800, Uas, false)),
            (expires(1800, None), true, None, agreed(1800, Uac, true)),
            (expires(1800, Some(Uac)), true, None, agreed(1800, Uac, true)),
            (expires(1800, Some(Uas)), true, None, agreed(1800, Uas, false)),
            (expires(89, Some(Uac)), true, None, Terms::TooShort),
            (expires(90, Some(Uac)), true, None, agreed(90, Uac, true)),
            (expires(60, None), false, None, agreed(90, Uas, false)),
            (None, true, Some(1800), agreed(1800, Uas, false)),
            (None, true, Some(10), agreed(90, Uas, false)),
            (None, true, None, Terms::None),
            (None, false, Some(1800), Terms::None),
        ] {
            assert_eq!(answer(asked, supports, ours), expected, "{asked:?} {supports} {ours:?}");
        }
    }

    #[test]
    fn who_refreshes_asks_at_half_and_gives_up_before_the_end() {
        let start = Instant::now();
        let at = |seconds| start + Duration::from_secs(seconds);
        let mut ours = SessionTimer::new(1800, true, start);
        assert_eq!(ours.deadline(), at(900));
        assert_eq!(ours.tick(at(899)), None);
        assert_eq!(ours.tick(at(900)), Some(Due::Refresh));
        assert_eq!(ours.tick(at(900)), None);
        assert_eq!(ours.deadline(), at(1768));
        assert_eq!(ours.tick(at(1768)), Some(Due::Expired));
        let mut again = SessionTimer::new(1800, true, start);
        assert_eq!((again.tick(at(900)), again.tries()), (Some(Due::Refresh), 1));
        assert!(again.ask_again(at(903)) && again.deadline() == at(903));
        assert_eq!((again.tick(at(903)), again.tries()), (Some(Due::Refresh), 2));
        assert!(!again.ask_again(at(1768)) && again.deadline() == at(1768), "too late");
        let mut theirs = SessionTimer::new(90, false, start);
        assert_eq!(theirs.deadline(), at(60));
        assert_eq!(theirs.tick(at(59)), None);
        assert_eq!(theirs.tick(at(60)), Some(Due::Expired));
    }
}
