//! Sound in browsers: WebRTC, who speaks, and the bridge between a connection and a talk.
pub mod bridge;
pub mod feed;
pub mod mic;
pub mod playout;
pub mod tap;
pub mod vad;
pub mod webrtc;
