//! Proxies.

use std::{io::Write, path::PathBuf, process::Stdio, time::Duration};

use agent_llm::HttpTransport;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt, copy_bidirectional},
    net::{TcpListener, TcpStream},
    process::{Child, Command},
};

use crate::server::{Server, ask, read_request};

const ANSWER: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nhi";

/// A proxy from Debian that wants a password; none if it is not installed.
async fn tinyproxy() -> Option<(Child, u16, tempfile::TempDir)> {
    let Some(program) =
        ["/usr/bin/tinyproxy", "/usr/sbin/tinyproxy"].map(PathBuf::from).into_iter().find(|p| p.exists())
    else {
        // Not with `eprintln`, which the test harness keeps to itself.
        let _ = writeln!(std::io::stderr(), "skipped: no tinyproxy");
        return None;
    };
    let port = TcpListener::bind("127.0.0.1:0").await.expect("a port").local_addr().expect("an address").port();
    let place = tempfile::tempdir().expect("a directory");
    let settings = place.path().join("tinyproxy.conf");
    let text = format!("Port {port}\nListen 127.0.0.1\nAllow 127.0.0.1\nBasicAuth me s3cret\nMaxClients 20\n");
    std::fs::write(&settings, text).expect("writes");
    let mut command = Command::new(program);
    command.arg("-d").arg("-c").arg(settings).stdout(Stdio::null()).stderr(Stdio::null()).kill_on_drop(true);
    let child = command.spawn().expect("starts");
    for _ in 0..200 {
        if TcpStream::connect(("127.0.0.1", port)).await.is_ok() {
            return Some((child, port, place));
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("tinyproxy does not listen");
}

async fn answer_with_tls(server: &Server) {
    let mut stream = server.accept().await.expect("a client");
    read_request(&mut stream).await;
    stream.write_all(ANSWER).await.expect("writes");
    stream.flush().await.expect("writes");
}

#[tokio::test]
async fn a_forward_proxy_leads_to_servers_with_tls_and_without() {
    let Some((_proxy, port, _place)) = tinyproxy().await else { return };
    let server = Server::start().await;
    let transport = server.trusted().proxy(format!("http://me:s3cret@127.0.0.1:{port}")).build().expect("valid");
    let (answer, ()) = tokio::join!(server.ask(&transport, "?"), answer_with_tls(&server));
    assert_eq!(answer.expect("an answer"), b"hi");
    let plain = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let serve = async {
        let (mut stream, _) = plain.accept().await.expect("the proxy");
        let (head, _) = read_request(&mut stream).await;
        assert!(!head.contains("proxy-authorization"), "it is for the proxy: {head}");
        stream.write_all(ANSWER).await.expect("writes");
    };
    let url = format!("http://{}/v1", plain.local_addr().expect("an address"));
    let (answer, ()) = tokio::join!(ask(&transport, &url, "?"), serve);
    assert_eq!(answer.expect("an answer"), b"hi");
}

#[tokio::test]
async fn a_proxy_that_refuses_says_why_and_no_password_is_shown() {
    let Some((_proxy, port, _place)) = tinyproxy().await else { return };
    let transport = HttpTransport::builder().proxy(format!("http://me:wr0ng@127.0.0.1:{port}"));
    assert!(!format!("{transport:?}").contains("wr0ng"));
    let transport = transport.build().expect("valid");
    let error = ask(&transport, "https://localhost:1/", "?").await.expect_err("refused");
    assert!(error.message().contains("40") && error.message().contains(&port.to_string()), "{error}");
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

/// A SOCKS proxy for one connection, which wants `me` and `s3cret`; gives the kind of address that it was told.
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
