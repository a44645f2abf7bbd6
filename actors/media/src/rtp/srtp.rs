//! SRTP with keys from the SDP. Source: RFC 3711, RFC 4568 (SDES), RFC 6188 (AES-256).
//!
//! The library keeps a state for each source that a packet names, before it knows whether the packet is good. A context of ours
//! therefore serves one source only, and is kept when a packet of it has proved good: strangers cost a look, not memory. Sound
//! and reports have contexts of their own, for the first packet of either sets where its replay window stands, good or not.
use super::packet;
use rtc_srtp::{
    context::Context,
    crypto::{RTCCryptoProvider, default_provider},
    option::{srtcp_replay_protection, srtp_replay_protection},
    protection_profile::ProtectionProfile,
};
use std::{fmt, sync::Arc};
use zeroize::Zeroizing;

/// Packets that may come again or late before they are refused.
const REPLAY_WINDOW: usize = 64;
/// Sources of one leg, of sound and of reports each; a phone changes its source a few times at most. One is never forgotten, or its old packets were new again.
const MOST_SOURCES: usize = 8;
/// Bytes at the end of an SRTCP packet: its index, whose first bit says that it is encrypted, and the tag, which has 80 bits in
/// every suite. Source: RFC 3711, section 3.4; RFC 4568, section 6.2.
const RTCP_INDEX: usize = 4;
const RTCP_TAG: usize = 10;

/// How packets are protected, by its name in `a=crypto`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Suite {
    Aes128Tag80,
    Aes128Tag32,
    Aes256Tag80,
    Aes256Tag32,
}

impl Suite {
    pub const ALL: [Suite; 4] = [
        Suite::Aes128Tag80,
        Suite::Aes128Tag32,
        Suite::Aes256Tag80,
        Suite::Aes256Tag32,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Suite::Aes128Tag80 => "AES_CM_128_HMAC_SHA1_80",
            Suite::Aes128Tag32 => "AES_CM_128_HMAC_SHA1_32",
            Suite::Aes256Tag80 => "AES_256_CM_HMAC_SHA1_80",
            Suite::Aes256Tag32 => "AES_256_CM_HMAC_SHA1_32",
        }
    }

    fn profile(self) -> ProtectionProfile {
        match self {
            Suite::Aes128Tag80 => ProtectionProfile::Aes128CmHmacSha1_80,
            Suite::Aes128Tag32 => ProtectionProfile::Aes128CmHmacSha1_32,
            Suite::Aes256Tag80 => ProtectionProfile::Aes256CmHmacSha1_80,
            Suite::Aes256Tag32 => ProtectionProfile::Aes256CmHmacSha1_32,
        }
    }

    /// Bytes of a master key with its salt, as `inline:` has them.
    pub fn key_length(self) -> usize {
        self.profile().key_len() + self.profile().salt_len()
    }
}

/// What both sides said in their SDP: each its own master key and salt, for what it sends.
#[derive(Clone, PartialEq, Eq)]
pub struct Keys {
    pub suite: Suite,
    pub ours: Zeroizing<Vec<u8>>,
    pub theirs: Zeroizing<Vec<u8>>,
}

impl fmt::Debug for Keys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Keys({})", self.suite.name())
    }
}

/// Both directions of a leg.
pub struct Protection {
    keys: Keys,
    provider: Arc<dyn RTCCryptoProvider>,
    out: Context,
    /// Each with the source it serves, of sound and of reports.
    sound: Vec<(u32, Context)>,
    reports: Vec<(u32, Context)>,
}

impl Protection {
    /// Fails if a key has the wrong length.
    pub fn new(keys: Keys) -> Result<Self, String> {
        let provider = default_provider().map_err(|error| error.to_string())?;
        let out = context(&keys.ours, keys.suite, &*provider)?;
        // So that a bad key is found now, not with the first packet.
        context(&keys.theirs, keys.suite, &*provider)?;
        Ok(Protection {
            keys,
            provider,
            out,
            sound: Vec::new(),
            reports: Vec::new(),
        })
    }

    /// Other keys, from now on. A direction whose key stays goes on as it was: to count anew under one key would use its stream
    /// twice. Fails if a key has the wrong length, and changes nothing then.
    pub fn change(&mut self, keys: Keys) -> Result<(), String> {
        let out = context(&keys.ours, keys.suite, &*self.provider)?;
        context(&keys.theirs, keys.suite, &*self.provider)?;
        let is_other_suite = keys.suite != self.keys.suite;
        if is_other_suite || keys.ours != self.keys.ours {
            self.out = out;
        }
        if is_other_suite || keys.theirs != self.keys.theirs {
            self.sound.clear();
            self.reports.clear();
        }
        self.keys = keys;
        Ok(())
    }

    /// Replaces the packet; `false`: it cannot be sent.
    pub fn protect(&mut self, bytes: &mut Vec<u8>) -> bool {
        let done = match packet::is_rtcp(bytes) {
            true => self.out.encrypt_rtcp(bytes),
            false => self.out.encrypt_rtp(bytes),
        };
        replace(bytes, done.ok())
    }

