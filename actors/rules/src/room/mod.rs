//! Rooms: a person opens a link in a browser and talks with the agent.
pub mod machine;
mod row;
