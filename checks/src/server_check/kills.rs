//! A server that is killed while runs are under way, again and again; its viewers come back.

use std::{sync::Arc, time::Duration};

use agent::core::BoxError;
use tokio::sync::watch;

use super::{
    child::{Served, What},
    client::{self, Viewer},
};

/// Pieces of each run: it outlives some kills.
const PIECES: &str = "60";
/// Between two kills, so that a server comes to do something.
const BETWEEN: Duration = Duration::from_millis(400);
/// Before a viewer comes back to a server that is not there.
const PATIENCE: Duration = Duration::from_millis(50);

/// True if every run came to its end, and each viewer saw each kept event once and in order.
pub(super) async fn check(kills: usize, runs: usize) -> Result<bool, BoxError> {
    if kills == 0 {
        return Ok(true);
    }
    let dir = tempfile::tempdir()?;
    let store = dir.path().join("runs.db");
    let mut served = Served::begin(What::Agent, Some(&store), 0).await?;
    let address: Arc<str> = served.address.as_str().into();
    let port = address.rsplit(':').next().unwrap_or_default().parse()?;
    let (ending, is_ending) = watch::channel(false);
    let clients: Vec<_> =
        (0..runs).map(|n| tokio::spawn(keep_viewing(address.clone(), n, is_ending.clone()))).collect();
    for _ in 0..kills {
        tokio::time::sleep(BETWEEN).await;
        served.kill().await?;
        served = Served::begin(What::Agent, Some(&store), port).await?;
    }
    ending.send_replace(true);
    let (mut ended, mut wrong) = (0, 0);
    for client in clients {
        let seen = client.await??;
        for (run, viewer) in &seen {
            wrong += usize::from(!viewer.agrees(&client::whole(&address, run).await?));
        }
        ended += seen.len();
    }
    println!(
        "killed: {kills} times under {runs} runs at a time; {ended} runs ended, {wrong} viewers saw something else"
    );
    Ok(wrong == 0 && ended >= runs)
}

/// Views one run after the other until the kills are over, and the last to its end.
async fn keep_viewing(
    address: Arc<str>,
    client: usize,
    is_ending: watch::Receiver<bool>,
) -> Result<Vec<(String, Viewer)>, BoxError> {
    let mut seen = Vec::new();
    loop {
        let key = format!("{client}-{}", seen.len());
        // The same key gives the same run, also from the next server.
        let run = loop {
            match client::start(&address, PIECES, &key).await {
                Ok(run) => break run,
                Err(_) => tokio::time::sleep(PATIENCE).await,
            }
        };
        let mut viewer = Viewer::default();
        while !viewer.is_over {
            if view(&address, &run, &mut viewer).await.is_err() || !viewer.is_over {
                tokio::time::sleep(PATIENCE).await;
            }
        }
        seen.push((run, viewer));
        if *is_ending.borrow() {
            return Ok(seen);
        }
    }
}

async fn view(address: &str, run: &str, viewer: &mut Viewer) -> std::io::Result<()> {
    let mut stream = viewer.connect(address, run).await?;
    loop {
        let piece = stream.read(1 << 16).await?;
        if piece.is_empty() {
            return Ok(());
        }
        viewer.take(&piece);
    }
}
