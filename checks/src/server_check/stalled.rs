//! Viewers that stall: they connect, and read nothing until the run is over.

use std::time::{Duration, Instant};

use agent::core::BoxError;

use super::{
    child::{Served, What},
    client::{self, Viewer},
    talker,
};

/// Viewers that stall.
const VIEWERS: usize = 10;
/// KiB of memory that one of them may take.
const MOST: f64 = 512.0;

/// How a run went.
struct Went {
    seconds: f64,
    /// Bytes of memory at most.
    peak: u64,
    /// Viewers that have not all that the run's journal has.
    behind: usize,
}

/// True if viewers who stall cost a run of so many pieces no memory to speak of, and catch up.
pub(super) async fn measure(pieces: usize) -> Result<bool, BoxError> {
    let (alone, watched) = (run(pieces, 0).await?, run(pieces, VIEWERS).await?);
    let each = watched.peak.saturating_sub(alone.peak) as f64 / 1024.0 / VIEWERS as f64;
    println!(
        "stalled: {pieces} pieces in {:.1} s without a viewer ({} MiB at most), in {:.1} s with {VIEWERS} that stall: {each:.0} KiB more for each ({MOST} at most), {} did not catch up",
        alone.seconds,
        alone.peak >> 20,
        watched.seconds,
        watched.behind
    );
    Ok(each <= MOST && watched.behind == 0)
}

async fn run(pieces: usize, viewers: usize) -> Result<Went, BoxError> {
    let served = Served::begin(What::Agent, None, 0).await?;
    let began = Instant::now();
    let run = client::start(&served.address, talker::NAME, &format!("{pieces}!"), "stalled").await?;
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
    let (seconds, mut behind) = (began.elapsed().as_secs_f64(), 0);
    let all = client::whole(&served.address, &run).await?;
    for (mut viewer, stream) in stalled {
        viewer.read(stream).await?;
        behind += usize::from(!viewer.agrees(&all));
    }
    Ok(Went { seconds, peak: peak.max(served.cost()?.0), behind })
}
