//! [`Batch`]: one that was sent.

use std::{fmt, sync::Arc, time::Duration};

use agent_core::{Result, model::Backoff};
use serde::{Deserialize, Serialize};
use tokio::time::sleep;

use super::{BatchId, anthropic, gemini, mistral, openai, result::BatchResults};
use crate::{
    BatchApi,
    provider::desk::{Desk, protocol},
};

/// A batch that was sent.
#[derive(Clone)]
pub struct Batch {
    pub(super) desk: Arc<Desk>,
    pub(super) api: BatchApi,
    pub(super) id: BatchId,
}

/// How far a batch has come.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct BatchStatus {
    /// Whether it has ended: nothing more will come, and there are results.
    pub ended: bool,
    /// Why no request of it was even tried, if that is so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failed: Option<String>,
    /// The provider's word for where it stands.
    pub state: String,
    /// Its requests. Some providers count them only at the end.
    pub counts: BatchCounts,
}

/// The requests of a batch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct BatchCounts {
    /// All.
    pub total: u64,
    /// Those that were answered.
    pub succeeded: u64,
    /// Those that ended in an error, were cancelled or were not reached in time.
    pub failed: u64,
}

impl BatchCounts {
    /// Those that have not ended.
    pub fn open(&self) -> u64 {
        self.total.saturating_sub(self.succeeded + self.failed)
    }
}

impl Batch {
    /// What names it, also in another process.
    pub fn id(&self) -> &BatchId {
        &self.id
    }

    /// How far it has come.
    ///
    /// # Errors
    /// The provider's; [`Protocol`](agent_core::ErrorKind::Protocol) if it does not say.
    pub async fn status(&self) -> Result<BatchStatus> {
        let (desk, id) = (&*self.desk, &*self.id.id);
        let status = match self.api {
            BatchApi::OpenAi => openai::status(&openai::get(desk, id).await?),
            BatchApi::Anthropic => anthropic::status(&anthropic::get(desk, id).await?),
            BatchApi::Gemini => gemini::status(&gemini::get(desk, id).await?),
            BatchApi::Mistral => mistral::status(&mistral::get(desk, id).await?),
        };
        // Who never says where it stands would be asked for ever.
        if status.state.is_empty() && !status.ended {
            return Err(protocol(&desk.provider.name, "it does not say where the batch stands"));
        }
        Ok(status)
    }

    /// Waits until it has ended: asks after about 5 seconds, then less and less often, every 5 minutes at last. Dropping the
    /// future ends the wait, not the batch.
    ///
    /// # Errors
    /// The provider's, if it cannot be asked again and again.
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

    /// The answers, in any order, as they are read. There are none before it has ended.
    ///
    /// # Errors
    /// The provider's; [`Busy`](agent_core::ErrorKind::Busy) if it has not ended.
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

    /// Asks the provider to end it early. What was answered by then stays, and is paid for.
    ///
    /// # Errors
    /// The provider's.
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
