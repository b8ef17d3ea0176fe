//! Servers for the tests.

use std::{convert::Infallible, sync::Arc};

use agent_core::Result;
use agent_llm::{HttpTransport, HttpTransportBuilder, Transport};
use bytes::Bytes;
use futures::TryStreamExt;
use http::Request;
use rustls::{
    RootCertStore, ServerConfig,
    pki_types::{CertificateDer, PrivatePkcs8KeyDer},
    server::WebPkiClientVerifier,
};
use tokio::{
    io::{AsyncRead, AsyncReadExt},
    net::{TcpListener, TcpStream},
};
use tokio_rustls::{TlsAcceptor, server::TlsStream};

/// A certificate and its key.
pub(crate) struct Identity(pub(crate) rcgen::CertifiedKey<rcgen::KeyPair>);

impl Identity {
    pub(crate) fn of(name: &str) -> Self {
        Self(rcgen::generate_simple_self_signed([name.to_owned()]).expect("a certificate"))
    }

    /// A certificate that expired in 2001.
    pub(crate) fn expired(name: &str) -> Self {
        let mut params = rcgen::CertificateParams::new([name.to_owned()]).expect("a name");
        params.not_after = rcgen::date_time_ymd(2001, 1, 1);
        let signing_key = rcgen::KeyPair::generate().expect("a key");
        let cert = params.self_signed(&signing_key).expect("a certificate");
        Self(rcgen::CertifiedKey { cert, signing_key })
    }

    fn der(&self) -> CertificateDer<'static> {
        self.0.cert.der().clone()
    }
}

/// A TLS server with its own certificate.
pub(crate) struct Server {
    listener: TcpListener,
    acceptor: TlsAcceptor,
    pub(crate) identity: Identity,
}

impl Server {
    pub(crate) async fn start() -> Self {
        Self::with(None, &[]).await
    }

    /// A server with an expired certificate.
    pub(crate) async fn expired() -> Self {
        Self::of(Identity::expired("localhost"), None, &[]).await
    }

    /// Offers these protocols; requests `client`'s certificate.
    pub(crate) async fn with(client: Option<&Identity>, protocols: &[&str]) -> Self {
        Self::of(Identity::of("localhost"), client, protocols).await
    }

    async fn of(identity: Identity, client: Option<&Identity>, protocols: &[&str]) -> Self {
        let key = PrivatePkcs8KeyDer::from(identity.0.signing_key.serialize_der()).into();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ServerConfig::builder_with_provider(provider.clone()).with_safe_default_protocol_versions();
        let config = config.expect("versions");
        let config = match client {
            None => config.with_no_client_auth(),
            Some(client) => {
                let mut roots = RootCertStore::empty();
                roots.add(client.der()).expect("a root");
                let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider).build();
                config.with_client_cert_verifier(verifier.expect("a verifier"))
            }
        };
        let mut config = config.with_single_cert(vec![identity.der()], key).expect("a pair");
        config.alpn_protocols = protocols.iter().map(|name| name.as_bytes().to_vec()).collect();
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        Self { listener, acceptor: Arc::new(config).into(), identity }
    }

    pub(crate) fn port(&self) -> u16 {
        self.listener.local_addr().expect("an address").port()
    }

    /// Accepts the next connection; an error if the client rejected it.
    pub(crate) async fn accept(&self) -> std::io::Result<TlsStream<TcpStream>> {
        self.acceptor.accept(self.listener.accept().await?.0).await
    }

    /// Closes the next connection at once.
    pub(crate) async fn refuse(&self) {
        drop(self.listener.accept().await);
    }

    /// Settings of a transport that trusts only this server.
    pub(crate) fn trusted(&self) -> HttpTransportBuilder {
        HttpTransport::builder().no_proxy().no_system_roots().add_roots(self.identity.0.cert.pem())
    }

    /// Sends `body` to this server and returns the body of the answer.
    pub(crate) async fn ask(&self, transport: &HttpTransport, body: impl Into<Bytes>) -> Result<Vec<u8>> {
        ask(transport, &format!("https://localhost:{}/v1", self.port()), body).await
    }
}

/// Sends `body` to `url` and returns the body of the answer.
pub(crate) async fn ask(transport: &HttpTransport, url: &str, body: impl Into<Bytes>) -> Result<Vec<u8>> {
    let request = Request::post(url).body(body.into()).expect("a request");
    let pieces: Vec<Bytes> = transport.send(request).await?.into_body().try_collect().await?;
    Ok(pieces.concat())
}

/// Reads a request and returns its head and its body.
pub(crate) async fn read_request(stream: &mut (impl AsyncRead + Unpin)) -> (String, Vec<u8>) {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await.expect("a head"));
    }
    let head = String::from_utf8(head).expect("text").to_lowercase();
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
    let mut body = vec![0; length.map_or(0, |length| length.parse().expect("a number"))];
    stream.read_exact(&mut body).await.expect("a body");
    (head, body)
}

/// Answers each connection with the result of `answer` for its number; returns the URL.
pub(crate) async fn answering(answer: impl Fn(usize) -> Vec<u8> + Send + 'static) -> String {
    use tokio::io::AsyncWriteExt;
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let url = format!("http://{}/v1", listener.local_addr().expect("an address"));
    tokio::spawn(async move {
        for number in 0.. {
            let (mut stream, _) = listener.accept().await.expect("a client");
            let answer = answer(number);
            tokio::spawn(async move {
                read_request(&mut stream).await;
                let _ = stream.write_all(&answer).await;
                let _ = stream.read_u8().await; // until the client disconnects
            });
        }
    });
    url
}

/// Sends `answer` on one connection, and closes it; returns the URL.
pub(crate) async fn answering_once(answer: Vec<u8>) -> String {
    use tokio::io::AsyncWriteExt;
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let url = format!("http://{}/v1", listener.local_addr().expect("an address"));
    tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.expect("a client");
        read_request(&mut stream).await;
        stream.write_all(&answer).await.expect("writes");
    });
    url
}

pub(crate) type Never = Infallible;
