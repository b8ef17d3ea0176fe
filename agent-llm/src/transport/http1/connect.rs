//! Reaching servers.

use std::{io, sync::Arc, time::Duration};

use agent_core::{Error, Result};
use http::uri::Scheme;
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder, builderstates::WantsSchemes};
use hyper_util::{client::legacy::connect::HttpConnector, rt::TokioIo};
use tokio::sync::OnceCell;
use tower::{BoxError, ServiceExt};

use super::{broken, connection::Connection, origin::Origin, stream::Stream};

/// Longest time to reach the server.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(15);

/// Opens connections, with TLS or without.
pub(super) struct Connector {
    plain: HttpConnector,
    tls: OnceCell<HttpsConnector<HttpConnector>>,
}

impl Connector {
    pub(super) fn new() -> Self {
        Self { plain: connector(), tls: OnceCell::new() }
    }

    /// True if certificates were read.
    pub(super) fn is_ready_for_tls(&self) -> bool {
        self.tls.initialized()
    }

    /// A new connection to `origin`.
    pub(super) async fn connect(&self, origin: &Origin) -> Result<Connection> {
        let unreachable = |e: BoxError| broken("the provider could not be reached").with_source(e);
        let uri = origin.uri().clone();
        Ok(if uri.scheme() == Some(&Scheme::HTTPS) {
            let stream = self.tls().await?.oneshot(uri).await.map_err(unreachable)?;
            Connection::new(Stream::Other(Box::new(TokioIo::new(stream))))
        } else {
            let stream = self.plain.clone().oneshot(uri).await.map_err(|e| unreachable(e.into()))?;
            Connection::new(Stream::Tcp(stream.into_inner()))
        })
    }

    async fn tls(&self) -> Result<HttpsConnector<HttpConnector>> {
        let failed = |e: io::Error| Error::config("TLS could not be set up").with_source(e);
        // Reading the certificates takes milliseconds of disk time.
        let connect = || async { tokio::task::spawn_blocking(tls_connector).await.map_err(io::Error::other)? };
        self.tls.get_or_try_init(connect).await.cloned().map_err(failed)
    }
}

fn connector() -> HttpConnector {
    let mut connector = HttpConnector::new();
    connector.set_nodelay(true);
    connector.set_connect_timeout(Some(CONNECT_TIMEOUT));
    connector
}

fn tls_connector() -> io::Result<HttpsConnector<HttpConnector>> {
    // The provider is named, since rustls refuses to choose where an application has brought in a second one.
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = HttpsConnectorBuilder::new();
    let builder = match builder.with_provider_and_native_roots(provider.clone()) {
        Ok(builder) => builder,
        Err(_) => HttpsConnectorBuilder::new().with_provider_and_webpki_roots(provider).map_err(io::Error::other)?,
    };
    Ok(over_tls(builder))
}

fn over_tls(builder: HttpsConnectorBuilder<WantsSchemes>) -> HttpsConnector<HttpConnector> {
    let mut connector = connector();
    connector.enforce_http(false);
    builder.https_only().enable_http1().wrap_connector(connector)
}

#[cfg(test)]
mod tests {
    use agent_core::ErrorKind;
    use bytes::Bytes;
    use futures::TryStreamExt;
    use http::Request;
    use rustls::{
        ClientConfig, RootCertStore, ServerConfig,
        pki_types::{CertificateDer, PrivatePkcs8KeyDer},
    };
    use tokio::{
        io::{AsyncReadExt, AsyncWriteExt},
        net::{TcpListener, TcpStream},
    };
    use tokio_rustls::{TlsAcceptor, server::TlsStream};

    use super::{super::HttpTransport, *};
    use crate::Transport;

    /// A server with a certificate of its own.
    struct Server {
        listener: TcpListener,
        acceptor: TlsAcceptor,
        certificate: CertificateDer<'static>,
    }

    impl Server {
        async fn start() -> Self {
            let own = rcgen::generate_simple_self_signed(["localhost".to_owned()]).expect("a certificate");
            let certificate = own.cert.der().clone();
            let key = PrivatePkcs8KeyDer::from(own.signing_key.serialize_der()).into();
            let provider = Arc::new(rustls::crypto::ring::default_provider());
            let config = ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
            let config =
                config.expect("versions").with_no_client_auth().with_single_cert(vec![certificate.clone()], key);
            let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
            Self { listener, acceptor: Arc::new(config.expect("a pair")).into(), certificate }
        }

