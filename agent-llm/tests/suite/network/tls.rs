//! Server and client certificates.

use std::time::Duration;

use agent_core::ErrorKind;
use agent_llm::HttpTransport;
use bytes::Bytes;
use tokio::{io::AsyncWriteExt, net::TcpListener};

use super::server::{Identity, Server, ask, read_request};

const EMPTY: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n";

#[tokio::test]
async fn requests_and_answers_of_any_length_go_over_one_connection_with_tls() {
    let server = Server::start().await;
    let transport = server.trusted().build().expect("a transport");
    let echo = async {
        let mut stream = server.accept().await.expect("a client");
        for _ in 0..3 {
            let (_, body) = read_request(&mut stream).await;
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
    let transport = stranger.trusted().build().expect("a transport");
    let (accepted, answer) = tokio::join!(server.accept(), server.ask(&transport, "secret"));
    accepted.expect_err("the client does not go on");
    let error = answer.expect_err("no answer");
    assert_eq!((error.kind(), error.is_retryable()), (ErrorKind::Transport, false), "it stays so");
    assert_eq!(error.context("part"), Some("tls"));
    assert!(error.message().contains("vouches") && error.message().contains("could not be reached"), "{error}");
}

#[tokio::test]
async fn a_certificate_that_is_not_good_any_more_is_refused_for_good() {
    let server = Server::expired().await;
    let transport = server.trusted().build().expect("a transport");
    let (_, answer) = tokio::join!(server.accept(), server.ask(&transport, "secret"));
    let error = answer.expect_err("no answer");
    assert_eq!((error.context("part"), error.is_retryable()), (Some("tls"), false));
    assert!(error.message().contains("expired"), "{error}");
}

#[tokio::test]
async fn a_certificate_for_another_name_is_refused() {
    let server = Server::start().await;
    let transport = server.trusted().build().expect("a transport");
    let url = format!("https://127.0.0.1:{}/", server.port());
    let (_, answer) = tokio::join!(server.accept(), ask(&transport, &url, "secret"));
    assert!(answer.expect_err("no answer").message().contains("another name"));
}

#[tokio::test]
async fn an_answer_without_a_length_that_somebody_cut_on_its_way_is_not_taken_for_whole() {
    let server = Server::start().await;
    let transport = server.trusted().build().expect("a transport");
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
        let ((), answer) = tokio::join!(serve, server.ask(&transport, "?"));
        match is_whole {
            true => assert_eq!(answer.expect("an answer"), b"part"),
            false => assert_eq!(answer.expect_err("cut").kind(), ErrorKind::Truncated),
        }
    }
}

#[tokio::test]
async fn a_server_that_asks_for_a_certificate_is_shown_ours() {
    let ours = Identity::of("client");
    let server = Server::with(Some(&ours), &[]).await;
    let shown = server.trusted().client_certificate(ours.0.cert.pem(), ours.0.signing_key.serialize_pem());
    let serve = async {
        let mut stream = server.accept().await.expect("a client that it knows");
        read_request(&mut stream).await;
        stream.write_all(EMPTY).await.expect("writes");
        stream.flush().await.expect("writes");
        server.accept().await.expect_err("a stranger");
    };
    let calls = async {
        let shown = shown.build().expect("a transport");
        server.ask(&shown, "?").await.expect("an answer");
        let stranger = server.trusted().build().expect("a transport");
        server.ask(&stranger, "?").await.expect_err("no answer without a certificate");
    };
    tokio::join!(serve, calls);
}

#[test]
fn certificates_that_cannot_be_used_are_found_when_the_transport_is_built() {
    let (ours, other) = (Identity::of("a"), Identity::of("b"));
    let mixed =
        HttpTransport::builder().client_certificate(ours.0.cert.pem(), other.0.signing_key.serialize_pem()).build();
    assert!(mixed.expect_err("a mistake").message().contains("do not belong together"));
    let empty = HttpTransport::builder().add_roots("no PEM").build();
    assert!(empty.expect_err("a mistake").message().contains("root certificates"));
    assert_eq!(HttpTransport::builder().no_system_roots().build().expect_err("nobody").kind(), ErrorKind::Config);
}

#[tokio::test]
async fn the_time_to_connect_covers_tls() {
    let silent = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let url = format!("https://{}/", silent.local_addr().expect("an address"));
    let transport = HttpTransport::builder().no_proxy().connect_timeout(Duration::from_millis(200)).build();
    let error = ask(&transport.expect("a transport"), &url, "?").await.expect_err("no TLS");
    assert!(error.message().contains("longer than 200ms"), "{error}");
    assert_eq!(error.context("part"), Some("tls"));
    drop(silent);
}
