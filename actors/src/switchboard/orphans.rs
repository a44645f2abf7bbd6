//! Calls that a process left behind when it was killed: the next one ends them, by their rows, or by an answer alone.
//!
//! Identifiers are derived from the database's secret, the session and the leg, so its CANCEL, ACK and BYE are those that the
//! killed process would have sent.
use super::{
    accounts::account,
    hops::Hops,
    line::Target,
    moments::until,
    phones::{OnTheWire, Switchboard},
    signalling::sender,
    sockets::dropped,
    table::{Arrival, Mailbox, Source},
};
use crate::deps::Deps;
use adapters::trunk::on_the_wire;
use entities::{
    Result, boxed,
    ids::{SipLegId, TenantId},
    sip_leg::{self, Model, Phase},
};
use rules::commit::Commit;
use sip::{
    call::CallIdentity,
    message::{Fields, Message, Response, address::read_uri},
    orphan::{Left, Orphan, OrphanOutput, OrphanRow, TurnAway, ack_and_bye},
    transaction::{Client, ClientOutput, GIVE_UP},
};
use std::{net::SocketAddr, time::Instant};

/// Rows that are read at once.
const AT_ONCE: u64 = 500;
/// The user in our Contact, where no number of ours is known.
const USER: &str = "callboard";

/// Begins to end them all, or those of these workspaces; that goes on by itself.
#[boxed]
pub async fn sweep(deps: &Deps, switchboard: &Switchboard, of: Option<&[TenantId]>) -> Result<()> {
    let mut after: Option<SipLegId> = None;
    loop {
        let rows = sip_leg::all_open(&deps.db.read, of, after, AT_ONCE).await?;
        let Some(last) = rows.last() else { return Ok(()) };
        after = Some(last.id);
        tracing::info!(
            legs = rows.len(),
            "calls that were on the wire when the service ended are hung up"
        );
        for row in rows {
            begin(deps, switchboard, row);
        }
    }
}

/// Begins to end one; that goes on by itself. Whose Call-ID somebody speaks under already is left to him.
pub fn begin(deps: &Deps, switchboard: &Switchboard, row: Model) {
    let Ok(mailbox) = switchboard.line.register(&row.call_id) else {
        return;
    };
    let (its, switchboard) = (deps.clone(), switchboard.clone());
    deps.runtime.spawn(async move {
        let (id, tenant) = (row.id, row.tenant_id);
        // An INVITE that came in and was not answered: its caller repeats it, and is told then; or it gives up.
        let is_unanswered = switchboard.identity.is_ours(&row.call_id).is_none() && row.remote_tag.is_none();
        match is_unanswered {
            true => {
                drop(mailbox);
                until(Some(Instant::now() + GIVE_UP)).await;
            }
            false => end(&its, &switchboard, row, mailbox).await,
        }
        let mut commit = Commit::default();
        commit.changes.sip_legs_gone.push(id);
        if let Err(error) = its.writer.commit(tenant.into(), commit).await {
            tracing::warn!(%error, "the row of a leg that is over stays until the next start");
        }
    });
}

async fn end(deps: &Deps, switchboard: &Switchboard, row: Model, mut mailbox: Mailbox) {
    let account = account(deps, switchboard, row.tenant_id, row.trunk_id).await.ok();
    let name = account.as_ref().map(|account| {
        let definition = &account.row.definition;
        definition.outbound_proxy.as_ref().unwrap_or(&definition.host).host()
    });
    let Some((orphan, target)) = orphan(switchboard, &row, name) else {
        return tracing::error!(leg = %row.id, "the row of a leg cannot be read: its peer hangs up by itself");
    };
    let _on_the_wire = OnTheWire::new(switchboard);
    let _spoken_with = switchboard.line.sources().speak_with(target.address.ip());
    let port = target.address.port();
    let mut hops = Hops::new(switchboard, row.trunk_id, port, target);
    let mut orphan = orphan;
    while !orphan.is_over() {
        while let Some(output) = orphan.poll() {
            match output {
                OrphanOutput::Send { bytes, hop } => {
                    let target = hops.target_of(&deps.outbound, hop).await;
                    if switchboard.line.send(bytes, &target, &mailbox).is_err() {
                        orphan.transport_failed(Instant::now());
                    }
                }
                OrphanOutput::Challenged { mut request, response } => {
                    let authorized = account
                        .as_ref()
                        .is_some_and(|account| account.authorize(&mut request, Some(response.as_ref())).is_ok());
                    orphan.authorized(authorized.then_some(*request), Instant::now());
                }
                OrphanOutput::Gone => return,
            }
        }
        let deadline = orphan.deadline();
        tokio::select! {
            arrival = mailbox.arrived() => match arrival {
                Arrival::Message { source, .. } if !hops.is_heard_of_a_left_leg(source.address.ip()) => dropped("not_its_call"),
                Arrival::Message { message: Message::Response(response), .. } => orphan.receive(&response, Instant::now()),
                // Their own BYE needs no answer of ours: it is on its way already.
                Arrival::Message { message: Message::Request(_), .. } => {}
                Arrival::Undelivered => orphan.transport_failed(Instant::now()),
            },
            () = until(deadline) => orphan.tick(Instant::now()),
        }
    }
}

