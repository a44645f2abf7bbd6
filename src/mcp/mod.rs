//! The Model Context Protocol: what an assistant may look up here, and how it asks.
//!
//! `message` reads JSON-RPC, `server` answers its methods, `tools` is the table of what can be asked for. Each tool is one or two
//! requests of the public API with the caller's own key (`api`), so that scopes, rates and workspaces are the API's; `shown` makes
//! an answer small enough for a model's context. No tool dials, sends, changes or deletes: an assistant reads what strangers have
//! said, and may be talked into anything by it.
//!
//! Nothing here knows how messages come in: that is `cli/mcp/` (stdio) and `http/mcp.rs` (streamable HTTP).
pub mod api;
pub mod arguments;
pub mod cut;
pub mod message;
pub mod server;
pub mod shown;
pub mod tool;
pub mod tools;
pub mod version;
