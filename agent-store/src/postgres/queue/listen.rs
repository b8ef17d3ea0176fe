//! Waking workers.

use std::time::Duration;

use crate::{postgres::connect::Location, queue::News};

/// How long a connection that was lost is left alone.
const PAUSE: Duration = Duration::from_secs(1);

/// Listens on a channel for ever. What was missed while there was no connection is news too.
pub(super) async fn listen(location: Location, channel: String, news: News) {
    loop {
        if let Err(e) = location.listen(&channel, || news.tell()).await {
            tracing::warn!(error = %e, "the queue is not listened to; workers poll until it is");
        }
        tokio::time::sleep(PAUSE).await;
    }
}