    /// Replaces the packet by what was in it; `false`: it is not the other side's, was changed on the way, or came before.
    pub fn open(&mut self, bytes: &mut Vec<u8>) -> bool {
        let is_rtcp = packet::is_rtcp(bytes);
        let source = match is_rtcp {
            // The library takes a report that says of itself that it is not encrypted, and looks at no tag. None is agreed
            // (RFC 4568, section 6.3.2).
            true => bytes.get(4..8).filter(|_| is_encrypted_report(bytes)),
            // Extensions are read before a packet is known to be good, and none is agreed.
            false => bytes.get(8..12).filter(|_| !packet::has_extension(bytes)),
        };
        let Some(source) = source.and_then(|source| source.first_chunk::<4>()) else {
            return false;
        };
        let source = u32::from_be_bytes(*source);
        let open = |context: &mut Context| match is_rtcp {
            true => context.decrypt_rtcp(bytes),
            false => context.decrypt_rtp(bytes),
        };
        let heard = match is_rtcp {
            true => &mut self.reports,
            false => &mut self.sound,
        };
        let known = heard.iter().position(|(known, _)| *known == source);
        let opened = match known {
            Some(at) => open(&mut heard[at].1).ok(),
            None if heard.len() < MOST_SOURCES => {
                let fresh = context(&self.keys.theirs, self.keys.suite, &*self.provider);
                fresh.ok().and_then(|mut fresh| {
                    let opened = open(&mut fresh).ok()?;
                    heard.push((source, fresh));
                    Some(opened)
                })
            }
            None => None,
        };
        replace(bytes, opened)
    }
}

fn is_encrypted_report(bytes: &[u8]) -> bool {
    let index = bytes.len().checked_sub(RTCP_INDEX + RTCP_TAG);
    index
        .and_then(|at| bytes.get(at))
        .is_some_and(|first| first & 0x80 != 0)
}

fn replace(bytes: &mut Vec<u8>, by: Option<impl AsRef<[u8]>>) -> bool {
    let Some(by) = by else { return false };
    bytes.clear();
    bytes.extend_from_slice(by.as_ref());
    true
}

