//! Bodies that are too large, too slow, compressed or corrupt.

use std::time::{Duration, Instant};

use agent_core::{
    ErrorKind, History,
    engine::{RunDriver, RunParts},
    testing::detached_run,
};
use async_compression::tokio::write::{BrotliEncoder, GzipEncoder, ZlibEncoder, ZstdEncoder};
use serde_json::json;
use tokio::io::{AsyncWrite, AsyncWriteExt};

use super::{
    server::{Answer, Server, answer, page},
    support::call_in,
    tools::{builder, fetch, inside, tool},
};

/// Maximum page size in these tests, in bytes.
const MOST: usize = 64 << 10;

async fn written<W: AsyncWrite + Unpin>(mut encoder: W, plain: &[u8], into: impl FnOnce(W) -> Vec<u8>) -> Vec<u8> {
    encoder.write_all(plain).await.expect("compresses");
    encoder.shutdown().await.expect("ends");
    into(encoder)
}

async fn compressed(encoding: &str, plain: &[u8]) -> Vec<u8> {
    match encoding {
        "gzip" | "x-gzip" => written(GzipEncoder::new(Vec::new()), plain, GzipEncoder::into_inner).await,
        "deflate" => written(ZlibEncoder::new(Vec::new()), plain, ZlibEncoder::into_inner).await,
        "br" => written(BrotliEncoder::new(Vec::new()), plain, BrotliEncoder::into_inner).await,
        "zstd" => written(ZstdEncoder::new(Vec::new()), plain, ZstdEncoder::into_inner).await,
        _ => plain.to_vec(),
    }
}

const ENCODINGS: [&str; 6] = ["gzip", "x-gzip", "deflate", "br", "zstd", "identity"];

#[tokio::test]
async fn every_encoding_is_undone_and_a_bomb_in_it_does_not_go_off() {
    for encoding in ENCODINGS {
        let (small, bomb) =
            (compressed(encoding, b"hello, web").await, compressed(encoding, &vec![b'a'; 40 * MOST]).await);
        let headers = format!("content-type: text/plain\r\ncontent-encoding: {encoding}\r\n");
        let server =
            Server::start(move |path, _| answer("200 OK", &headers, if path == "/bomb" { &bomb } else { &small }))
                .await;
        let web = builder(&server).max_bytes(MOST).build().expect("builds");
        let text = fetch(&web, &server.url("/")).await.expect(encoding);
        assert_eq!(inside(&text), "hello, web", "{encoding}");
        let e = fetch(&web, &server.url("/bomb")).await.expect_err(encoding);
        assert!(e.contains("larger than 64 KiB"), "{encoding}: {e}");
    }
}

#[tokio::test]
async fn a_bomb_in_a_bomb_and_what_is_no_encoding_are_refused() {
    let twice = compressed("gzip", &compressed("gzip", b"twice").await).await;
    let bomb = compressed("br", &compressed("gzip", &vec![0; 40 * MOST]).await).await;
    let cases = [
        ("gzip, gzip", twice.clone(), Ok("twice")),
        ("gzip, br", bomb, Err("larger than")),
        ("gzip, gzip, gzip", twice, Err("compressed with")),
        ("quux", b"x".to_vec(), Err("'quux', which is not known")),
        ("gzip", b"no gzip".to_vec(), Err("damaged")),
        ("zstd", b"no zstd".to_vec(), Err("damaged")),
        ("br", vec![0xff; 100], Err("damaged")),
        ("deflate", vec![0xff; 100], Err("damaged")),
        // A Zstandard frame that requires a window of 128 MiB.
        ("zstd", vec![0x28, 0xb5, 0x2f, 0xfd, 0x00, 0x88, 0x01, 0x00, 0x00], Err("damaged")),
    ];
    for (encoding, body, expected) in cases {
        let headers = format!("content-type: text/plain\r\ncontent-encoding: {encoding}\r\n");
        let server = Server::start(move |_, _| answer("200 OK", &headers, &body)).await;
        let web = builder(&server).max_bytes(MOST).build().expect("builds");
        match (fetch(&web, &server.url("/")).await, expected) {
            (Ok(text), Ok(expected)) => assert_eq!(inside(&text), expected),
            (Err(e), Err(why)) => assert!(e.contains(why), "{encoding}: {e}"),
            (got, _) => panic!("{encoding}: {got:?}"),
        }
    }
}

