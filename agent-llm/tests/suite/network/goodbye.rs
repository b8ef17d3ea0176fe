//! Calls on an HTTP/2 connection whose server sends GOAWAY, or refuses one of them.

use agent_core::ErrorKind;
use agent_llm::HttpTransport;
use tokio::{net::TcpListener, sync::oneshot};

use super::{
    frames::{Frames, data, end, goodbye, head, refusal, whole},
    server::ask,
};

/// Returns a listener, and a transport and a URL to call it.
async fn place() -> (TcpListener, HttpTransport, String) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let url = format!("http://{}/v1", listener.local_addr().expect("an address"));
    let transport = HttpTransport::builder().no_proxy().http2_prior_knowledge().build().expect("a transport");
    (listener, transport, url)
}

#[tokio::test]
async fn a_call_under_way_when_the_server_says_goodbye_ends_well_and_the_next_has_a_new_connection() {
    let (listener, transport, url) = place().await;
    let (began, begun) = oneshot::channel();
    let server = tokio::spawn(async move {
        let mut first = Frames::accept(&listener).await;
        let stream = first.request().await;
        first.send(&[head(stream, &[]), data(stream, b"be"), goodbye(stream)].concat()).await;
        began.send(()).expect("a caller");
        let mut second = Frames::accept(&listener).await;
        let other = second.request().await;
        second.send(&whole(other, b"other")).await;
        first.send(&end(stream, b"gun")).await;
        (first, second)
    });
    let next = async {
        begun.await.expect("it began");
        ask(&transport, &url, "?").await
    };
    let (under_way, next) = tokio::join!(ask(&transport, &url, "?"), next);
    assert_eq!(under_way.expect("an answer"), b"begun");
    assert_eq!(next.expect("an answer"), b"other");
    server.await.expect("two connections");
}

#[tokio::test]
async fn a_call_that_the_server_left_out_when_it_said_goodbye_is_made_again() {
    let (listener, transport, url) = place().await;
    let server = tokio::spawn(async move {
        let mut first = Frames::accept(&listener).await;
        let (stream, _left_out) = (first.request().await, first.request().await);
        first.send(&[goodbye(stream), whole(stream, b"hi")].concat()).await;
        let mut second = Frames::accept(&listener).await;
        let again = second.request().await;
        second.send(&whole(again, b"hi")).await;
        (first, second)
    });
    let (one, other) = tokio::join!(ask(&transport, &url, "?"), ask(&transport, &url, "?"));
    assert_eq!((one.expect("an answer"), other.expect("an answer")), (b"hi".to_vec(), b"hi".to_vec()));
    server.await.expect("two connections");
}

#[tokio::test]
async fn a_stream_that_is_refused_is_asked_for_again_on_the_same_connection() {
    let (listener, transport, url) = place().await;
    let server = tokio::spawn(async move {
        let mut connection = Frames::accept(&listener).await;
        let refused = connection.request().await;
        connection.send(&refusal(refused)).await;
        let again = connection.request().await;
        connection.send(&whole(again, b"hi")).await;
        connection
    });
    assert_eq!(ask(&transport, &url, "?").await.expect("an answer"), b"hi");
    server.await.expect("one connection");
}

#[tokio::test]
async fn a_server_that_refuses_every_stream_is_asked_three_times() {
    let (listener, transport, url) = place().await;
    let server = tokio::spawn(async move {
        let mut connection = Frames::accept(&listener).await;
        for _ in 0..3 {
            let refused = connection.request().await;
            connection.send(&refusal(refused)).await;
        }
        connection
    });
    let error = ask(&transport, &url, "?").await.expect_err("refused");
    assert_eq!((error.kind(), error.is_retryable()), (ErrorKind::Transport, true));
    assert_eq!(error.context("part"), Some("head"));
    server.await.expect("three requests");
}
