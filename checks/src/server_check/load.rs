//! Many concurrent streaming runs, relative to a bare stream of the same events.

use std::time::Duration;

use agent::core::BoxError;

use super::{
    child::{Served, What},
    client,
    talker::{self, now},
};

/// Cost of one kind of server.
struct Took {
    events: usize,
    /// CPU microseconds per event.
    processor: f64,
    /// Memory per stream in KiB.
    memory: f64,
    /// Milliseconds from the sending of a piece to its receipt: median and 99th percentile.
    late: (f64, f64),
}

/// Maximum cost of an event, as a multiple of a bare stream's; not enforced in debug builds.
const MOST: f64 = 2.0;

/// Returns true if every piece of every run arrived, within the cost limit.
pub(super) async fn measure(runs: usize, pieces: usize) -> Result<bool, BoxError> {
    let (bare, agent) = (streams(What::Bare, runs, pieces).await?, streams(What::Agent, runs, pieces).await?);
    for (name, took) in [("bare", &bare), ("agent", &agent)] {
        println!(
            "{name:5}: {runs} streams, {} pieces, {:.1} us of a processor each, {:.0} KiB of memory a stream, late by {:.1} ms (p50) {:.1} ms (p99)",
            took.events, took.processor, took.memory, took.late.0, took.late.1
        );
    }
    let times = agent.processor / bare.processor.max(0.001);
    println!("agent to bare: {times:.1} times the processor, {:.1} ms later (p99)", agent.late.1 - bare.late.1);
    let is_cheap = times <= MOST || cfg!(debug_assertions);
    Ok(is_cheap && bare.events == runs * pieces && agent.events == runs * pieces)
}

async fn streams(what: What, runs: usize, pieces: usize) -> Result<Took, BoxError> {
    let served = Served::begin(what, None, 0).await?;
    let (before, used) = served.cost()?;
    let mut all = Box::pin(futures::future::try_join_all((0..runs).map(|_| stream(what, &served.address, pieces))));
    let mut peak = before;
    let late = loop {
        // Peak memory while all are active.
        peak = peak.max(served.cost()?.0);
        match tokio::time::timeout(Duration::from_millis(100), &mut all).await {
            Ok(late) => break late?,
            Err(_) => continue,
        }
    };
    let (_, used_then) = served.cost()?;
    let mut late: Vec<f64> = late.into_iter().flatten().collect();
    late.sort_by(f64::total_cmp);
    let at = |share: usize| late.get(late.len().saturating_sub(1) * share / 100).copied().unwrap_or_default();
    Ok(Took {
        events: late.len(),
        processor: (used_then - used) * 1e6 / late.len().max(1) as f64,
        memory: peak.saturating_sub(before) as f64 / 1024.0 / runs.max(1) as f64,
        late: (at(50), at(99)),
    })
}

/// Returns the delay of each piece of one stream, in milliseconds.
async fn stream(what: What, address: &str, pieces: usize) -> Result<Vec<f64>, BoxError> {
    let mut stream = match what {
        What::Bare => client::get(address, &format!("/{pieces}")).await?,
        What::Agent => client::run(address, talker::NAME, &pieces.to_string()).await?,
    };
    let (mut rest, mut late) = (Vec::new(), Vec::with_capacity(pieces));
    loop {
        let piece = stream.read(1 << 16).await?;
        if piece.is_empty() {
            return Ok(late);
        }
        let read = now();
        rest.extend_from_slice(&piece);
        while let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = rest.drain(..=end).collect();
            let said =
                std::str::from_utf8(&line)?.split_once("\"delta\":\"").and_then(|(_, said)| said.split(' ').next());
            if let Some(said) = said.and_then(|said| said.parse::<u64>().ok()) {
                late.push(read.saturating_sub(said) as f64 / 1e6);
            }
        }
    }
}
