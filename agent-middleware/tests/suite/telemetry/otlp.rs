//! Export to a collector, over HTTP and HTTPS.

use std::{
    io::{BufRead, BufReader, Read, Write},
    net::TcpListener,
    sync::{Arc, Mutex},
    thread,
};

use agent_core::{ErrorKind, testing::Turn};
use agent_exec::Agent;
use agent_middleware::{
    Telemetry,
    telemetry::{Capture, Otlp},
};
use rustls::{
    ServerConfig, ServerConnection, StreamOwned,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
};
use tracing_subscriber::layer::SubscriberExt;

use super::world::{Named, finished};

type Received = Arc<Mutex<Vec<(String, Vec<u8>)>>>;

/// The collector's certificate and key.
const PEM: &[u8] = include_bytes!("collector.pem");

/// Starts a collector that accepts everything and records paths and bodies.
fn collector(scheme: &str) -> (String, Received) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let url = format!("{scheme}://{}", listener.local_addr().expect("bound"));
    let received = Received::default();
    let into = received.clone();
    let tls = (scheme == "https").then(server_config);
    thread::spawn(move || {
        for stream in listener.incoming() {
            let (stream, into, tls) = (stream.expect("a connection"), into.clone(), tls.clone());
            thread::spawn(move || match tls {
                Some(tls) => {
                    let session = ServerConnection::new(tls).expect("a session");
                    serve(StreamOwned::new(session, stream), &into);
                }
                None => serve(stream, &into),
            });
        }
    });
    (url, received)
}

fn server_config() -> Arc<ServerConfig> {
    let certificates = CertificateDer::pem_slice_iter(PEM).collect::<Result<_, _>>().expect("certificates");
    let key = PrivateKeyDer::from_pem_slice(PEM).expect("a key");
    let config = ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()));
    let config = config.with_safe_default_protocol_versions().expect("sound").with_no_client_auth();
    Arc::new(config.with_single_cert(certificates, key).expect("sound"))
}

fn serve(stream: impl Read + Write, into: &Received) {
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
        let stream = reader.get_mut();
        stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").expect("answered");
        stream.flush().expect("answered");
        line.clear();
    }
}

#[tokio::test]
async fn traces_metrics_and_events_reach_a_collector_before_shutdown_returns() {
    all_arrive("http").await;
}

#[tokio::test]
async fn so_they_do_over_tls() {
    all_arrive("https").await;
}

async fn all_arrive(scheme: &str) {
    let (url, received) = collector(scheme);
    let builder = Otlp::builder("shop").endpoint(&url).sampled(1.0);
    let otlp = builder.certificates(PEM).install().expect("sets up");
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

#[tokio::test]
async fn a_collector_that_nobody_vouches_for_is_told_nothing() {
    let (url, received) = collector("https");
    let timeout = std::time::Duration::from_secs(2);
    let otlp = Otlp::builder("shop").endpoint(&url).timeout(timeout).install().expect("sets up");
    let _guard = tracing::subscriber::set_default(tracing_subscriber::registry().with(otlp.layer()));
    tracing::info_span!("secret").in_scope(|| {});
    let refused = otlp.shutdown().expect_err("it is not trusted");
    assert_eq!(refused.kind(), ErrorKind::Transport);
    assert!(received.lock().expect("lock").is_empty());
}

#[test]
fn what_cannot_be_used_is_refused_with_what_to_do() {
    let refused = Otlp::builder("shop").endpoint("collector:4318").install().expect_err("no scheme");
    assert_eq!(refused.kind(), ErrorKind::Config);
    assert!(refused.message().contains("http:// or https://"), "{refused}");
    let refused = Otlp::builder("shop").certificates("none").install().expect_err("no certificate");
    assert!(refused.message().contains("BEGIN CERTIFICATE"), "{refused}");
    let refused = Otlp::builder("shop").sampled(2.0).install().expect_err("no part");
    assert!(refused.message().contains("0 to 1"), "{refused}");
}
