//! A transport with the cryptography provider that the program installed for its process.
#![cfg(feature = "http")]

use std::sync::Arc;

use agent_llm::{HttpTransport, Transport};
use http::Request;
use rustls::{CipherSuite, ServerConfig, crypto::ring, pki_types::PrivatePkcs8KeyDer};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

/// Returns the cipher suite that a client with these settings negotiates.
async fn chosen(process_crypto: bool) -> Option<CipherSuite> {
    let identity = rcgen::generate_simple_self_signed(["localhost".to_owned()]).expect("a certificate");
    let key = PrivatePkcs8KeyDer::from(identity.signing_key.serialize_der()).into();
    let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_no_client_auth()
        .with_single_cert(vec![identity.cert.der().clone()], key)
        .expect("a pair");
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let url = format!("https://localhost:{}/", listener.local_addr().expect("an address").port());
    let transport = HttpTransport::builder().no_proxy().no_system_roots().add_roots(identity.cert.pem());
    let transport = if process_crypto { transport.process_crypto() } else { transport };
    let transport = transport.build().expect("a transport");
    let accept = async {
        let (stream, _) = listener.accept().await.expect("a client");
        let stream = TlsAcceptor::from(Arc::new(config)).accept(stream).await.expect("TLS");
        stream.get_ref().1.negotiated_cipher_suite().map(|suite| suite.suite())
    };
    let request = Request::get(url).body(Default::default()).expect("a request");
    let (suite, _) = tokio::join!(accept, transport.send(request));
    suite
}

#[tokio::test]
async fn a_transport_uses_the_cryptography_of_the_process_if_it_is_told_to() {
    let none = HttpTransport::builder().process_crypto().build().expect_err("none is installed yet");
    assert!(none.message().contains("installed"), "{none}");
    let mut only_chacha = ring::default_provider();
    only_chacha.cipher_suites.retain(|suite| suite.suite() == CipherSuite::TLS13_CHACHA20_POLY1305_SHA256);
    only_chacha.install_default().expect("the first");
    assert_eq!(chosen(true).await, Some(CipherSuite::TLS13_CHACHA20_POLY1305_SHA256));
    assert_ne!(chosen(false).await, Some(CipherSuite::TLS13_CHACHA20_POLY1305_SHA256), "whatever is installed");
}
