//! A viewer that stalls: it connects, and reads nothing.

use std::time::Instant;

use agent::core::BoxError;

use super::{
    child::{Served, What},
    client::{self, Viewer},
};

/// Measures a run of so many pieces with nobody who looks, and with viewers that stall.
pub(super) async fn measure(pieces: usize) -> Result<(), BoxError> {
    let mut told = Vec::new();
    for viewers in [0, 10] {
        let served = Served::begin(What::Agent, None, 0).await?;
        let (before, _) = served.cost()?;
        let began = Instant::now();
        let run = client::start(&served.address, &format!("{pieces}!"), "stalled").await?;
        let mut stalled = Vec::new();
        for _ in 0..viewers {
            stalled.push(Viewer::default().connect(&served.address, &run).await?);
        }
        client::whole(&served.address, &run).await?;
        let (after, _) = served.cost()?;
        told.push(format!(
            "{viewers} stalled viewers {:.2} s and {} KiB more memory",
            began.elapsed().as_secs_f64(),
            after.saturating_sub(before) >> 10
        ));
    }
    println!("stalled: {pieces} pieces with {}", told.join(", with "));
    Ok(())
}
