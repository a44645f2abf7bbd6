//! Where peers connect to, over TCP and TLS. Connections of anybody but a trunk's peer are closed at once.
use super::{dropped, known, stream::Streams};
use crate::{
    switchboard::{moments::until, sources::SourceTable, table::Source},
    trunk::options::SipTls,
};
use rustls::{
    ServerConfig,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
};
use sip::message::Transport;
use std::{
    fs, io,
    net::{SocketAddr, TcpListener},
    path::Path,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant, SystemTime},
};
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;

/// In which a peer has said who it is.
const SECURES_WITHIN: Duration = Duration::from_secs(10);
/// After an error that lasts for as long as there are too many files.
const PAUSE: Duration = Duration::from_millis(50);

pub struct Listener {
    /// There until it is listened on, or closed.
    socket: Mutex<Option<TcpListener>>,
    bound: SocketAddr,
    certificate: Option<Arc<Certificate>>,
}

impl Listener {
    pub fn tcp(bind: SocketAddr) -> io::Result<Self> {
        let socket = TcpListener::bind(bind)?;
        socket.set_nonblocking(true)?;
        Ok(Listener {
            bound: socket.local_addr()?,
            socket: Mutex::new(Some(socket)),
            certificate: None,
        })
    }

    /// Fails with the setting and what to do about it.
    pub fn tls(options: &SipTls) -> Result<Self, String> {
        let certificate = Certificate::load(options.clone())?;
        let listener = Self::tcp(options.bind);
        let listener =
            listener.map_err(|error| format!("sip_tls_bind: cannot listen on {} ({error})", options.bind))?;
        Ok(Listener {
            certificate: Some(Arc::new(certificate)),
            ..listener
        })
    }

    pub fn bound(&self) -> SocketAddr {
        self.bound
    }

    pub fn close(&self) {
        self.take();
    }

    fn take(&self) -> Option<TcpListener> {
        self.socket.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Begins to listen, inside a runtime.
    pub fn listen(&self, sources: SourceTable, streams: Streams) -> io::Result<()> {
        let Some(socket) = self.take() else { return Ok(()) };
        let socket = tokio::net::TcpListener::from_std(socket)?;
        tokio::spawn(accept(socket, sources, streams, self.certificate.clone()));
        Ok(())
    }
}

async fn accept(
    socket: tokio::net::TcpListener,
    sources: SourceTable,
    streams: Streams,
    certificate: Option<Arc<Certificate>>,
) {
    loop {
        let (stream, from) = match socket.accept().await {
            Ok(accepted) => accepted,
            Err(error) => {
                // Of one connection, or there are too many files: the next may be taken again.
                dropped("accept");
                tracing::debug!(%error, "a connection could not be taken");
                until(Some(Instant::now() + PAUSE)).await;
                continue;
            }
        };
        let Some(address) = known(&sources, from) else { continue };
        let transport = match certificate {
            Some(_) => Transport::Tls,
            None => Transport::Tcp,
        };
        let Some(admitted) = streams.admit(Source { address, transport }) else {
            continue;
        };
        let certificate = certificate.clone();
        tokio::spawn(async move {
            let Some(certificate) = certificate else {
                return admitted.carry(stream).await;
            };
            let acceptor = TlsAcceptor::from(certificate.current());
            match timeout(SECURES_WITHIN, acceptor.accept(stream)).await {
                Ok(Ok(stream)) => admitted.carry(stream).await,
                Ok(Err(_)) | Err(_) => dropped("tls"),
            }
        });
    }
}

/// Ours, from files that are read anew when they change.
struct Certificate {
    files: SipTls,
    loaded: Mutex<Loaded>,
}

#[derive(Clone)]
struct Loaded {
    config: Arc<ServerConfig>,
    changed: [Option<SystemTime>; 2],
}

impl Certificate {
    fn load(files: SipTls) -> Result<Self, String> {
        let loaded = Loaded {
            changed: changed(&files),
            config: config(&files)?,
        };
        Ok(Certificate {
            files,
            loaded: Mutex::new(loaded),
        })
    }

    fn current(&self) -> Arc<ServerConfig> {
        let mut loaded = self.loaded.lock().unwrap_or_else(PoisonError::into_inner);
        let now = changed(&self.files);
        if now != loaded.changed {
            // A file that is being written is looked at again when it has changed again.
            loaded.changed = now;
            match config(&self.files) {
                Ok(config) => loaded.config = config,
                Err(why) => tracing::warn!(why, "the new certificate cannot be used; the one before stays"),
            }
        }
        loaded.config.clone()
    }
}

fn changed(files: &SipTls) -> [Option<SystemTime>; 2] {
    let of = |path: &Path| fs::metadata(path).and_then(|file| file.modified()).ok();
    [of(&files.cert), of(&files.key)]
}

fn config(files: &SipTls) -> Result<Arc<ServerConfig>, String> {
    let bad = |setting: &str, path: &Path, why: &dyn std::fmt::Display| {
        format!("{setting}: {} cannot be used ({why}); name a PEM file", path.display())
    };
    let certificates = CertificateDer::pem_file_iter(&files.cert)
        .and_then(|certificates| certificates.collect::<Result<Vec<_>, _>>())
        .map_err(|why| bad("sip_tls_cert", &files.cert, &why))?;
    let key = PrivateKeyDer::from_pem_file(&files.key).map_err(|why| bad("sip_tls_key", &files.key, &why))?;
    let config = ServerConfig::builder()
        .with_no_client_auth()
        .with_single_cert(certificates, key)
        .map_err(|why| bad("sip_tls_key", &files.key, &why))?;
    Ok(Arc::new(config))
}
