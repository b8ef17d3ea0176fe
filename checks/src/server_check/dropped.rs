//! Connections that are dropped at random places of runs that are under way.

use agent::core::BoxError;

use super::{
    child::{Served, What},
    client::{self, Viewer},
};

/// Pieces of each run.
const PIECES: &str = "50";
/// Viewers of a run, each of which has its own luck.
const VIEWERS: usize = 10;
/// Bytes after which a connection is dropped, at most.
const FARTHEST: u64 = 6_000;

/// Random enough for places, and the same each time.
struct Places(u64);

impl Places {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % FARTHEST
    }
}

/// True if each viewer had every event once, and in order.
pub(super) async fn check(drops: usize) -> Result<bool, BoxError> {
    let served = Served::begin(What::Agent, None, 0).await?;
    let (mut done, mut runs, mut events, mut wrong) = (0, 0, 0, 0);
    while done < drops {
        let run = client::start(&served.address, PIECES, &format!("drop-{runs}")).await?;
        let viewers = (0..VIEWERS).map(|n| view(&served.address, &run, Places((runs * VIEWERS + n) as u64 + 1)));
        let seen = futures::future::try_join_all(viewers).await?;
        let all = client::whole(&served.address, &run).await?;
        for (viewer, dropped) in seen {
            wrong += usize::from(!viewer.agrees(&all));
            (done, events) = (done + dropped, events + viewer.ids.len());
        }
        runs += 1;
    }
    println!(
        "dropped: {done} connections of {} viewers of {runs} runs, {events} events, {wrong} viewers saw something else",
        runs * VIEWERS
    );
    Ok(wrong == 0)
}

async fn view(address: &str, run: &str, mut places: Places) -> Result<(Viewer, usize), BoxError> {
    let (mut viewer, mut dropped) = (Viewer::default(), 0);
    while !viewer.is_over {
        let mut stream = viewer.connect(address, run).await?;
        let mut left = usize::try_from(places.next())?;
        while left > 0 && !viewer.is_over {
            let piece = stream.read(left).await?;
            if piece.is_empty() {
                break;
            }
            left -= piece.len();
            viewer.take(&piece);
        }
        dropped += usize::from(!viewer.is_over);
    }
    Ok((viewer, dropped))
}
