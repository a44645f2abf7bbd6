//! One address for a provider that speaks HTTP and one that speaks websockets, as providers have it.
use super::local_listener::listen;
use std::net::SocketAddr;
use tokio::{io::copy_bidirectional, net::TcpStream, task::JoinSet};

/// Bytes in which the path of a request ends.
const HEAD: usize = 512;

/// Dropping it ends all its connections.
pub struct Front {
    pub url: String,
    _tasks: JoinSet<()>,
}

impl Front {
    /// Whoever names a path with `websockets_at` gets to the second.
    pub fn before(http: &str, websockets: &str, websockets_at: &'static str) -> Self {
        let (http, websockets) = (address(http), address(websockets));
        let (address, tasks) = listen(move |client| serve(client, http, websockets, websockets_at));
        Front {
            url: format!("http://{address}"),
            _tasks: tasks,
        }
    }
}

fn address(url: &str) -> SocketAddr {
    let (_, address) = url.split_once("://").unwrap();
    address.trim_end_matches('/').parse().unwrap()
}

async fn serve(mut client: TcpStream, http: SocketAddr, websockets: SocketAddr, websockets_at: &str) {
    let mut head = [0; HEAD];
    let Ok(read) = client.peek(&mut head).await else { return };
    let line = String::from_utf8_lossy(&head[..read]);
    let to = match line.lines().next() {
        Some(line) if line.contains(websockets_at) => websockets,
        _ => http,
    };
    if let Ok(mut server) = TcpStream::connect(to).await {
        // Either may go away.
        let _ = copy_bidirectional(&mut client, &mut server).await;
    }
}
