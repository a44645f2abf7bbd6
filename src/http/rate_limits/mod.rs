//! How often: by key, by workspace, by user, and for strangers by their network.
//!
//! Strangers choose what they are counted by (addresses, e-mails, made-up keys), so each limit holds at most 50,000
//! buckets of a fixed size: about 4 MiB each, 72 MiB for all limits together, whatever is sent.
mod buckets;

use super::error::{ApiError, ApiResult, Code};
use crate::http::caller::Caller;
use buckets::Keyed;
use entities::ids::{ApiKeyId, EmailId, RoomId, TenantId, UserId};
use governor::{NotUntil, Quota, nanos::Nanos};
use runtime::clock::Clock;
use sha2::{Digest, Sha256};
use std::{hash::Hash, net::IpAddr, num::NonZeroU32, time::Duration};
use uuid::Uuid;

/// So many at once, and so many more every second.
#[derive(Clone, Copy)]
struct Pace {
    burst: u32,
    per_second: u32,
}

/// Requests of one key. Source: CONTRACT §1.
const KEY: Pace = Pace {
    burst: 100,
    per_second: 50,
};
/// Requests of all keys of a workspace together: more keys bring no more than four do.
const WORKSPACE: Pace = Pace {
    burst: 400,
    per_second: 200,
};
/// Requests of one session of the dashboard. Not of its user: whoever has stolen a session must not keep its owner from ending it.
const LOGIN: Pace = Pace {
    burst: 100,
    per_second: 20,
};
/// Requests of one member of a workspace for what it has, in all of the member's sessions together.
const MEMBER: Pace = KEY;
/// Requests with one made-up key, links that are not good, and sign-ins, each of one network.
const STRANGER: Pace = Pace {
    burst: 60,
    per_second: 1,
};
/// Requests of one network with made-up keys of any kind: many clients may share a proxy's address, and what one of them
/// repeats is counted above.
const STRANGERS: Pace = Pace {
    burst: 600,
    per_second: 10,
};
/// Sign-ins with one e-mail from one network, or from a browser that has signed in before: so many at once, and 12 more a
/// minute.
const TRIES: (u32, u32) = (20, 12);
/// Sign-ins with one e-mail from all networks together, but for such browsers: 5,000 at once, and 600 more a minute. Far more
/// than some dozens of networks can use up, so that they keep nobody out; and few enough for a password that holds.
const TRIES_FROM_EVERYWHERE: (u32, u32) = (5_000, 600);
/// Keys made in a workspace: so many at once, and as many more every minute.
const KEYS_MADE: u32 = 20;
/// Tries of those who are signed in at their own password: so many at once, and one more every minute. Counted apart from
/// sign-ins, so that strangers who use these up keep nobody out who is in.
const OWN_PASSWORD: (u32, u32) = (10, 1);
/// Changes of a workspace's members: so many at once, and as many more in an hour. Each ends somebody's sessions, also those
/// for other workspaces.
const MEMBER_CHANGES: u32 = 60;
/// Changes of one member in one workspace: so many at once, and as many more a day. Whoever is let in unasked must not be signed out
/// again and again.
const MEMBER_SESSIONS: u32 = 5;
/// Invitations to one address by one workspace: so many at once, and as many more a day. Each is an e-mail that nobody asked for.
const INVITATIONS: u32 = 5;
/// Tests of a workspace's trunks: so many at once, and as many more every minute.
const TRUNK_TESTS: u32 = 20;
/// Offers to join a room. A page whose network comes and goes needs fewer.
const JOINS: Pace = Pace {
    burst: 30,
    per_second: 1,
};
/// Presses of one mail's unsubscribe link: so many at once, and one more every minute. Mail programs and people press it a few times.
const PRESSES: (u32, u32) = (10, 1);
/// Characters that a workspace can have spoken in a minute: twenty of the longest previews.
const PREVIEW_CHARACTERS: u32 = 10_000;

/// A text of any length, as a bucket's name.
type Digest16 = [u8; 16];

