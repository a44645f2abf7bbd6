//! The other nodes, as requests are handed on to them.
use actix_web::web::Bytes;
use http_body_util::{Either, Full, StreamBody};
use hyper::body::Frame;
use hyper_util::{
    client::legacy::{Client, ResponseFuture, connect::HttpConnector},
    rt::TokioExecutor,
};
use std::{io, time::Duration};
use tokio_stream::wrappers::ReceiverStream;

const CONNECT: Duration = Duration::from_secs(1);
/// Connections to one node that nobody uses, and how long they are kept.
const IDLE: usize = 32;
const IDLE_FOR: Duration = Duration::from_secs(30);

pub type Piece = Result<Frame<Bytes>, io::Error>;
pub type Carried = Either<Full<Bytes>, StreamBody<ReceiverStream<Piece>>>;

/// The other nodes.
pub struct Peers(Client<HttpConnector, Carried>);

impl Default for Peers {
    fn default() -> Self {
        let mut connector = HttpConnector::new();
        connector.set_connect_timeout(Some(CONNECT));
        connector.set_nodelay(true);
        let mut client = Client::builder(TokioExecutor::new());
        client.pool_max_idle_per_host(IDLE).pool_idle_timeout(IDLE_FOR);
        Peers(client.build(connector))
    }
}

impl Peers {
    pub fn request(&self, request: http::Request<Carried>) -> ResponseFuture {
        self.0.request(request)
    }
}
