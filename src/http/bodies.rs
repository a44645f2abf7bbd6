//! Bytes of requests' bodies in memory, counted as they arrive: of a workspace, of a stranger's network, and of all together.
//! Who has no room is refused and frees what they hold, so that others go on.
use super::error::{ApiError, ApiResult, Code};
use actix_web::{HttpMessage, HttpRequest};
use entities::ids::TenantId;
use std::{
    collections::HashMap,
    net::IpAddr,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

pub const MIB: usize = 1024 * 1024;

/// Of all bodies.
const ALL: usize = 256 * MIB;
/// Of all bodies of people whom no key has named.
const STRANGERS: usize = 32 * MIB;
/// Of one workspace.
const OF_A_WORKSPACE: usize = 64 * MIB;
/// Of one network of strangers.
const OF_A_NETWORK: usize = 4 * MIB;
/// A body counts as that many at least, so that bodies which never come are limited in number, too. No more than that is never
/// drawn from what all strangers share: whoever fills that keeps nobody from signing in, or from saying STOP.
const LEAST: usize = 8 * 1024;

/// Whose bodies they are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Owner {
    Workspace(TenantId),
    Network(IpAddr),
}

/// Who holds how much.
#[derive(Default)]
pub struct Bodies(Mutex<Held>);

#[derive(Default)]
struct Held {
    all: usize,
    strangers: usize,
    /// Only who holds something is in it.
    by_owner: HashMap<Owner, usize>,
}

impl Bodies {
    fn lock(&self) -> MutexGuard<'_, Held> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Bytes in memory.
    pub fn held(&self) -> usize {
        self.lock().all
    }
}

/// What one body takes; free again when this is dropped.
pub struct BodyPermit {
    bodies: Arc<Bodies>,
    owner: Owner,
    /// What its owner is charged at least, for so much was announced.
    announced: usize,
    /// Set aside.
    bytes: usize,
    /// Of these, come in.
    arrived: usize,
}

/// What a body of that size draws from what all strangers share.
fn shared(bytes: usize) -> usize {
    bytes.saturating_sub(LEAST)
}

impl BodyPermit {
    /// For a body that begins.
    pub fn begin(bodies: &Arc<Bodies>, owner: Owner) -> ApiResult<Self> {
        let mut permit = BodyPermit {
            bodies: bodies.clone(),
            owner,
            announced: 0,
            bytes: 0,
            arrived: 0,
        };
        permit.set_aside(LEAST, 0)?;
        Ok(permit)
    }

    /// For so many more bytes.
    pub fn take(&mut self, bytes: usize) -> ApiResult<()> {
        self.arrived += bytes;
        self.set_aside(self.arrived.saturating_sub(self.bytes), 0)
    }

    /// A body of that length is to come. Its owner is charged for all of it from now on, so that what has no room is refused
    /// before any of it is read; the others only for what has come, for anybody can announce much.
    pub fn announce(&mut self, bytes: usize) -> ApiResult<()> {
        self.set_aside(0, bytes)
    }

    /// What its owner is charged for it.
    fn charged(&self) -> usize {
        self.bytes.max(self.announced)
    }

    fn set_aside(&mut self, bytes: usize, announced: usize) -> ApiResult<()> {
        let mut held = self.bodies.lock();
        let own = held.by_owner.get(&self.owner).copied().unwrap_or(0);
        let announced = self.announced.max(announced);
        let charge = (self.bytes + bytes).max(announced) - self.charged();
        let (most, whose) = match self.owner {
            Owner::Workspace(_) => (OF_A_WORKSPACE, "of the workspace"),
            Owner::Network(_) => (OF_A_NETWORK, "from this address"),
        };
        if own.saturating_add(charge) > most {
            let message = format!(
                "the requests {whose} that are in progress hold {} MiB of bodies; send fewer at once",
                most / MIB
            );
            return Err(ApiError::TooMany(Code::RateLimited, message, 1));
        }
        let of_strangers = match self.owner {
            Owner::Network(_) => shared(self.bytes + bytes) - shared(self.bytes),
            Owner::Workspace(_) => 0,
        };
        if held.all.saturating_add(bytes) > ALL || held.strangers.saturating_add(of_strangers) > STRANGERS {
            return Err(ApiError::Busy("too many large requests are in progress".into()));
        }
        held.all += bytes;
        held.strangers += of_strangers;
        held.by_owner.insert(self.owner, own + charge);
        drop(held);
        self.bytes += bytes;
        self.announced = announced;
        Ok(())
    }

