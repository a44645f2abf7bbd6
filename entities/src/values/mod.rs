//! Values that cannot be wrong once they exist: parsing is the only way in.
mod cents;
mod countries;
mod e164;
mod env;
mod host;
mod moment;
mod network;
mod password;
mod place;
mod role;
mod scope;
mod text;
mod times;
mod trace_context;
mod webhook_url;
mod week;
mod zone;

/// Why a text is not the value it should be.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct BadValue(pub String);

pub use cents::Cents;
pub use countries::{Countries, Prefixes};
pub use e164::{Country, E164};
pub use env::Env;
pub use host::{Domain, SipHost};
pub use moment::Moment;
pub use network::Network;
pub use password::Password;
pub use place::Place;
pub use role::Role;
pub use scope::{Scope, Scopes};
pub use text::{Bounded, Metadata, Text, Variables};
pub use times::Times;
pub use trace_context::TraceContext;
pub use webhook_url::WebhookUrl;
pub use week::{Day, TimeOfDay};
pub use zone::Zone;
