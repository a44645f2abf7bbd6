//! SIP trunks: where the peer is, whether it is there, and what it says to whom we say we are.
pub mod advice;
pub mod names;
mod path;
pub mod peering;
pub mod ping;
pub mod registrar;
pub mod resolve;

use entities::sip_trunk::Transport;

pub fn on_the_wire(transport: Transport) -> sip::message::Transport {
    match transport {
        Transport::Udp => sip::message::Transport::Udp,
        Transport::Tcp => sip::message::Transport::Tcp,
        Transport::Tls => sip::message::Transport::Tls,
    }
}

/// What a URI says of it, behind the host.
pub fn uri_parameter(transport: Transport) -> &'static str {
    match transport {
        Transport::Udp => "",
        Transport::Tcp => ";transport=tcp",
        Transport::Tls => ";transport=tls",
    }
}
