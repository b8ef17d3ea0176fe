//! Stalled viewers: they connect, and read nothing until the run has ended.

use std::time::{Duration, Instant};

use agent::core::BoxError;
use futures::future::try_join_all;

use super::{
    child::{Served, What},
    client::{self, Viewer},
    talker,
};

/// Number of stalled viewers.
const VIEWERS: usize = 50;
/// Maximum memory per stalled viewer in KiB.
const MOST: f64 = 512.0;
/// Delay of the late viewers: they have missed the beginning of the response, and receive nothing
/// of it before it is complete.
const LATE: Duration = Duration::from_millis(200);
/// Maximum CPU time of a run with late viewers: a factor, and seconds for their connections.
const SLOWER: (f64, f64) = (1.5, 0.5);

/// Measurements of a run.
struct Went {
    seconds: f64,
    /// CPU seconds of the server meanwhile.
    processor: f64,
    /// Peak memory in bytes.
    peak: u64,
    /// Number of viewers that lack events of the run's journal.
    behind: usize,
}

/// Returns true if stalled viewers cost a run of so many pieces little memory and catch up, and
/// late viewers do not slow it.
pub(super) async fn measure(pieces: usize) -> Result<bool, BoxError> {
    let alone = run(pieces, 0, Duration::ZERO).await?;
    println!(
        "stalled: {pieces} pieces without a viewer in {:.1} s, {:.1} s of a processor, {} MiB at most",
        alone.seconds,
        alone.processor,
        alone.peak >> 20
    );
    let mut holds = true;
    for (when, after) in [("from the beginning", Duration::ZERO), ("from later on", LATE)] {
        let watched = run(pieces, VIEWERS, after).await?;
        let each = watched.peak.saturating_sub(alone.peak) as f64 / 1024.0 / VIEWERS as f64;
        println!(
            "stalled: with {VIEWERS} that stall {when} in {:.1} s, {:.1} s of a processor, {each:.0} KiB more for each ({MOST} at most), {} did not catch up",
            watched.seconds, watched.processor, watched.behind
        );
        let (times, seconds) = SLOWER;
        // Timings of a build without optimisation are meaningless.
        let is_slowed =
            !cfg!(debug_assertions) && !after.is_zero() && watched.processor > alone.processor * times + seconds;
        holds &= each <= MOST && watched.behind == 0 && !is_slowed;
    }
    Ok(holds)
}

async fn run(pieces: usize, viewers: usize, after: Duration) -> Result<Went, BoxError> {
    let served = Served::begin(What::Agent, None, 0).await?;
    let began = Instant::now();
    let run = client::start(&served.address, talker::NAME, &format!("{pieces}!"), "stalled").await?;
    tokio::time::sleep(after).await;
    let mut stalled = Vec::new();
    for _ in 0..viewers {
        let mut viewer = Viewer::default();
        let stream = viewer.connect(&served.address, &run).await?;
        stalled.push((viewer, stream));
    }
    let mut peak = 0;
    let path = format!("/api/runs/{run}");
    while client::ask(&served.address, "GET", &path, "", "").await?.1["status"] != "finished" {
        peak = peak.max(served.cost()?.0);
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    let (seconds, (_, processor), mut behind) = (began.elapsed().as_secs_f64(), served.cost()?, 0);
    let all = client::whole(&served.address, &run).await?;
    // Concurrently: the small receive buffer sometimes makes the kernel wait for a fifth of a
    // second.
    let caught_up = stalled.into_iter().map(async |(mut viewer, stream)| viewer.read(stream).await.map(|()| viewer));
    for viewer in try_join_all(caught_up).await? {
        behind += usize::from(!viewer.agrees(&all));
    }
    Ok(Went { seconds, processor, peak: peak.max(served.cost()?.0), behind })
}
