//! Asks a registrar whether it takes us for who we say we are: a REGISTER that names no contact, which asks which bindings there are
//! and changes none. Source: RFC 3261, section 10.2.3.
use super::{
    path::{Path, Pong},
    peering::Peering,
    ping::{Heard, LIMIT, addresses, introduced, nameless, nowhere},
};
use crate::outbound::Outbound;
use entities::boxed;
use rules::delivery::failure::Failure;
use sip::{
    digest::{Authorizer, Credentials},
    ladder::Ladder,
    message::{Method, Name, Response, copy},
};
use std::net::SocketAddr;
use tokio::time::timeout;

/// Answers to challenges, of a proxy and of the registrar behind it, and one for a nonce that had aged.
const MAX_CHALLENGES: usize = 3;

/// Asks with what the trunk proves itself with; 401 and 407 are what was said to that, or to nothing where there is no password.
#[boxed]
pub async fn ask(outbound: &Outbound, peering: &Peering, credentials: Option<Credentials>) -> Heard {
    let mut ladder = Ladder::default();
    let asking = any(outbound, peering, credentials, &mut ladder);
    let outcome = timeout(LIMIT, asking).await.unwrap_or(Err(Failure::Timeout));
    Heard { outcome, ladder }
}

async fn any(
    outbound: &Outbound,
    peering: &Peering,
    credentials: Option<Credentials>,
    ladder: &mut Ladder,
) -> Result<Pong, Failure> {
    let mut last = nowhere();
    for address in addresses(outbound, peering).await? {
        match one(outbound, peering, address, credentials.clone(), ladder).await {
            Err(Failure::Connect(why)) => last = Failure::Connect(why),
            outcome => return outcome,
        }
    }
    Err(last)
}

async fn one(
    outbound: &Outbound,
    peering: &Peering,
    address: SocketAddr,
    credentials: Option<Credentials>,
    ladder: &mut Ladder,
) -> Result<Pong, Failure> {
    let mut path = Path::open(outbound, peering, address).await?;
    let outcome = converse(&mut path, peering, credentials).await;
    *ladder = path.ladder;
    outcome
}

async fn converse(path: &mut Path, peering: &Peering, credentials: Option<Credentials>) -> Result<Pong, Failure> {
    let mut sender = introduced(peering, path)?;
    let account = peering.account().map_err(nameless)?;
    let secret: [u8; 32] = rand::random();
    let mut authorizer = credentials.map(|credentials| Authorizer::new(credentials, &secret, b""));
    let aor = &account.address_of_record;
    let mut request = || {
        let mut request = sender.request(Method::REGISTER, &account.registrar, aor, aor, &account.route);
        request.headers.remove(&Name::CONTACT);
        request
    };
    let mut asked = request();
    let mut challenges = 0;
    loop {
        let (response, pong) = path.ask(asked.clone(), &mut None).await?;
        let Some(authorizer) = authorizer.as_mut().filter(|_| is_challenge(&response)) else {
            return Ok(pong);
        };
        challenges += 1;
        let mut again = request();
        // By what was proved before it is known whether that was refused.
        for name in [Name::AUTHORIZATION, Name::PROXY_AUTHORIZATION] {
            copy(&asked.headers, &mut again.headers, &name);
        }
        if challenges > MAX_CHALLENGES || authorizer.authorize(&mut again, Some(&response)).is_err() {
            return Ok(pong);
        }
        asked = again;
    }
}

fn is_challenge(response: &Response) -> bool {
    matches!(response.code, 401 | 407)
}