/// `name`: what the peer's certificate has to name. `None`: what is stored is not what was stored.
fn orphan(switchboard: &Switchboard, row: &Model, name: Option<String>) -> Option<(Orphan, Target)> {
    let address: SocketAddr = row.target.parse().ok()?;
    let target = Target {
        address,
        transport: on_the_wire(row.transport),
        name: name.unwrap_or_else(|| address.ip().to_string()).into(),
    };
    let sent_by = switchboard.line.sent_by(target.transport)?;
    let leg = u32::try_from(row.leg).ok()?;
    let routes = row.route_set.0.clone();
    let (left, route) = match (row.phase, &row.remote_tag) {
        (Phase::Inviting, _) | (Phase::Ending, None) => (Left::Inviting, routes),
        (Phase::Confirmed | Phase::Ending, remote_tag) => {
            let confirmed = Left::Confirmed {
                remote_tag: remote_tag.clone().unwrap_or_default(),
                route_set: routes,
                cseq: u32::try_from(row.cseq).ok()?,
            };
            (confirmed, Vec::new())
        }
    };
    let row = OrphanRow {
        identity: CallIdentity::new(switchboard.identity.clone(), row.session_id.0, leg),
        sender: sender(sent_by, &target, USER).ok()?,
        call_id: row.call_id.clone(),
        target: read_uri(&row.remote_target)?,
        route,
        left,
    };
    Some((Orphan::new(row, Instant::now()), target))
}

/// A 2xx to an INVITE of ours that nobody remembers: it is acknowledged, and hung up.
pub fn turn_away(deps: &Deps, switchboard: &Switchboard, response: Response, source: Source) {
    let call_id = response.call_id().to_owned();
    let Some((session, leg)) = switchboard.identity.is_ours(&call_id) else {
        return;
    };
    let target = Target {
        address: source.address,
        transport: source.transport,
        name: source.address.ip().to_string().into(),
    };
    let identity = CallIdentity::new(switchboard.identity.clone(), session, leg);
    let sender = switchboard.line.sent_by(target.transport);
    let sender = sender.and_then(|sent_by| sender_of(sent_by, &target));
    let Some(away) = sender.and_then(|sender| ack_and_bye(&response, &identity, &sender)) else {
        return;
    };
    // One at a time: a repeat meanwhile comes to its mailbox.
    let Ok(mailbox) = switchboard.line.register(&call_id) else {
        return;
    };
    let switchboard = switchboard.clone();
    deps.runtime
        .spawn(async move { hang_up(&switchboard, away, target, mailbox).await });
}

fn sender_of(sent_by: &str, target: &Target) -> Option<sip::dialog::Sender> {
    sender(sent_by, target, USER).ok()
}

async fn hang_up(switchboard: &Switchboard, away: TurnAway, target: Target, mut mailbox: Mailbox) {
    let TurnAway { ack, bye, .. } = away;
    let _on_the_wire = OnTheWire::new(switchboard);
    let _spoken_with = switchboard.line.sources().speak_with(target.address.ip());
    let send = |bytes, mailbox: &Mailbox| switchboard.line.send(bytes, &target, mailbox).is_ok();
    send(ack.clone(), &mailbox);
    let mut client = Client::new(bye, target.transport, Instant::now());
    while !client.is_over() {
        while let Some(output) = client.poll() {
            if let ClientOutput::Send(bytes) = output
                && !send(bytes, &mailbox)
            {
                client.failed(Instant::now());
            }
        }
        let deadline = client.deadline();
        tokio::select! {
            arrival = mailbox.arrived() => match arrival {
                Arrival::Message { message: Message::Response(response), .. } => {
                    let is_repeat = response.is_success() && response.cseq().1 == sip::message::Method::INVITE;
                    match is_repeat {
                        true => {
                            send(ack.clone(), &mailbox);
                        }
                        false => {
                            client.receive(&response, Instant::now());
                        }
                    }
                }
                Arrival::Message { message: Message::Request(_), .. } => {}
                Arrival::Undelivered => client.failed(Instant::now()),
            },
            () = until(deadline) => client.tick(Instant::now()),
        }
    }
}