/// Limits on how often.
pub struct RateLimits {
    clock: Clock,
    by_key: Keyed<ApiKeyId>,
    by_workspace: Keyed<TenantId>,
    by_login: Keyed<Digest16>,
    by_member: Keyed<(TenantId, UserId)>,
    keys_made: Keyed<TenantId>,
    unknown_keys: Keyed<(IpAddr, Digest16)>,
    unknown_keys_of_network: Keyed<IpAddr>,
    bad_links: Keyed<IpAddr>,
    /// Of unsubscribe links, by e-mail.
    presses: Keyed<EmailId>,
    sign_ins: Keyed<IpAddr>,
    sign_ins_by_email: Keyed<(IpAddr, Digest16)>,
    sign_ins_from_everywhere: Keyed<Digest16>,
    sign_ins_by_device: Keyed<Uuid>,
    own_passwords: Keyed<UserId>,
    member_changes: Keyed<TenantId>,
    member_sessions: Keyed<(TenantId, UserId)>,
    invitations: Keyed<(TenantId, Digest16)>,
    /// Requests to peers that a workspace names.
    trunk_tests: Keyed<TenantId>,
    /// Characters of previews of voices.
    previews: Keyed<TenantId>,
    /// Offers to join, by room.
    joins: Keyed<RoomId>,
}

/// What is left to a caller, for the `RateLimit-*` headers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Left {
    pub burst: u32,
    pub remaining: u32,
    /// Seconds until all of the burst is there again.
    pub reset: u32,
}

impl Pace {
    fn quota(self) -> Quota {
        Quota::per_second(count(self.per_second)).allow_burst(count(self.burst))
    }

    fn left(self, remaining: u32) -> Left {
        let used = self.burst.saturating_sub(remaining);
        Left {
            burst: self.burst,
            remaining,
            reset: used.div_ceil(self.per_second),
        }
    }
}

fn per_minute((burst, per_minute): (u32, u32)) -> Quota {
    Quota::per_minute(count(per_minute)).allow_burst(count(burst))
}

fn a_day(times: u32) -> Quota {
    let every = Duration::from_secs(24 * 3600 / u64::from(times.max(1)));
    let quota = Quota::with_period(every).unwrap_or_else(|| Quota::per_hour(NonZeroU32::MIN));
    quota.allow_burst(count(times))
}

fn count(n: u32) -> NonZeroU32 {
    NonZeroU32::new(n).unwrap_or(NonZeroU32::MIN)
}

impl RateLimits {
    pub fn new(clock: &Clock) -> Self {
        RateLimits {
            clock: clock.clone(),
            by_key: Keyed::new(KEY.quota(), clock),
            by_workspace: Keyed::new(WORKSPACE.quota(), clock),
            by_login: Keyed::new(LOGIN.quota(), clock),
            by_member: Keyed::new(MEMBER.quota(), clock),
            keys_made: Keyed::new(per_minute((KEYS_MADE, KEYS_MADE)), clock),
            unknown_keys: Keyed::new(STRANGER.quota(), clock),
            unknown_keys_of_network: Keyed::new(STRANGERS.quota(), clock),
            bad_links: Keyed::new(STRANGER.quota(), clock),
            presses: Keyed::new(per_minute(PRESSES), clock),
            sign_ins: Keyed::new(STRANGER.quota(), clock),
            sign_ins_by_email: Keyed::new(per_minute(TRIES), clock),
            sign_ins_from_everywhere: Keyed::new(per_minute(TRIES_FROM_EVERYWHERE), clock),
            sign_ins_by_device: Keyed::new(per_minute(TRIES), clock),
            own_passwords: Keyed::new(per_minute(OWN_PASSWORD), clock),
            member_changes: Keyed::new(Quota::per_hour(count(MEMBER_CHANGES)), clock),
            member_sessions: Keyed::new(a_day(MEMBER_SESSIONS), clock),
            invitations: Keyed::new(a_day(INVITATIONS), clock),
            trunk_tests: Keyed::new(per_minute((TRUNK_TESTS, TRUNK_TESTS)), clock),
            previews: Keyed::new(per_minute((PREVIEW_CHARACTERS, PREVIEW_CHARACTERS)), clock),
            joins: Keyed::new(JOINS.quota(), clock),
        }
    }

    /// Forgets who has been quiet.
    pub fn tidy(&self) {
        self.by_key.tidy();
        self.by_workspace.tidy();
        self.by_login.tidy();
        self.by_member.tidy();
        self.keys_made.tidy();
        self.unknown_keys.tidy();
        self.unknown_keys_of_network.tidy();
        self.bad_links.tidy();
        self.presses.tidy();
        self.sign_ins.tidy();
        self.sign_ins_by_email.tidy();
        self.sign_ins_from_everywhere.tidy();
        self.sign_ins_by_device.tidy();
        self.own_passwords.tidy();
        self.member_changes.tidy();
        self.member_sessions.tidy();
        self.invitations.tidy();
        self.trunk_tests.tidy();
        self.previews.tidy();
        self.joins.tidy();
    }

