//! HTTP/2: calls that share connections.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use agent_core::ErrorKind;
use agent_llm::{HttpTransport, Transport};
use bytes::Bytes;
use futures::{StreamExt, future::join_all, stream};
use http::{Request, Response};
use http_body_util::{StreamBody, combinators::BoxBody};
use hyper::{
    body::{Frame, Incoming},
    server::conn::http2,
    service::service_fn,
};
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::{net::TcpListener, sync::Notify};

use super::server::{Never, Server, ask, read_request};

type Answer = Result<Response<BoxBody<Bytes, Never>>, std::io::Error>;

/// Behaviour of a server.
#[derive(Clone, Default)]
struct Plan {
    /// Maximum number of concurrent streams per connection.
    most: Option<u32>,
    /// Number of connections so far.
    connections: Arc<AtomicUsize>,
    /// Sends GOAWAY on all connections.
    goodbye: Arc<Notify>,
    /// Breaks all connections, along with their calls.
    breaks: Arc<Notify>,
}

/// Answers in five pieces; `/reset` not at all; `/stall` with one piece and nothing more.
async fn answer(request: Request<Incoming>) -> Answer {
    let pieces = stream::iter(0..5).then(|n: u8| async move {
        tokio::time::sleep(Duration::from_millis(1)).await;
        Ok(Frame::data(Bytes::from(vec![n])))
    });
    match request.uri().path() {
        "/reset" => Err(std::io::Error::other("no")),
        "/stall" => {
            let large = stream::iter([Ok(Frame::data(Bytes::from(vec![0; 4 << 20])))]);
            Ok(Response::new(BoxBody::new(StreamBody::new(large.chain(stream::pending())))))
        }
        _ => Ok(Response::new(BoxBody::new(StreamBody::new(pieces)))),
    }
}

async fn serve(plan: Plan) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let url = format!("http://{}", listener.local_addr().expect("an address"));
    tokio::spawn(async move {
        loop {
            let (stream, _) = listener.accept().await.expect("a client");
            plan.connections.fetch_add(1, Ordering::Relaxed);
            let connection = http2::Builder::new(TokioExecutor::new())
                .max_concurrent_streams(plan.most)
                .serve_connection(TokioIo::new(stream), service_fn(answer));
            let (goodbye, breaks) = (plan.goodbye.clone(), plan.breaks.clone());
            tokio::spawn(async move {
                let mut connection = std::pin::pin!(connection);
                tokio::select! {
                    _ = connection.as_mut() => return,
                    () = breaks.notified() => return,
                    () = goodbye.notified() => connection.as_mut().graceful_shutdown(),
                }
                let _ = connection.await;
            });
        }
    });
    url
}

fn transport() -> HttpTransport {
    HttpTransport::builder().no_proxy().http2_prior_knowledge().build().expect("a transport")
}

#[tokio::test]
async fn a_thousand_streams_share_few_connections_and_none_starves() {
    for (most, expected) in [(None, 8), (Some(250), 8), (Some(100), 10)] {
        let plan = Plan { most, ..Plan::default() };
        let (url, transport) = (serve(plan.clone()).await, transport());
        let answers = join_all((0..1_000).map(|_| ask(&transport, &url, "?"))).await;
        assert!(answers.into_iter().all(|answer| answer.expect("an answer") == [0, 1, 2, 3, 4]));
        let connections = plan.connections.load(Ordering::Relaxed);
        assert!(connections <= expected + 1, "{connections} connections with {most:?}");
    }
}

#[tokio::test]
async fn answers_that_nobody_reads_hold_up_no_others() {
    let plan = Plan { most: Some(1_000), ..Plan::default() };
    let (url, transport) = (serve(plan.clone()).await, transport());
    let stalled =
        (0..60).map(|_| transport.send(Request::post(format!("{url}/stall")).body(Bytes::new()).expect("a request")));
    let unread = join_all(stalled).await;
    assert!(unread.iter().all(Result::is_ok), "{:?}", unread.iter().find(|answer| answer.is_err()));
    assert_eq!(plan.connections.load(Ordering::Relaxed), 1);
    tokio::time::sleep(Duration::from_millis(50)).await;
    let answer = tokio::time::timeout(Duration::from_secs(10), ask(&transport, &url, "?")).await;
    assert_eq!(answer.expect("in time").expect("an answer"), [0, 1, 2, 3, 4]);
    assert_eq!(plan.connections.load(Ordering::Relaxed), 1);
    drop(unread);
}

