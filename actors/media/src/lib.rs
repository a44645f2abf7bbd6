//! Sound in browsers and on telephones: WebRTC, RTP, who speaks, and the bridge between a connection and a talk.
pub mod answering;
pub mod bridge;
pub mod feed;
mod goertzel;
pub mod mic;
pub mod playout;
pub mod rtp;
pub mod tap;
pub mod threads;
pub mod tones;
pub mod vad;
pub mod webrtc;
