//! Asks a SIP peer whether it is there: one OPTIONS request, over the trunk's own transport. Any answer in SIP means yes.
//!
//! The peer is named by a user, so that it is looked up and checked as a webhook's receiver is, and what it sends is bounded
//! in bytes, reads and time.
use super::{
    path::Path,
    peering::{Mute, Peering},
    resolve::resolve,
};
use crate::outbound::Outbound;
use entities::boxed;
use rules::delivery::failure::Failure;
use sip::{
    ladder::Ladder,
    message::{Method, Name},
    out_of_dialog::Sender,
};
use std::{net::SocketAddr, time::Duration};
use tokio::time::timeout;
use uuid::Uuid;

pub use super::path::Pong;

/// All of it, from the look-up to the answer.
pub const LIMIT: Duration = Duration::from_secs(5);
/// Addresses of one name that are tried.
const MAX_ADDRESSES: usize = 4;

/// What became of it, and what was said.
#[derive(Clone, Debug)]
pub struct Heard {
    pub outcome: Result<Pong, Failure>,
    pub ladder: Ladder,
}

/// Sends an OPTIONS request to a trunk's peer and waits for its answer, 5 seconds at most.
#[boxed]
pub async fn ping(outbound: &Outbound, peering: &Peering) -> Heard {
    // A peer that says `100 Trying` and nothing more is there, too.
    let (mut provisional, mut ladder) = (None, Ladder::default());
    let asking = options(outbound, peering, &mut provisional, &mut ladder);
    let outcome = timeout(LIMIT, asking).await;
    let outcome = match (outcome, provisional) {
        (Ok(Ok(pong)), _) | (Ok(Err(_)) | Err(_), Some(pong)) => Ok(pong),
        (Ok(Err(failure)), None) => Err(failure),
        (Err(_), None) => Err(Failure::Timeout),
    };
    Heard { outcome, ladder }
}

/// Why a peer did not answer, for people.
pub fn words(failure: &Failure) -> String {
    match failure {
        Failure::Timeout => format!("no answer in SIP within {} seconds", LIMIT.as_secs()),
        Failure::BlockedTarget(why)
        | Failure::Dns(why)
        | Failure::Connect(why)
        | Failure::Tls(why)
        | Failure::BadAnswer(why) => why.clone(),
    }
}

async fn options(
    outbound: &Outbound,
    peering: &Peering,
    provisional: &mut Option<Pong>,
    ladder: &mut Ladder,
) -> Result<Pong, Failure> {
    let mut last = nowhere();
    for address in addresses(outbound, peering).await? {
        match over(outbound, peering, address, provisional, ladder).await {
            // Nobody listens there: the network said so.
            Err(Failure::Connect(why)) => last = Failure::Connect(why),
            outcome => return outcome,
        }
    }
    Err(last)
}

async fn over(
    outbound: &Outbound,
    peering: &Peering,
    address: SocketAddr,
    provisional: &mut Option<Pong>,
    ladder: &mut Ladder,
) -> Result<Pong, Failure> {
    let mut path = Path::open(outbound, peering, address).await?;
    let mut sender = introduced(peering, &path)?;
    let peer = peering.asked(LIMIT).map_err(nameless)?;
    let to = format!("<sip:{}>", peering.host);
    let mut request = sender.request(Method::OPTIONS, &peer.uri, &peer.from, &to, &peer.route);
    request.headers.insert(Name::ACCEPT, "application/sdp");
    let outcome = path.ask(request, provisional).await;
    *ladder = path.ladder;
    Ok(outcome?.1)
}

/// The first of them.
pub(super) async fn addresses(outbound: &Outbound, peering: &Peering) -> Result<Vec<SocketAddr>, Failure> {
    let found = resolve(outbound, peering.next_hop(), peering.transport).await?;
    let mut addresses = found.addresses;
    addresses.truncate(MAX_ADDRESSES);
    Ok(addresses)
}

/// Whoever speaks over this path, once.
pub(super) fn introduced(peering: &Peering, path: &Path) -> Result<Sender, Failure> {
    let secret: [u8; 32] = rand::random();
    let id = Uuid::from_u128(rand::random());
    let sent_by = path.local.to_string();
    peering.sender(&sent_by, &secret, id).map_err(nameless)
}

/// Trunks hold names and addresses that have been checked, so that this is for completeness.
pub(super) fn nameless(why: Mute) -> Failure {
    Failure::Dns(why.to_string())
}

pub(super) fn nowhere() -> Failure {
    Failure::Dns("the host has no address".into())
}