fn endless(headers: &str, again: Vec<u8>) -> Answer {
    let bytes = format!("HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\n{headers}\r\n").into_bytes();
    Answer { bytes, endless: Some(again), hangs: false }
}

#[tokio::test]
async fn bodies_without_end_are_left() {
    let nothing = compressed("gzip", b"").await.repeat(200);
    let chunk = [b"1000\r\n".to_vec(), vec![b'a'; 0x1000], b"\r\n".to_vec()].concat();
    let cases = [
        ("plain", endless("", vec![b'a'; 4096])),
        ("in chunks", endless("transfer-encoding: chunked\r\n", chunk)),
        ("nothing, compressed", endless("content-encoding: gzip\r\n", nothing)),
        (
            "headers",
            Answer { bytes: b"HTTP/1.1 200 OK\r\n".to_vec(), endless: Some(b"x-a: b\r\n".to_vec()), hangs: false },
        ),
        ("a status", Answer { bytes: b"HTTP/1.1 200 ".to_vec(), endless: Some(vec![b'O'; 4096]), hangs: false }),
    ];
    for (name, answer) in cases {
        let server = Server::start(move |_, _| answer.clone()).await;
        let web = builder(&server).max_bytes(MOST).build().expect("builds");
        let started = Instant::now();
        fetch(&web, &server.url("/")).await.expect_err(name);
        assert!(started.elapsed() < Duration::from_secs(20), "{name}");
    }
}

#[tokio::test]
async fn a_body_that_hangs_is_left_in_time() {
    let hanging = |bytes: &str| Answer { bytes: bytes.into(), hangs: true, ..Answer::default() };
    let cases = [
        hanging(""),
        hanging("HTTP/1.1 200 OK\r\n"),
        hanging("HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-length: 100\r\n\r\nsome"),
        hanging("HTTP/1.1 500 Oh\r\ncontent-type: text/plain\r\ncontent-length: 100\r\n\r\nsome"),
    ];
    for case in cases {
        let server = Server::start(move |_, _| case.clone()).await;
        let web = builder(&server).timeout(Duration::from_millis(100)).build().expect("builds");
        let e = fetch(&web, &server.url("/")).await.expect_err("hangs");
        assert!(e.contains("no whole answer within"), "{e}");
    }
}

#[tokio::test]
async fn the_runs_deadline_and_its_end_are_the_calls_too() {
    let server = Server::start(|_, _| Answer { hangs: true, ..Answer::default() }).await;
    let web = builder(&server).build().expect("builds");
    let tool = tool(&web, "web_fetch");
    let parts = |run: &RunDriver| {
        RunParts::new(run.cx().ids().clone(), run.engine().emitter().clone(), run.engine().log().clone())
    };
    let detached = detached_run(History::default());

    let mut hurried = parts(&detached);
    hurried.deadline =
        agent_core::run::RunDeadline::new(Duration::from_millis(100), Duration::ZERO, agent_core::ExitReason::Deadline);
    let hurried = RunDriver::new(hurried);
    let started = Instant::now();
    let e = call_in(hurried.cx(), &*tool, json!({"url": server.url("/")})).await.expect_err("too late");
    assert_eq!(e.kind(), ErrorKind::Tool);
    assert!(started.elapsed() < Duration::from_secs(10), "the tool's own 30 seconds are not waited for");

    let cancelled = RunDriver::new(parts(&detached));
    cancelled.cx().cancellation().cancel();
    let e = call_in(cancelled.cx(), &*tool, json!({"url": server.url("/")})).await.expect_err("cancelled");
    assert_eq!(e.kind(), ErrorKind::Cancelled);
}

#[tokio::test]
async fn a_page_of_exactly_the_limit_is_read() {
    for (length, read) in [(MOST, true), (MOST + 1, false)] {
        let server = Server::start(move |_, _| page("text/plain", vec![b'a'; length])).await;
        let web = builder(&server).max_bytes(MOST).build().expect("builds");
        assert_eq!(fetch(&web, &server.url("/")).await.is_ok(), read, "{length}");
    }
}

#[tokio::test]
async fn what_breaks_off_is_no_page() {
    let cut = b"HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-length: 100\r\n\r\nsome";
    let server = Server::start(move |_, _| Answer { bytes: cut.to_vec(), ..Answer::default() }).await;
    let e = fetch(&builder(&server).build().expect("builds"), &server.url("/")).await.expect_err("broke off");
    assert!(e.contains("broke off"), "{e}");
}
