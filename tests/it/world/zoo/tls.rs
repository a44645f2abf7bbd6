//! The animals behind TLS, and the authority that signs for them.
use super::{Log, Visitor};
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair, KeyUsagePurpose, date_time_ymd};
use rustls::{
    ServerConfig,
    crypto::aws_lc_rs,
    pki_types::{CertificateDer, PrivateKeyDer},
};
use std::{
    io,
    sync::{Arc, LazyLock},
};
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;

/// What is wrong with a TLS server that is called as `localhost`.
#[derive(Clone, Copy, Debug)]
pub enum TlsFault {
    /// Nothing.
    Good,
    /// Nothing; each connection is good for one request.
    GoodOnce,
    WrongName,
    Expired,
    /// Signed by itself, not by the authority.
    SelfSigned,
    /// Speaks HTTP without TLS.
    PlainHttp,
    /// Never answers the ClientHello.
    HandshakeHang,
    /// Closes after the ClientHello.
    HandshakeClose,
}

/// A certificate authority.
pub struct Authority {
    pub pem: String,
    issuer: Issuer<'static, KeyPair>,
}

impl Authority {
    pub fn generate() -> Authority {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign];
        let key = KeyPair::generate().unwrap();
        let pem = params.self_signed(&key).unwrap().pem();
        Authority {
            pem,
            issuer: Issuer::new(params, key),
        }
    }

    /// A certificate for that name or address, and its key, as PEM.
    pub fn certify(&self, name: &str) -> (String, String) {
        let params = CertificateParams::new(vec![name.to_owned()]).unwrap();
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &self.issuer).unwrap();
        (certificate.pem(), key.serialize_pem())
    }
}

/// The one that signs for the zoo, made anew in each run.
pub fn authority() -> &'static Authority {
    static AUTHORITY: LazyLock<Authority> = LazyLock::new(Authority::generate);
    &AUTHORITY
}

pub(super) async fn receive(fault: TlsFault, mut visitor: Visitor<TcpStream>) -> io::Result<()> {
    match fault {
        TlsFault::PlainHttp => {
            visitor.fill().await?;
            visitor.send("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok").await?;
            visitor.until_left().await
        }
        TlsFault::HandshakeHang => visitor.until_left().await,
        TlsFault::HandshakeClose => visitor.fill().await,
        TlsFault::Good | TlsFault::WrongName | TlsFault::Expired | TlsFault::SelfSigned => {
            let mut visitor = handshake(fault, visitor).await?;
            visitor.request().await?;
            visitor.answer_all(200, &[]).await
        }
        TlsFault::GoodOnce => {
            let mut visitor = handshake(fault, visitor).await?;
            visitor.request().await?;
            visitor.answer_all(200, &[("connection", "close".into())]).await
        }
    }
}

async fn handshake(
    fault: TlsFault,
    Visitor { stream, unread, log }: Visitor<TcpStream>,
) -> io::Result<Visitor<tokio_rustls::server::TlsStream<TcpStream>>> {
    let stream = TlsAcceptor::from(config(fault)).accept(stream).await?;
    let log: Arc<Log> = log;
    Ok(Visitor { stream, unread, log })
}

/// How a TLS server that is called as `localhost` presents itself.
pub fn config(fault: TlsFault) -> Arc<ServerConfig> {
    let name = match fault {
        TlsFault::WrongName => "elsewhere.example",
        _ => "localhost",
    };
    let mut params = CertificateParams::new(vec![name.to_owned()]).unwrap();
    if let TlsFault::Expired = fault {
        params.not_before = date_time_ymd(2019, 1, 1);
        params.not_after = date_time_ymd(2020, 1, 1);
    }
    let key = KeyPair::generate().unwrap();
    let certificate = match fault {
        TlsFault::SelfSigned => params.self_signed(&key),
        _ => params.signed_by(&key, &authority().issuer),
    };
    let chain: Vec<CertificateDer<'static>> = vec![certificate.unwrap().into()];
    // Its own provider: a server that starts before the process has chosen one must not choose.
    let config = ServerConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(chain, PrivateKeyDer::Pkcs8(key.serialize_der().into()))
        .unwrap();
    Arc::new(config)
}
