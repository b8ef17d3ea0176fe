//! Wake-up of workers by notifications.

use std::time::Duration;

use crate::{postgres::connect::Location, queue::News};

/// Pause before a lost connection is reopened.
const PAUSE: Duration = Duration::from_secs(1);

/// Listens on a channel forever. Also wakes workers after each reconnection, for notifications
/// missed meanwhile.
pub(super) async fn listen(location: Location, channel: String, news: News) {
    loop {
        if let Err(e) = location.listen(&channel, || news.tell()).await {
            tracing::warn!(error = %e, "listening on the queue failed; workers poll until it is restored");
        }
        tokio::time::sleep(PAUSE).await;
    }
}
