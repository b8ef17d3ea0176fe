//! Viewers that stall: they connect, and read nothing until the run is over.

use std::time::{Duration, Instant};

use agent::core::BoxError;
use futures::future::try_join_all;

use super::{
    child::{Served, What},
    client::{self, Viewer},
    talker,
};

/// Viewers that stall.
const VIEWERS: usize = 50;
/// KiB of memory that one of them may take.
const MOST: f64 = 512.0;
/// When those come who are late: they have missed the beginning of the answer, and get nothing of it before it is whole.
const LATE: Duration = Duration::from_millis(200);
/// Times the processor that a run may need with viewers who are late, and seconds for their connections.
const SLOWER: (f64, f64) = (1.5, 0.5);

/// How a run went.
struct Went {
    seconds: f64,
    /// Seconds of a processor that the server used meanwhile.
    processor: f64,
    /// Bytes of memory at most.
    peak: u64,
    /// Viewers that have not all that the run's journal has.
    behind: usize,
}

/// True if viewers who stall cost a run of so many pieces no memory to speak of and catch up, and those who are late do not slow it.
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
        // A build without optimisation says nothing of time.
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
    // At once: the little room that a connection has here makes the kernel wait now and then for a fifth of a second.
    let caught_up = stalled.into_iter().map(async |(mut viewer, stream)| viewer.read(stream).await.map(|()| viewer));
    for viewer in try_join_all(caught_up).await? {
        behind += usize::from(!viewer.agrees(&all));
    }
    Ok(Went { seconds, processor, peak: peak.max(served.cost()?.0), behind })
}
