//! Proxies.

use std::time::Duration;

use agent_core::Result;
use agent_llm::HttpTransport;
use futures::future::join_all;
use http::{Request, Response};
use hyper::{body::Incoming, server::conn::http2, service::service_fn};
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt, copy_bidirectional},
    net::{TcpListener, TcpStream},
};

use super::{
    proxies::{Proxy, Way},
    server::{Never, Server, ask, read_request},
};

const ANSWER: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nhi";

/// Reads a request, sends `answer`, and closes the connection.
async fn answer_with_tls(server: &Server, answer: &[u8]) {
    let mut stream = server.accept().await.expect("a client");
    read_request(&mut stream).await;
    stream.write_all(answer).await.expect("writes");
    stream.flush().await.expect("writes");
}

#[tokio::test]
async fn a_proxy_of_any_kind_leads_to_servers_with_tls_and_without() {
    for way in Way::all().await {
        let server = Server::start().await;
        let transport = way.of(server.trusted(), "s3cret").build().expect("valid");
        let (answer, ()) = tokio::join!(server.ask(&transport, "?"), answer_with_tls(&server, ANSWER));
        assert_eq!(answer.expect(way.scheme), b"hi");
        let plain = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let serve = async {
            let (mut stream, _) = plain.accept().await.expect("the proxy");
            let (head, _) = read_request(&mut stream).await;
            assert!(!head.contains("proxy-authorization"), "it is for the proxy: {head}");
            stream.write_all(ANSWER).await.expect("writes");
        };
        let url = format!("http://{}/v1", plain.local_addr().expect("an address"));
        let (answer, ()) = tokio::join!(ask(&transport, &url, "?"), serve);
        assert_eq!(answer.expect(way.scheme), b"hi");
    }
}

#[tokio::test]
async fn calls_share_a_connection_of_http2_through_a_proxy_of_any_kind() {
    for way in Way::all().await {
        let server = Server::with(None, &["h2", "http/1.1"]).await;
        let transport = way.of(server.trusted(), "s3cret").build().expect("valid");
        let serve = async {
            let stream = server.accept().await.expect("a client");
            assert_eq!(stream.get_ref().1.alpn_protocol(), Some(&b"h2"[..]));
            let answer = |_: Request<Incoming>| async { Ok::<_, Never>(Response::new(String::from("hi"))) };
            let served = http2::Builder::new(TokioExecutor::new());
            let _ = served.serve_connection(TokioIo::new(stream), service_fn(answer)).await;
        };
        tokio::select! {
            answers = join_all((0..20).map(|_| server.ask(&transport, "?"))) => {
                assert!(answers.into_iter().all(|answer| answer.expect(way.scheme) == b"hi"));
            }
            () = serve => panic!("the connection is kept"),
        }
    }
}

#[tokio::test]
async fn an_error_says_which_part_failed_through_a_proxy_of_any_kind() {
    for way in Way::all().await {
        let server = Server::start().await;
        let transport = way.of(server.trusted(), "s3cret").build().expect("valid");
        let failed = |part: &'static str, answer: Result<Vec<u8>>| {
            let error = answer.expect_err(part);
            assert_eq!(error.context("part"), Some(part), "{}: {error}", way.scheme);
            assert!(!format!("{error:?}").contains("s3cret"), "{error:?}");
        };
        let (answer, ()) = tokio::join!(server.ask(&transport, "?"), answer_with_tls(&server, b""));
        failed("head", answer);
        let cut = b"HTTP/1.1 200 OK\r\ncontent-length: 20\r\n\r\nhi";
        let (answer, ()) = tokio::join!(server.ask(&transport, "?"), answer_with_tls(&server, cut));
        failed("body", answer);
        let stranger = Server::start().await;
        let (_, answer) = tokio::join!(stranger.accept(), stranger.ask(&transport, "?"));
        failed("tls", answer);
        failed("proxy", ask(&transport, "https://127.0.0.1:1/", "?").await);
        let wrong = way.of(server.trusted(), "wr0ng").build().expect("valid");
        failed("proxy", server.ask(&wrong, "?").await);
        if way.scheme == "https" {
            let distrustful = server.trusted().proxy(way.url("s3cret")).build().expect("valid");
            let error = server.ask(&distrustful, "?").await.expect_err("a stranger");
            assert_eq!((error.context("part"), error.is_retryable()), (Some("proxy"), false));
            assert!(
                error.message().contains("vouches") && error.message().contains("no TLS with its proxy"),
                "{error}"
            );
        }
    }
}

