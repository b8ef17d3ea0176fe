//! To a collector, over HTTP.

use std::{
    io::{BufRead, BufReader, Read, Write},
    net::TcpListener,
    sync::{Arc, Mutex},
    thread,
};

use agent_core::{ErrorKind, testing::Turn};
use agent_exec::Agent;
use agent_middleware::{Capture, Otlp, Telemetry};
use tracing_subscriber::layer::SubscriberExt;

use crate::world::{Named, finished};

type Received = Arc<Mutex<Vec<(String, Vec<u8>)>>>;

/// A collector that takes everything: paths and bodies.
fn collector() -> (String, Received) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let url = format!("http://{}", listener.local_addr().expect("bound"));
    let received = Received::default();
    let into = received.clone();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let (stream, into) = (stream.expect("a connection"), into.clone());
            thread::spawn(move || serve(&stream, &into));
        }
    });
    (url, received)
}

fn serve(stream: &std::net::TcpStream, into: &Received) {
    let mut reader = BufReader::new(stream);
    let mut line = String::new();
    while reader.read_line(&mut line).is_ok_and(|read| read > 0) {
        let path = line.split(' ').nth(1).expect("a request line").to_owned();
        let mut length = 0;
        loop {
            line.clear();
            reader.read_line(&mut line).expect("a header");
            if line.trim().is_empty() {
                break;
            }
            if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
                length = value.trim().parse().expect("a number");
            }
        }
        let mut body = vec![0; length];
        reader.read_exact(&mut body).expect("the body");
        into.lock().expect("lock").push((path, body));
        (&*stream).write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").expect("answered");
        line.clear();
    }
}

#[tokio::test]
async fn traces_metrics_and_events_reach_a_collector_before_shutdown_returns() {
    let (url, received) = collector();
    let otlp = Otlp::builder("shop").endpoint(&url).sampled(1.0).install().expect("sets up");
    let _guard = tracing::subscriber::set_default(tracing_subscriber::registry().with(otlp.layer()));
    let agent = Agent::builder("exported", Named::new("exported", [Turn::text("sold")]))
        .middleware(Telemetry::new().capture(Capture::Events))
        .build()
        .expect("builds");
    finished(agent.run("buy").await);
    otlp.shutdown().expect("the collector takes all");
    let received = received.lock().expect("lock");
    let holds = |path: &str, text: &str| {
        let of = |(p, body): &(String, Vec<u8>)| p == path && String::from_utf8_lossy(body).contains(text);
        assert!(received.iter().any(of), "{text} in {path}");
    };
    holds("/v1/traces", "invoke_agent exported");
    holds("/v1/traces", "chat exported");
    holds("/v1/traces", "shop");
    holds("/v1/metrics", "gen_ai.client.operation.duration");
    holds("/v1/logs", "gen_ai.client.inference.operation.details");
}

#[test]
fn what_cannot_be_used_is_refused_with_what_to_do() {
    let refused = Otlp::builder("shop").endpoint("https://collector").install().expect_err("no TLS");
    assert_eq!(refused.kind(), ErrorKind::Config);
    assert!(refused.message().contains("http://"));
    let refused = Otlp::builder("shop").sampled(2.0).install().expect_err("no part");
    assert!(refused.message().contains("0 to 1"), "{refused}");
}
