//! Connections dropped at random positions of running runs.

use agent::{core::BoxError, testing::SeededRng};

use super::{
    child::{Served, What},
    client::{self, Viewer},
    talker,
};

/// Number of pieces of each run.
const PIECES: &str = "50";
/// Number of viewers of a run, each with its own random sequence.
const VIEWERS: usize = 10;
/// Maximum of bytes after which a connection is dropped.
const FARTHEST: u64 = 6_000;

/// Returns true if each viewer had every event once, and in order.
pub(super) async fn check(drops: usize) -> Result<bool, BoxError> {
    let served = Served::begin(What::Agent, None, 0).await?;
    let (mut done, mut runs, mut events, mut wrong) = (0, 0, 0, 0);
    while done < drops {
        let run = client::start(&served.address, talker::NAME, PIECES, &format!("drop-{runs}")).await?;
        let viewers =
            (0..VIEWERS).map(|n| view(&served.address, &run, SeededRng::new((runs * VIEWERS + n) as u64 + 1)));
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

async fn view(address: &str, run: &str, mut places: SeededRng) -> Result<(Viewer, usize), BoxError> {
    let (mut viewer, mut dropped) = (Viewer::default(), 0);
    while !viewer.is_over() {
        let mut stream = viewer.connect(address, run).await?;
        let mut left = usize::try_from(places.below(FARTHEST))?;
        while left > 0 && !viewer.is_over() {
            let piece = stream.read(left).await?;
            if piece.is_empty() {
                break;
            }
            left -= piece.len();
            viewer.take(&piece);
        }
        dropped += usize::from(!viewer.is_over());
    }
    Ok((viewer, dropped))
}