    /// What was read is no longer in memory; more may come.
    pub fn free(&mut self) {
        let charged = self.charged();
        let bytes = std::mem::take(&mut self.bytes);
        (self.announced, self.arrived) = (0, 0);
        let mut held = self.bodies.lock();
        held.all -= bytes;
        if matches!(self.owner, Owner::Network(_)) {
            held.strangers -= shared(bytes);
        }
        if let Some(own) = held.by_owner.get_mut(&self.owner) {
            *own -= charged;
            if *own == 0 {
                held.by_owner.remove(&self.owner);
            }
        }
    }

    /// Keeps it until the request was answered: what was made of the body takes about as much.
    pub fn keep_for(self, request: &HttpRequest) {
        let mut extensions = request.extensions_mut();
        let mut rooms = extensions.remove::<Rooms>().unwrap_or_default();
        rooms.0.push(self);
        extensions.insert(rooms);
    }
}

impl Drop for BodyPermit {
    fn drop(&mut self) {
        self.free();
    }
}

/// Of one request: its body may be read twice.
#[derive(Default)]
struct Rooms(Vec<BodyPermit>);

#[cfg(test)]
mod tests {
    use super::*;
    use uuid::Uuid;

    #[test]
    fn what_is_announced_is_charged_to_its_owner_alone_before_it_comes() {
        let bodies = Arc::<Bodies>::default();
        let announce = |owner| {
            let mut permit = BodyPermit::begin(&bodies, owner)?;
            permit.announce(10 * MIB).map(|()| permit)
        };
        let mut rooms: Vec<_> = (0..6).map(|_| announce(workspace(1)).unwrap()).collect();
        assert!(announce(workspace(1)).is_err(), "70 MiB");
        assert_eq!(bodies.held(), 6 * LEAST, "nothing has come yet");
        assert!(announce(workspace(2)).is_ok());
        rooms[0].take(10 * MIB).unwrap();
        assert_eq!(bodies.held(), 10 * MIB + 5 * LEAST);
        assert!(
            announce(workspace(1)).is_err(),
            "what comes is not charged twice, and not forgotten"
        );
        rooms[0].free();
        assert!(announce(workspace(1)).is_ok());
        drop(rooms);
        assert_eq!((bodies.held(), bodies.lock().by_owner.len()), (0, 0));
    }

    fn workspace(n: u128) -> Owner {
        Owner::Workspace(Uuid::from_u128(n).into())
    }
    fn network(n: u32) -> Owner {
        Owner::Network(std::net::Ipv4Addr::from(n).into())
    }
    /// As a body of a MiB after the other, as long as there is room; all of them are under way.
    fn fill(bodies: &Arc<Bodies>, owner: Owner) -> (Vec<BodyPermit>, ApiError) {
        let mut rooms = Vec::new();
        loop {
            match BodyPermit::begin(bodies, owner).and_then(|mut permit| permit.take(MIB).map(|()| permit)) {
                Ok(permit) => rooms.push(permit),
                Err(error) => return (rooms, error),
            }
        }
    }

    #[test]
    fn each_has_so_much_room_and_all_have_so_much_together() {
        let bodies = Arc::<Bodies>::default();
        let (first, error) = fill(&bodies, workspace(1));
        assert!(first.len() == 64 && matches!(error, ApiError::TooMany(..)), "{error:?}");
        let others: Vec<_> = (2..=4).map(|n| fill(&bodies, workspace(n)).0).collect();
        assert!(others.iter().all(|rooms| rooms.len() == 64));
        assert_eq!(bodies.held(), ALL);
        let (none, error) = fill(&bodies, workspace(5));
        assert!(none.is_empty() && matches!(error, ApiError::Busy(_)), "{error:?}");
        drop(first);
        assert_eq!(fill(&bodies, workspace(5)).0.len(), 64);
        drop(others);
        assert_eq!((bodies.held(), bodies.lock().by_owner.len()), (0, 0));
    }

    #[test]
    fn strangers_leave_room_for_workspaces() {
        let bodies = Arc::<Bodies>::default();
        let rooms: Vec<_> = (0..100).map(|n| fill(&bodies, network(n)).0).collect();
        assert_eq!((rooms[0].len(), bodies.held()), (4, STRANGERS));
        assert_eq!(fill(&bodies, workspace(1)).0.len(), 64);
        drop(rooms);
        let empty: Vec<_> = std::iter::repeat_with(|| BodyPermit::begin(&bodies, network(1)))
            .take(2_000)
            .collect();
        assert_eq!(
            empty.iter().filter(|permit| permit.is_ok()).count(),
            OF_A_NETWORK / LEAST
        );
    }
}
