//! The API's frame: who may come in, what is refused and how, streams.
mod access;
mod bad_input;
mod console;
mod dashboard;
mod described;
mod erasure;
mod every_route;
mod invited;
mod limits;
mod lists;
mod mcp;
mod members;
mod retention;
mod room_page;
mod strangers;
mod streams;
mod workspace;
