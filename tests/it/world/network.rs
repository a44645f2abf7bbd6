//! The network between a process and its database server: while it is cut nothing arrives on either side, and nobody is told so.
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    sync::watch,
};

pub struct Network {
    /// Where to reach the database through it.
    pub url: String,
    whole: watch::Sender<bool>,
}

impl Network {
    /// `url` is a `postgres://` URL with a port.
    pub fn before(url: &str) -> Self {
        let mut through: url::Url = url.parse().unwrap();
        let server = (through.host_str().unwrap().to_owned(), through.port().unwrap());
        let (whole, is_whole) = watch::channel(true);
        let (told, port) = std::sync::mpsc::channel();
        // On a thread of its own: it carries bytes while a test waits for a process.
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .unwrap();
            runtime.block_on(async move {
                let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
                told.send(listener.local_addr().unwrap().port()).unwrap();
                let mut ended = is_whole.clone();
                tokio::select! {
                    () = accept(listener, server, is_whole) => {}
                    // The test has ended.
                    () = async { while ended.changed().await.is_ok() {} } => {}
                }
            });
        });
        through.set_port(Some(port.recv().unwrap())).unwrap();
        Network {
            url: through.to_string(),
            whole,
        }
    }

    pub fn cut(&self) {
        self.whole.send_replace(false);
    }

    /// What was on its way arrives now.
    pub fn mend(&self) {
        self.whole.send_replace(true);
    }
}

async fn accept(listener: TcpListener, server: (String, u16), is_whole: watch::Receiver<bool>) {
    while let Ok((client, _)) = listener.accept().await {
        let (server, is_whole) = (server.clone(), is_whole.clone());
        tokio::spawn(async move {
            passes(&mut is_whole.clone()).await;
            let Ok(server) = TcpStream::connect(&server).await else {
                return;
            };
            let ((from_client, to_client), (from_server, to_server)) = (client.into_split(), server.into_split());
            tokio::spawn(pump(from_client, to_server, is_whole.clone()));
            tokio::spawn(pump(from_server, to_client, is_whole));
        });
    }
}

async fn passes(whole: &mut watch::Receiver<bool>) {
    // The test has ended.
    let _ = whole.wait_for(|whole| *whole).await;
}

async fn pump(
    mut from: impl AsyncReadExt + Unpin,
    mut to: impl AsyncWriteExt + Unpin,
    mut whole: watch::Receiver<bool>,
) {
    let mut bytes = vec![0; 64 * 1024];
    loop {
        let Ok(count @ 1..) = from.read(&mut bytes).await else {
            return;
        };
        passes(&mut whole).await;
        if to.write_all(&bytes[..count]).await.is_err() {
            return;
        }
    }
}
