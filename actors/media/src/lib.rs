//! Sound in browsers: WebRTC, who speaks, and the bridge between a connection and a talk.
pub mod ear;
pub mod heard;
pub mod webrtc;
pub mod wire;
