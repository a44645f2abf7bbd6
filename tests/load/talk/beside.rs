//! Another workspace, in whose rooms everybody talks and cuts in on the agent.
use crate::{
    guests::{self, Guest},
    rooms,
    service::{Api, client},
};
use media::webrtc::{Codec, peer::Peer};
use serde_json::json;
use std::time::Duration;

pub struct Crowd {
    guests: Vec<Guest>,
}

impl Crowd {
    /// One after the other, so that their joining is over when the crowd is there.
    pub async fn join(api: &Api, count: usize) -> Self {
        api.patch("/v1/concurrency", json!({ "limit": count })).await;
        let agent = rooms::agent(api).await;
        let client = client();
        let mut guests = Vec::new();
        for room in rooms::rooms(api, &agent, count).await {
            let (peer, offer) = Peer::offer(Codec::Opus);
            guests.push(Guest::join(&client, room, peer, offer).await);
        }
        Crowd { guests }
    }

    /// Returns after so long.
    pub async fn talk(&self, duration: Duration) {
        guests::talk(&self.guests, duration, || {}).await;
    }

    pub async fn leave(&self) {
        guests::leave(&self.guests).await;
    }
}
