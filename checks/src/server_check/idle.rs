//! Many idle viewers.

use agent::core::BoxError;

use super::{
    child::{Served, What},
    client::{self, Viewer},
    talker,
};

/// Number of viewers that connect concurrently.
const AT_ONCE: usize = 100;

/// Maximum memory per viewer in KiB.
const MOST: f64 = 20.0;

/// Returns true if a viewer of an idle run stays within its memory limit.
pub(super) async fn measure(viewers: usize) -> Result<bool, BoxError> {
    let served = Served::begin(What::Agent, None, 0).await?;
    let run = client::start(&served.address, talker::NAME, "wait", "idle").await?;
    let (before, used) = served.cost()?;
    let mut open = Vec::with_capacity(viewers);
    while open.len() < viewers {
        let connect = async |_| {
            let mut stream = Viewer::default().connect(&served.address, &run).await?;
            // The first bytes show that the server has accepted the viewer.
            stream.read(1 << 12).await?;
            Ok::<_, std::io::Error>(stream)
        };
        open.extend(futures::future::try_join_all((0..AT_ONCE.min(viewers - open.len())).map(connect)).await?);
    }
    let (after, used_then) = served.cost()?;
    let each = after.saturating_sub(before) as f64 / 1024.0 / open.len().max(1) as f64;
    println!(
        "idle: {} viewers, {each:.1} KiB of memory each ({MOST} at most), {:.0} us of a processor to connect one",
        open.len(),
        (used_then - used) * 1e6 / open.len().max(1) as f64
    );
    Ok(each <= MOST)
}
