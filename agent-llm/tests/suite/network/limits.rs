//! Number and lifetime of connections.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use agent_llm::HttpTransport;
use futures::future::join_all;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpListener,
};

use super::server::{Server, ask, read_request};

const ANSWER: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nhi";

/// Starts a server that answers each request; returns its URL, and counters of opened and closed
/// connections.
async fn serve() -> (String, Arc<AtomicUsize>, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let url = format!("http://{}/", listener.local_addr().expect("an address"));
    let counts = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let (opened, closed) = counts.clone();
    tokio::spawn(async move {
        loop {
            let (mut stream, _) = listener.accept().await.expect("a client");
            opened.fetch_add(1, Ordering::Relaxed);
            let closed = closed.clone();
            tokio::spawn(async move {
                let mut byte = [0];
                while let Ok(1) = stream.peek(&mut byte).await {
                    read_request(&mut stream).await;
                    stream.write_all(ANSWER).await.expect("writes");
                }
                let _ = stream.read(&mut byte).await;
                closed.fetch_add(1, Ordering::Relaxed);
            });
        }
    });
    (url, counts.0, counts.1)
}

/// Waits until the counter reaches `wanted`.
async fn reaches(count: &AtomicUsize, wanted: usize) {
    let counted = async {
        while count.load(Ordering::Relaxed) < wanted {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), counted).await.expect("as many as are wanted");
    assert_eq!(count.load(Ordering::Relaxed), wanted);
}

#[tokio::test]
async fn calls_wait_for_one_of_the_connections_that_there_may_be() {
    let (url, opened, _) = serve().await;
    let transport = HttpTransport::builder().max_connections(3).build().expect("a transport");
    let answers = join_all((0..50).map(|_| ask(&transport, &url, "?"))).await;
    assert!(answers.into_iter().all(|answer| answer.expect("an answer") == b"hi"));
    assert_eq!(opened.load(Ordering::Relaxed), 3);
}

#[tokio::test]
async fn a_call_that_waits_for_a_place_does_not_fail_with_the_attempt_of_another() {
    let server = Server::start().await;
    let transport = server.trusted().max_connections(2).build().expect("a transport");
    let started = tokio::sync::Notify::new();
    let serving = async {
        let mut first = server.accept().await.expect("a client");
        read_request(&mut first).await;
        started.notify_one();
        server.refuse().await;
        let mut third = server.accept().await.expect("a client");
        read_request(&mut third).await;
        third.write_all(ANSWER).await.expect("writes");
        std::future::pending::<()>().await;
    };
    let held = server.ask(&transport, "held");
    let others = async {
        started.notified().await;
        futures::join!(server.ask(&transport, "refused"), server.ask(&transport, "served"))
    };
    let (refused, served) = tokio::select! {
        () = serving => unreachable!("it serves to the end"),
        answer = held => panic!("it is not answered: {answer:?}"),
        answers = others => answers,
    };
    assert!(refused.is_err());
    assert_eq!(served.expect("an answer"), b"hi");
}

#[tokio::test]
async fn an_old_connection_takes_no_more_calls() {
    let (url, opened, _) = serve().await;
    let transport = HttpTransport::builder().max_age(Duration::from_millis(30)).build().expect("a transport");
    ask(&transport, &url, "?").await.expect("an answer");
    tokio::time::sleep(Duration::from_millis(40)).await;
    ask(&transport, &url, "?").await.expect("an answer");
    assert_eq!(opened.load(Ordering::Relaxed), 2);
}

#[tokio::test]
async fn no_more_idle_connections_are_kept_than_may_be() {
    let (url, opened, closed) = serve().await;
    let transport = HttpTransport::builder().max_idle(1).build().expect("a transport");
    let answers = join_all((0..4).map(|_| ask(&transport, &url, "?"))).await;
    assert!(answers.iter().all(Result::is_ok));
    reaches(&closed, 3).await;
    assert_eq!(opened.load(Ordering::Relaxed), 4);
}

#[test]
fn idle_connections_are_closed_again_after_a_runtime_has_ended() {
    let runtime = || tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let transport = HttpTransport::builder().idle_timeout(Duration::from_millis(50)).build().expect("a transport");
    let (servers, first) = (tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("one"), runtime());
    let (url, opened, closed) = servers.block_on(serve());
    first.block_on(ask(&transport, &url, "?")).expect("an answer");
    drop(first);
    runtime().block_on(async {
        ask(&transport, &url, "?").await.expect("an answer");
        reaches(&closed, 2).await;
    });
    assert_eq!(opened.load(Ordering::Relaxed), 2);
}