fn context(key: &[u8], suite: Suite, provider: &dyn RTCCryptoProvider) -> Result<Context, String> {
    let profile = suite.profile();
    if key.len() != suite.key_length() {
        return Err(format!(
            "a key of {} has {} bytes, not {}",
            suite.name(),
            suite.key_length(),
            key.len()
        ));
    }
    let (key, salt) = key.split_at(profile.key_len());
    let rtp = Some(srtp_replay_protection(REPLAY_WINDOW));
    let rtcp = Some(srtcp_replay_protection(REPLAY_WINDOW));
    Context::new(key, salt, profile, rtp, rtcp, provider.crypto()).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::{super::packet::Header, *};

    fn keys(suite: Suite, ours: u8, theirs: u8) -> Keys {
        let key = |byte: u8| Zeroizing::new(vec![byte; suite.key_length()]);
        let (ours, theirs) = (key(ours), key(theirs));
        Keys { suite, ours, theirs }
    }

    fn ends(suite: Suite) -> (Protection, Protection) {
        let end = |ours, theirs| Protection::new(keys(suite, ours, theirs)).unwrap();
        (end(1, 2), end(2, 1))
    }

    fn packet(sequence: u16, ssrc: u32) -> Vec<u8> {
        let header = Header {
            marker: false,
            payload_type: 0,
            sequence,
            timestamp: 7,
            ssrc,
        };
        let mut bytes = Vec::new();
        packet::write(&header, &[5; 160], &mut bytes);
        bytes
    }

    #[test]
    fn what_one_end_protects_the_other_opens() {
        for suite in Suite::ALL {
            let (mut one, mut other) = ends(suite);
            // Over the end of the sequence numbers, where the key stream changes.
            for sequence in 65_530..65_545_u32 {
                let plain = packet(sequence as u16, 9);
                let mut sent = plain.clone();
                assert!(one.protect(&mut sent), "{suite:?}");
                assert!(sent.len() > plain.len() && sent[12..40] != plain[12..40], "{suite:?}");
                assert!(other.open(&mut sent), "{suite:?} {sequence}");
                assert_eq!(sent, plain);
            }
            // A report.
            let plain = [&[0x80, 201, 0, 1][..], &9_u32.to_be_bytes()].concat();
            let mut sent = plain.clone();
            assert!(other.protect(&mut sent) && sent != plain && one.open(&mut sent));
            assert_eq!(sent, plain);
        }
    }

    #[test]
    fn what_is_not_the_other_sides_is_refused() {
        let suite = Suite::Aes128Tag80;
        let (mut one, mut other) = ends(suite);
        let mut wrong = Protection::new(keys(suite, 3, 2)).unwrap();
        let mut good = packet(1, 9);
        assert!(one.protect(&mut good));
        let mut forged = packet(1, 9);
        assert!(wrong.protect(&mut forged));
        let mut changed = good.clone();
        changed[20] ^= 1;
        let mut extended = good.clone();
        extended[0] |= 0x10;
        for (what, bytes) in [
            ("another key", forged),
            ("a changed byte", changed),
            ("an extension", extended),
            ("no protection", packet(1, 9)),
            ("a head", good[..12].to_vec()),
            ("nothing", Vec::new()),
        ] {
            assert!(!other.open(&mut bytes.clone()), "{what}");
        }
        assert!(other.open(&mut good.clone()));
        assert!(!other.open(&mut good), "it came before");
    }

    /// A receiver report of nothing, with an index and a tag that nobody made.
    fn forged_report(ssrc: u32, index: u32) -> Vec<u8> {
        [
            &[0x80, 201, 0, 1][..],
            &ssrc.to_be_bytes(),
            &index.to_be_bytes(),
            &[0; 10],
        ]
        .concat()
    }

    /// Whoever clears a bit must not get past the tag, nor take the places of sources.
    #[test]
    fn a_report_that_is_not_encrypted_is_refused() {
        for suite in Suite::ALL {
            let (_, mut other) = ends(suite);
            for ssrc in 0..20 {
                assert!(!other.open(&mut forged_report(ssrc, 7)), "{suite:?}");
            }
            assert_eq!(other.reports.len(), 0, "{suite:?}");
        }
    }

    /// The replay window begins with a good packet, whatever was forged before it.
    #[test]
    fn what_is_forged_moves_no_replay_window() {
        let (mut one, mut other) = ends(Suite::Aes128Tag80);
        let mut sound = packet(1, 9);
        assert!(one.protect(&mut sound) && other.open(&mut sound));
        assert!(!other.open(&mut forged_report(9, 1 << 31 | 0x3fff_ffff)));
        let mut report = [&[0x80, 201, 0, 1][..], &9_u32.to_be_bytes()].concat();
        assert!(one.protect(&mut report) && other.open(&mut report));
        // And the other way round.
        let (mut one, mut other) = ends(Suite::Aes128Tag80);
        let mut report = [&[0x80, 201, 0, 1][..], &9_u32.to_be_bytes()].concat();
        assert!(one.protect(&mut report) && other.open(&mut report));
        assert!(!other.open(&mut packet(20_000, 9)));
        let mut sound = packet(1, 9);
        assert!(one.protect(&mut sound) && other.open(&mut sound));
    }

    /// Sources are remembered when a packet of theirs was good, and none is forgotten.
    #[test]
    fn strangers_take_no_room() {
        let suite = Suite::Aes128Tag80;
        let (mut one, mut other) = ends(suite);
        for ssrc in 0..1_000 {
            assert!(!other.open(&mut packet(1, ssrc)));
        }
        assert_eq!((other.sound.len(), other.reports.len()), (0, 0));
        let mut first = packet(1, 1);
        assert!(one.protect(&mut first));
        for ssrc in 1..20 {
            let mut sent = packet(1, ssrc);
            assert!(ssrc == 1 || one.protect(&mut sent));
            let mut sent = if ssrc == 1 { first.clone() } else { sent };
            assert_eq!(other.open(&mut sent), ssrc <= 8, "{ssrc}");
        }
        assert!(!other.open(&mut first), "it came before, long ago");
    }

    /// A key that stays goes on, and what came before is refused still; a new one opens what is new.
    #[test]
    fn keys_change_one_by_one() {
        let suite = Suite::Aes128Tag80;
        let (mut one, mut other) = ends(suite);
        let mut replayed = Vec::new();
        for sequence in 65_500..65_560_u32 {
            let mut sent = packet(sequence as u16, 9);
            assert!(one.protect(&mut sent));
            replayed = sent.clone();
            assert!(other.open(&mut sent));
        }
        one.change(keys(suite, 1, 5)).unwrap();
        other.change(keys(suite, 5, 1)).unwrap();
        assert!(!other.open(&mut replayed));
        let mut sent = packet(65_560_u32 as u16, 9);
        assert!(
            one.protect(&mut sent) && other.open(&mut sent),
            "it goes on behind the end of the numbers"
        );
        let mut sent = packet(1, 7);
        assert!(other.protect(&mut sent) && one.open(&mut sent), "a new key");
        let mut bad = keys(suite, 1, 5);
        bad.ours.truncate(3);
        assert!(one.change(bad).is_err());
        let mut sent = packet(2, 7);
        assert!(other.protect(&mut sent) && one.open(&mut sent), "nothing has changed");
    }

    #[test]
    fn a_key_of_the_wrong_length_is_refused() {
        let mut bad = keys(Suite::Aes256Tag80, 1, 2);
        assert_eq!(Suite::Aes256Tag80.key_length(), 46);
        assert_eq!(
            format!("{bad:?}"),
            "Keys(AES_256_CM_HMAC_SHA1_80)",
            "a key stands in no log"
        );
        bad.theirs.truncate(30);
        let error = Protection::new(bad).err().unwrap();
        assert_eq!(error, "a key of AES_256_CM_HMAC_SHA1_80 has 46 bytes, not 30");
    }
}