        /// The next connection; an error if the client did not want it.
        async fn accept(&self) -> io::Result<TlsStream<TcpStream>> {
            self.acceptor.accept(self.listener.accept().await?.0).await
        }

        /// A transport that trusts this server and nobody else.
        fn trusted(&self) -> HttpTransport {
            let mut roots = RootCertStore::empty();
            roots.add(self.certificate.clone()).expect("a root");
            let provider = Arc::new(rustls::crypto::ring::default_provider());
            let config = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
            let config = config.expect("versions").with_root_certificates(roots).with_no_client_auth();
            let tls = over_tls(HttpsConnectorBuilder::new().with_tls_config(config));
            let connector = Connector { plain: connector(), tls: OnceCell::new_with(Some(tls)) };
            HttpTransport::with_connector(connector)
        }

        /// Sends `body` there and gives the body of the answer.
        async fn ask(&self, transport: &HttpTransport, body: Bytes) -> Result<Vec<u8>> {
            let port = self.listener.local_addr().expect("an address").port();
            let request = Request::post(format!("https://localhost:{port}/v1")).body(body).expect("a request");
            let pieces: Vec<Bytes> = transport.send(request).await?.into_body().try_collect().await?;
            Ok(pieces.concat())
        }
    }

    /// Reads a request and gives its body.
    async fn read_request(stream: &mut TlsStream<TcpStream>) -> Vec<u8> {
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            head.push(stream.read_u8().await.expect("a head"));
        }
        let head = String::from_utf8(head).expect("text");
        let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")).expect("a length");
        let mut body = vec![0; length.parse().expect("a number")];
        stream.read_exact(&mut body).await.expect("a body");
        body
    }

    #[test]
    fn tls_is_set_up_without_anything_set_for_the_process() {
        tls_connector().expect("certificates and a provider");
    }

    #[tokio::test]
    async fn requests_and_answers_of_any_length_go_over_one_connection_with_tls() {
        let server = Server::start().await;
        let transport = server.trusted();
        let echo = async {
            let mut stream = server.accept().await.expect("a client");
            for _ in 0..3 {
                let body = read_request(&mut stream).await;
                let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n", body.len());
                stream.write_all(head.as_bytes()).await.expect("writes");
                stream.write_all(&body).await.expect("writes");
                stream.flush().await.expect("writes");
            }
        };
        let calls = async {
            for length in [1, 1_000_000, 10_000] {
                let body: Bytes = (0..length).map(|at| (at % 251) as u8).collect();
                assert_eq!(server.ask(&transport, body.clone()).await.expect("an answer"), body);
            }
        };
        tokio::join!(echo, calls);
    }

    #[tokio::test]
    async fn a_server_whose_certificate_nobody_vouches_for_is_told_nothing() {
        let (server, stranger) = (Server::start().await, Server::start().await);
        let transport = stranger.trusted();
        let (accepted, answer) = tokio::join!(server.accept(), server.ask(&transport, "secret".into()));
        accepted.expect_err("the client does not go on");
        assert_eq!(answer.expect_err("no answer").kind(), ErrorKind::Transport);
    }

    #[tokio::test]
    async fn an_answer_without_a_length_that_somebody_cut_on_its_way_is_not_taken_for_whole() {
        let server = Server::start().await;
        let transport = server.trusted();
        for is_whole in [true, false] {
            let serve = async {
                let mut stream = server.accept().await.expect("a client");
                read_request(&mut stream).await;
                stream.write_all(b"HTTP/1.1 200 OK\r\n\r\npart").await.expect("writes");
                stream.flush().await.expect("writes");
                if is_whole {
                    stream.shutdown().await.expect("a goodbye");
                }
            };
            let ((), answer) = tokio::join!(serve, server.ask(&transport, "?".into()));
            match is_whole {
                true => assert_eq!(answer.expect("an answer"), b"part"),
                false => assert_eq!(answer.expect_err("cut").kind(), ErrorKind::Truncated),
            }
        }
    }
}