#[tokio::test]
async fn a_stream_that_is_reset_has_failed_and_the_others_go_on() {
    let plan = Plan::default();
    let (url, transport) = (serve(plan.clone()).await, transport());
    let reset = format!("{url}/reset");
    let (other, failed) = tokio::join!(ask(&transport, &url, "?"), ask(&transport, &reset, "?"));
    other.expect("an answer");
    let error = failed.expect_err("reset");
    assert_eq!((error.kind(), error.is_retryable()), (ErrorKind::Transport, true));
    assert_eq!(error.context("part"), Some("head"));
    assert_eq!(plan.connections.load(Ordering::Relaxed), 1);
}

#[tokio::test]
async fn a_server_that_says_goodbye_is_called_on_a_new_connection() {
    let plan = Plan::default();
    let (url, transport) = (serve(plan.clone()).await, transport());
    ask(&transport, &url, "?").await.expect("an answer");
    plan.goodbye.notify_waiters();
    tokio::time::sleep(Duration::from_millis(200)).await;
    ask(&transport, &url, "?").await.expect("an answer");
    assert_eq!(plan.connections.load(Ordering::Relaxed), 2);
}

#[tokio::test]
async fn a_connection_that_breaks_fails_the_calls_on_it_and_no_others() {
    let plan = Plan::default();
    let (url, transport) = (serve(plan.clone()).await, transport());
    let stalled = Request::post(format!("{url}/stall")).body(Bytes::new()).expect("a request");
    let mut body = transport.send(stalled).await.expect("a head").into_body();
    plan.breaks.notify_waiters();
    let error = loop {
        match body.next().await.expect("an error, and no end") {
            Ok(_) => {}
            Err(error) => break error,
        }
    };
    assert!(matches!(error.kind(), ErrorKind::Transport | ErrorKind::Truncated) && error.is_retryable(), "{error}");
    assert_eq!(ask(&transport, &url, "?").await.expect("an answer"), [0, 1, 2, 3, 4]);
    assert_eq!(plan.connections.load(Ordering::Relaxed), 2);
}

#[tokio::test]
async fn dropping_a_call_leaves_the_connection_to_the_others() {
    let plan = Plan { most: Some(1), ..Plan::default() };
    let (url, transport) = (serve(plan.clone()).await, transport());
    let stalled = Request::post(format!("{url}/stall")).body(Bytes::new()).expect("a request");
    drop(transport.send(stalled).await.expect("a head"));
    ask(&transport, &url, "?").await.expect("an answer");
    assert_eq!(plan.connections.load(Ordering::Relaxed), 1);
}

#[tokio::test]
async fn what_both_sides_speak_is_settled_by_tls() {
    let both = Server::with(None, &["h2", "http/1.1"]).await;
    let transport = both.trusted().build().expect("a transport");
    let serve = async {
        let stream = both.accept().await.expect("a client");
        assert_eq!(stream.get_ref().1.alpn_protocol(), Some(&b"h2"[..]));
        let served = http2::Builder::new(TokioExecutor::new());
        let _ = served.serve_connection(TokioIo::new(stream), service_fn(answer)).await;
    };
    tokio::select! {
        answers = join_all((0..100).map(|_| both.ask(&transport, "?"))) => {
            assert!(answers.iter().all(Result::is_ok), "all on one connection");
        }
        () = serve => panic!("the connection is kept"),
    }
    let old = Server::with(None, &["http/1.1"]).await;
    let transport = old.trusted().build().expect("a transport");
    let serve = async {
        let mut stream = old.accept().await.expect("a client");
        let (head, _) = read_request(&mut stream).await;
        assert!(head.contains("http/1.1") && head.contains("user-agent: agent-llm/"), "{head}");
    };
    let _ = tokio::join!(serve, old.ask(&transport, "?"));
}