    /// Buckets in use, of all limits.
    pub fn buckets(&self) -> usize {
        [
            self.by_key.count(),
            self.by_workspace.count(),
            self.by_login.count(),
            self.by_member.count(),
            self.keys_made.count(),
            self.unknown_keys.count(),
            self.unknown_keys_of_network.count(),
            self.bad_links.count(),
            self.presses.count(),
            self.sign_ins.count(),
            self.sign_ins_by_email.count(),
            self.sign_ins_from_everywhere.count(),
            self.sign_ins_by_device.count(),
            self.own_passwords.count(),
            self.member_changes.count(),
            self.member_sessions.count(),
            self.invitations.count(),
            self.trunk_tests.count(),
            self.previews.count(),
            self.joins.count(),
        ]
        .iter()
        .sum()
    }

    /// A request with a key. What is left is that of the key or of its workspace, whichever is used up first; it is noted
    /// in `left` also when there is nothing.
    pub fn request(&self, key: ApiKeyId, tenant: TenantId, left: &mut Option<Left>) -> ApiResult<()> {
        let of_key = self.admit(&self.by_key, &key, KEY, left, "key")?;
        let of_workspace = self.admit(&self.by_workspace, &tenant, WORKSPACE, left, "workspace")?;
        *left = Some(if of_workspace.remaining < of_key.remaining {
            of_workspace
        } else {
            of_key
        });
        Ok(())
    }

    /// A request of somebody who is signed in.
    pub fn dashboard(&self, token_hash: &str, left: &mut Option<Left>) -> ApiResult<()> {
        *left = Some(self.admit(&self.by_login, &digest(token_hash), LOGIN, left, "session")?);
        Ok(())
    }

    /// The same, for what a workspace has.
    pub fn member(&self, tenant: TenantId, user: UserId, left: &mut Option<Left>) -> ApiResult<()> {
        let before = *left;
        let of_member = self.admit(&self.by_member, &(tenant, user), MEMBER, left, "member")?;
        *left = before
            .filter(|before| before.remaining < of_member.remaining)
            .or(Some(of_member));
        Ok(())
    }

    fn admit<K: Hash + Eq + Clone>(
        &self,
        limit: &Keyed<K>,
        key: &K,
        pace: Pace,
        left: &mut Option<Left>,
        whose: &str,
    ) -> ApiResult<Left> {
        match limit.check(key) {
            Ok(snapshot) => Ok(pace.left(snapshot.remaining_burst_capacity())),
            Err(not_yet) => {
                *left = Some(pace.left(0));
                let Pace { burst, per_second } = pace;
                let message = format!("at most {per_second} requests a second per {whose}, bursts of {burst}");
                Err(self.too_many(message, &not_yet))
            }
        }
    }

    fn too_many(&self, message: impl Into<String>, not_yet: &NotUntil<Nanos>) -> ApiError {
        let wait = not_yet.wait_time_from(governor::clock::Clock::now(&self.clock));
        ApiError::TooMany(Code::RateLimited, message.into(), seconds(wait))
    }

    /// A key that is to be made.
    pub fn key_made(&self, tenant: TenantId) -> ApiResult<()> {
        let allowed = self.keys_made.check(&tenant);
        allowed.map(drop).map_err(|not_yet| {
            let message = format!("a workspace can make at most {KEYS_MADE} keys a minute");
            self.too_many(message, &not_yet)
        })
    }

    /// A key that nobody has. `Err` for who has shown it too often, or for a network that shows very many.
    pub fn unknown_key(&self, network: IpAddr, key: &str) -> ApiResult<()> {
        let same = self.unknown_keys.check(&(network, digest(key)));
        let any = same.and_then(|_| self.unknown_keys_of_network.check(&network));
        any.map(drop)
            .map_err(|not_yet| self.too_many("too many requests with unknown keys from this address", &not_yet))
    }

    /// A link that is not good: guessing links is guessing keys.
    pub fn bad_link(&self, network: IpAddr) -> ApiResult<()> {
        let allowed = self.bad_links.check(&network);
        allowed
            .map(drop)
            .map_err(|not_yet| self.too_many("too many invalid links from this address", &not_yet))
    }

