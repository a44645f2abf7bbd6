//! What the local servers have in common that speak a protocol with their own few lines: where they are, and whom they serve.
use std::net::SocketAddr;
use tokio::{
    net::{TcpListener, TcpStream},
    task::JoinSet,
};

/// Serves everybody who connects, at an address of this machine that is answered. Dropping the set ends all of them.
pub fn listen<F>(serve: impl Fn(TcpStream) -> F + Send + 'static) -> (SocketAddr, JoinSet<()>)
where
    F: Future<Output = ()> + Send + 'static,
{
    let listener = std::net::TcpListener::bind(("127.0.0.1", 0)).unwrap();
    listener.set_nonblocking(true).unwrap();
    let listener = TcpListener::from_std(listener).unwrap();
    let address = listener.local_addr().unwrap();
    let mut tasks = JoinSet::new();
    tasks.spawn(async move {
        let mut connections = JoinSet::new();
        while let Ok((stream, _)) = listener.accept().await {
            connections.spawn(serve(stream));
        }
    });
    (address, tasks)
}
