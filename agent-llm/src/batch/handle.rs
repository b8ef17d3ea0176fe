//! [`Batch`]: handle of a submitted batch.

use std::{fmt, sync::Arc, time::Duration};

use agent_core::{Result, model::Backoff};
use serde::{Deserialize, Serialize};
use tokio::time::sleep;

use super::{BatchId, anthropic, gemini, mistral, openai, result::BatchResults};
use crate::{
    BatchApi,
    provider::desk::{Desk, protocol},
};

/// Handle of a submitted batch.
#[derive(Clone)]
pub struct Batch {
    pub(super) desk: Arc<Desk>,
    pub(super) api: BatchApi,
    pub(super) id: BatchId,
}

/// Progress of a batch.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct BatchStatus {
    /// True once the batch has ended: results are available, and no more will follow.
    pub ended: bool,
    /// Reason why the provider did not attempt any request, if the batch as a whole failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failed: Option<String>,
    /// The provider's name for the batch's state.
    pub state: String,
    /// Request counts. Some providers report them only at the end.
    pub counts: BatchCounts,
}

/// Numbers of requests in a batch, by outcome.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct BatchCounts {
    /// All requests.
    pub total: u64,
    /// Requests that were answered.
    pub succeeded: u64,
    /// Requests that failed, were cancelled or expired.
    pub failed: u64,
}

impl BatchCounts {
    /// Returns the number of requests that have not ended.
    pub fn open(&self) -> u64 {
        self.total.saturating_sub(self.succeeded + self.failed)
    }
}

impl Batch {
    /// Returns the batch's id, which is also valid in another process.
    pub fn id(&self) -> &BatchId {
        &self.id
    }

    /// Asks the provider for the batch's progress.
    ///
    /// # Errors
    /// The provider's error; [`Protocol`](agent_core::ErrorKind::Protocol) if the response does not
    /// name a state.
    pub async fn status(&self) -> Result<BatchStatus> {
        let (desk, id) = (&*self.desk, &*self.id.id);
        let status = match self.api {
            BatchApi::OpenAi => openai::status(&openai::get(desk, id).await?),
            BatchApi::Anthropic => anthropic::status(&anthropic::get(desk, id).await?),
            BatchApi::Gemini => gemini::status(&gemini::get(desk, id).await?),
            BatchApi::Mistral => mistral::status(&mistral::get(desk, id).await?),
        };
        // Polling a batch whose provider reports no state would never end.
        if status.state.is_empty() && !status.ended {
            return Err(protocol(&desk.provider.name, "it does not say where the batch stands"));
        }
        Ok(status)
    }

    /// Waits until the batch has ended: polls after about 5 seconds, then at growing intervals of
    /// up to 5 minutes.
    ///
    /// # Cancellation safety
    /// Dropping the future ends the wait; the batch continues.
    ///
    /// # Errors
    /// The provider's error, unless polling again may help.
    pub async fn wait(&self) -> Result<BatchStatus> {
        let longest = Duration::from_secs(300);
        let backoff = Backoff::new().retries(u32::MAX).initial_delay(Duration::from_secs(5)).factor(1.5).jitter(0.2);
        let backoff = backoff.max_delay(longest);
        for asked in 1.. {
            let status = self.status().await?;
            if status.ended {
                return Ok(status);
            }
            sleep(backoff.delay(asked, None).unwrap_or(longest)).await;
        }
        self.status().await
    }

    /// Streams the results, in any order, as they arrive. The batch must have ended.
    ///
    /// # Errors
    /// The provider's error; [`Busy`](agent_core::ErrorKind::Busy) if the batch has not ended.
    pub async fn results(&self) -> Result<BatchResults> {
        let (desk, id) = (&*self.desk, &*self.id.id);
        let places = match self.api {
            BatchApi::OpenAi => openai::results(desk, id).await?,
            BatchApi::Anthropic => anthropic::results(desk, id).await?,
            BatchApi::Gemini => gemini::results(desk, id).await?,
            BatchApi::Mistral => mistral::results(desk, id).await?,
        };
        Ok(BatchResults::new(self.desk.clone(), places))
    }

    /// Asks the provider to cancel the batch. Requests answered by then keep their results, and are
    /// billed.
    ///
    /// # Errors
    /// The provider's error.
    pub async fn cancel(&self) -> Result<()> {
        let (desk, id) = (&*self.desk, &*self.id.id);
        match self.api {
            BatchApi::OpenAi => openai::cancel(desk, id).await,
            BatchApi::Anthropic => anthropic::cancel(desk, id).await,
            BatchApi::Gemini => gemini::cancel(desk, id).await,
            BatchApi::Mistral => mistral::cancel(desk, id).await,
        }
    }
}

impl fmt::Debug for Batch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Batch").field("id", &self.id).finish_non_exhaustive()
    }
}