    /// A press of an e-mail's unsubscribe link: each is looked at in a transaction.
    pub fn press(&self, email: EmailId) -> ApiResult<()> {
        let allowed = self.presses.check(&email);
        allowed.map(drop).map_err(|not_yet| {
            self.too_many(
                "this link was pressed too often; the first time has been enough",
                &not_yet,
            )
        })
    }

    /// A try to sign in or up. Who guesses somebody's password keeps out nobody else in other networks; and guessing from
    /// many networks is slowed down too.
    pub fn sign_in(&self, network: IpAddr, email: &str) -> ApiResult<()> {
        let email = digest(&email.trim().to_lowercase());
        // The narrow ones first: who has used up theirs takes nothing from others.
        let allowed = self
            .sign_ins_by_email
            .check(&(network, email))
            .and_then(|_| self.sign_ins.check(&network))
            .and_then(|_| self.sign_ins_from_everywhere.check(&email));
        allowed
            .map(drop)
            .map_err(|not_yet| self.too_many("too many attempts; wait a little", &not_yet))
    }

    /// A try to sign in from a browser that has signed in before: counted by itself. `false`: it has used that up.
    pub fn known_device(&self, device: Uuid) -> bool {
        self.sign_ins_by_device.check(&device).is_ok()
    }

    /// A try of somebody who is signed in at their own password.
    pub fn own_password(&self, user: UserId) -> ApiResult<()> {
        let allowed = self.own_passwords.check(&user);
        allowed
            .map(drop)
            .map_err(|not_yet| self.too_many("too many attempts at this password; wait a little", &not_yet))
    }

    /// Somebody is let in, given another role, or let go.
    pub fn member_change(&self, tenant: TenantId) -> ApiResult<()> {
        let allowed = self.member_changes.check(&tenant);
        allowed.map(drop).map_err(|not_yet| {
            let message = format!("at most {MEMBER_CHANGES} member changes an hour");
            self.too_many(message, &not_yet)
        })
    }

    /// A member is given another role, or let go, which ends all of that person's sessions.
    pub fn member_sessions(&self, tenant: TenantId, member: UserId) -> ApiResult<()> {
        let allowed = self.member_sessions.check(&(tenant, member));
        allowed.map(drop).map_err(|not_yet| {
            let message = format!("at most {MEMBER_SESSIONS} changes to one member a day");
            self.too_many(message, &not_yet)
        })
    }

    /// Somebody is invited.
    pub fn invitation(&self, tenant: TenantId, email: &str) -> ApiResult<()> {
        let allowed = self.invitations.check(&(tenant, digest(email)));
        allowed.map(drop).map_err(|not_yet| {
            let message = format!("at most {INVITATIONS} invitations to one address a day");
            self.too_many(message, &not_yet)
        })
    }

    /// A request to the peer of a trunk.
    pub fn trunk_test(&self, caller: &Caller) -> ApiResult<()> {
        let allowed = self.trunk_tests.check(&caller.tenant_id());
        allowed.map(drop).map_err(|not_yet| {
            let message = format!("at most {TRUNK_TESTS} trunk tests a minute");
            self.too_many(message, &not_yet)
        })
    }

    /// Somebody with the room's link offers to join it: each offer is work, also one that is refused.
    pub fn join(&self, room: RoomId) -> ApiResult<()> {
        let allowed = self.joins.check(&room);
        allowed
            .map(drop)
            .map_err(|not_yet| self.too_many("too many offers to join this room", &not_yet))
    }

    /// A preview of so many characters.
    pub fn preview(&self, tenant: TenantId, characters: usize) -> ApiResult<()> {
        let characters = u32::try_from(characters).ok().and_then(NonZeroU32::new);
        if characters.is_none_or(|n| self.previews.allows(&tenant, n)) {
            Ok(())
        } else {
            let message = format!("at most {PREVIEW_CHARACTERS} characters of preview text a minute");
            Err(ApiError::TooMany(Code::RateLimited, message, 5))
        }
    }
}

/// For `Retry-After`.
fn seconds(wait: Duration) -> u64 {
    wait.as_secs() + 1
}

fn digest(text: &str) -> Digest16 {
    let mut short = Digest16::default();
    short.copy_from_slice(&Sha256::digest(text.as_bytes())[..16]);
    short
}

#[cfg(test)]
mod tests;
