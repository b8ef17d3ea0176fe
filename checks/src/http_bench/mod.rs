//! Concurrent streaming calls over HTTP/1.1 and HTTP/2: number of connections, time to the first
//! byte and to the last.
//!
//! `cargo run --release -p agent-checks -- http-bench`

mod server;

use std::time::{Duration, Instant};

use agent::{
    core::BoxError,
    llm::{HttpTransport, Transport},
};
use bytes::Bytes;
use futures::{StreamExt, future::join_all};
use http::Request;

use self::server::Server;

/// Measures concurrent streaming calls over HTTP/1.1 and over HTTP/2.
///
/// Each call receives a stream of pieces, with a pause before each. Prints the time to the first
/// byte (median, 99th percentile) and to the last, the number of opened connections, and the delay
/// of the 99th percentile over HTTP/2 relative to HTTP/1.1. Exits with 1 if a response is
/// incomplete, or if calls over HTTP/2 used more than one connection per hundred.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Number of concurrent calls.
    #[arg(long, default_value_t = 1_000)]
    calls: usize,
    /// Number of pieces per response.
    #[arg(long, default_value_t = 50)]
    pieces: usize,
    /// Milliseconds before each piece.
    #[arg(long, default_value_t = 20)]
    pause: u64,
    /// Number of rounds, alternating between the protocols.
    #[arg(long, default_value_t = 3)]
    rounds: usize,
}

/// Timings of one call.
struct Took {
    first: Duration,
    last: Duration,
    bytes: usize,
}

/// Returns true if all responses were complete and few connections were enough.
pub(crate) async fn run(args: &Args) -> Result<bool, BoxError> {
    let mut holds = true;
    for _ in 0..args.rounds {
        let mut slowest = [0.0; 2];
        for is_http2 in [false, true] {
            let server = Server::start(is_http2, args.pieces, Duration::from_millis(args.pause)).await?;
            let transport = HttpTransport::builder().no_proxy();
            let transport = if is_http2 { transport.http2_prior_knowledge() } else { transport }.build()?;
            let calls = (0..args.calls).map(|_| call(&transport, server.url()));
            let mut took = join_all(calls).await.into_iter().collect::<Result<Vec<_>, BoxError>>()?;
            let connections = server.connections();
            let name = if is_http2 { "HTTP/2" } else { "HTTP/1.1" };
            let is_whole = took.iter().all(|took| took.bytes == args.pieces * server::PIECE.len());
            let at = |took: &[Took], share: usize| took[(took.len() - 1) * share / 100].first.as_secs_f64() * 1e3;
            took.sort_by_key(|took| took.first);
            let last = took.iter().map(|took| took.last).max().unwrap_or_default().as_secs_f64() * 1e3;
            let (half, slow) = (at(&took, 50), at(&took, 99));
            println!(
                "{name:9} {connections:5} connections, first byte {half:6.1} ms (p50) {slow:6.1} ms (p99), last byte {last:7.1} ms",
            );
            slowest[usize::from(is_http2)] = slow;
            holds &= is_whole && (!is_http2 || connections <= args.calls.div_ceil(100));
        }
        println!("first byte (p99), HTTP/2 to HTTP/1.1: {:.2}", slowest[1] / slowest[0]);
    }
    Ok(holds)
}

async fn call(transport: &HttpTransport, url: &str) -> Result<Took, BoxError> {
    let began = Instant::now();
    let answer = transport.send(Request::post(url).body(Bytes::from_static(b"{}"))?).await?;
    let (mut body, mut bytes, mut first) = (answer.into_body(), 0, None);
    while let Some(piece) = body.next().await.transpose()? {
        first.get_or_insert_with(|| began.elapsed());
        bytes += piece.len();
    }
    Ok(Took { first: first.unwrap_or_default(), last: began.elapsed(), bytes })
}