#[tokio::test]
async fn a_proxy_that_refuses_says_why_and_no_password_is_shown() {
    let Some(proxy) = Proxy::tinyproxy().await else { return };
    let transport = HttpTransport::builder().proxy(format!("http://me:wr0ng@127.0.0.1:{}", proxy.port));
    assert!(!format!("{transport:?}").contains("wr0ng"));
    let transport = transport.build().expect("valid");
    let error = ask(&transport, "https://localhost:1/", "?").await.expect_err("refused");
    assert!(error.message().contains("40") && error.message().contains(&proxy.port.to_string()), "{error}");
    assert_eq!((error.context("part"), error.is_retryable()), (Some("proxy"), false));
    assert!(!format!("{error:?}{transport:?}").contains("wr0ng"));
}

#[tokio::test]
async fn a_proxy_that_is_not_there_is_named() {
    let transport = HttpTransport::builder().proxy("http://127.0.0.1:1").build().expect("valid");
    let error = ask(&transport, "https://localhost:1/", "?").await.expect_err("nobody");
    assert_eq!((error.context("part"), error.is_retryable()), (Some("proxy"), true));
    assert!(error.message().contains("http://127.0.0.1:1"), "{error}");
}

#[tokio::test]
async fn a_proxy_that_accepts_and_then_is_silent_is_named() {
    let silent = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let place = silent.local_addr().expect("an address").to_string();
    for scheme in ["http", "https", "socks5h", "socks5"] {
        let transport = HttpTransport::builder().proxy(format!("{scheme}://me:s3cret@{place}"));
        let transport = transport.connect_timeout(Duration::from_millis(200)).build().expect("valid");
        let error = ask(&transport, "https://localhost:1/", "?").await.expect_err("nobody answers");
        assert_eq!((error.context("part"), error.is_retryable()), (Some("proxy"), true), "{scheme}: {error}");
        assert!(error.message().contains(&place) && !error.to_string().contains("s3cret"), "{error}");
    }
}

/// A SOCKS proxy for one connection, which requires `me` and `s3cret`; returns the address type of
/// the request.
async fn socks(listener: TcpListener) -> u8 {
    let (mut stream, _) = listener.accept().await.expect("a client");
    let mut greeting = [0; 3];
    stream.read_exact(&mut greeting).await.expect("a greeting");
    assert_eq!(greeting, [5, 1, 2], "it has a password");
    stream.write_all(&[5, 2]).await.expect("writes");
    let mut login = [0; 11];
    stream.read_exact(&mut login).await.expect("a login");
    assert_eq!(&login, b"\x01\x02me\x06s3cret");
    stream.write_all(&[1, 0]).await.expect("writes");
    let mut request = [0; 4];
    stream.read_exact(&mut request).await.expect("a request");
    let kind = request[3];
    let mut host = vec![0; if kind == 3 { usize::from(stream.read_u8().await.expect("a length")) } else { 4 }];
    stream.read_exact(&mut host).await.expect("a host");
    let port = stream.read_u16().await.expect("a port");
    stream.write_all(&[5, 0, 0, 1, 0, 0, 0, 0, 0, 0]).await.expect("writes");
    let mut server = TcpStream::connect(("127.0.0.1", port)).await.expect("the server");
    let _ = copy_bidirectional(&mut stream, &mut server).await;
    kind
}

#[tokio::test]
async fn names_are_resolved_by_the_socks_proxy_or_here() {
    for (scheme, told) in [("socks5h", 3), ("socks5", 1)] {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let proxy = format!("{scheme}://me:s3cret@{}", listener.local_addr().expect("an address"));
        let proxied = tokio::spawn(socks(listener));
        let plain = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let url = format!("http://localhost:{}/", plain.local_addr().expect("an address").port());
        let serve = async {
            let (mut stream, _) = plain.accept().await.expect("the proxy");
            read_request(&mut stream).await;
            stream.write_all(ANSWER).await.expect("writes");
        };
        let transport = HttpTransport::builder().proxy(proxy).build().expect("valid");
        let (answer, ()) = tokio::join!(ask(&transport, &url, "?"), serve);
        assert_eq!(answer.expect("an answer"), b"hi", "{scheme}");
        drop(transport);
        let kind = proxied.await.expect("leads");
        assert!(kind == told || (scheme == "socks5" && kind == 4), "{scheme} told {kind}");
    }
}
