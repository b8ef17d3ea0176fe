//! Batch requests: many requests at half the price, answered within a day: [`Batches`].
//!
//! For evaluations and other work without a waiting user. The model's own wire encodes the requests
//! and decodes the answers; a batch only transports them.
//!
//! ```no_run
//! use agent_llm::{BatchRequest, batches};
//! use futures::StreamExt;
//!
//! # async fn example() -> agent_core::Result<()> {
//! let batches = batches("anthropic:claude-opus-4-5")?;
//! let questions = ["Why is the sky blue?", "Why is it dark at night?"];
//! let requests = questions.iter().enumerate().map(|(at, text)| (format!("q{at}"), BatchRequest::user(*text)));
//! let batch = batches.submit(requests).await?;
//! let id = serde_json::to_string(batch.id()).expect("an id is JSON"); // another process can resume from it
//!
//! batch.wait().await?;
//! let mut results = batch.results().await?;
//! while let Some(result) = results.next().await {
//!     let result = result?;
//!     println!("{}: {:?}", result.custom_id, result.answer.map(|answer| answer.message.text()));
//! }
//! # drop(id); Ok(()) }
//! ```

mod anthropic;
mod gemini;
mod handle;
mod mistral;
mod openai;
mod request;
mod result;

use std::{collections::BTreeSet, fmt, sync::Arc};

use agent_core::{Error, ErrorKind, Result, Retry};
use serde::{Deserialize, Serialize};

use self::request::Written;
pub use self::{
    handle::{Batch, BatchCounts, BatchStatus},
    request::BatchRequest,
    result::{BatchResult, BatchResults},
};
use crate::{BatchApi, ModelBuilder, Wire, model, provider::desk::Desk};

/// Batch API client of one model.
#[derive(Clone)]
pub struct Batches {
    desk: Arc<Desk>,
    api: BatchApi,
}

/// Identifies a batch, also in another process.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[non_exhaustive]
pub struct BatchId {
    /// Name of the provider that runs the batch.
    pub provider: String,
    /// The provider's id of the batch.
    pub id: String,
}

/// Returns the batch client of the named model, configured from the environment.
///
/// For another key, address or transport, begin with a model: [`ModelBuilder::batches`].
///
/// # Errors
/// [`Config`](agent_core::ErrorKind::Config) as [`ModelBuilder::batches`].
pub fn batches(name: impl Into<String>) -> Result<Batches> {
    model(name).batches()
}

impl ModelBuilder {
    /// Returns the batch client of this model, with the model's key, address and transport.
    ///
    /// # Errors
    /// [`Config`](agent_core::ErrorKind::Config) as [`build`](Self::build), and if the provider
    /// does not support batches on this wire.
    pub fn batches(self) -> Result<Batches> {
        let desk = self.desk()?;
        let fits = |api: &BatchApi| match api {
            BatchApi::OpenAi => matches!(desk.wire, Wire::Chat | Wire::Responses),
            BatchApi::Mistral => desk.wire == Wire::Chat,
            BatchApi::Anthropic => desk.wire == Wire::Messages,
            BatchApi::Gemini => desk.wire == Wire::Generate,
        };
        let Some(api) = desk.provider.batch.filter(fits) else {
            let (name, wire) = (&desk.provider.name, desk.wire);
            return Err(Error::config(format!("nobody has said how {name} takes batches on the wire {wire}")));
        };
        Ok(Batches { desk: Arc::new(desk), api })
    }
}

impl Batches {
    /// Submits requests, each with a custom id that identifies its result.
    ///
    /// # Errors
    /// [`InvalidRequest`](agent_core::ErrorKind::InvalidRequest) for an empty batch, a duplicate
    /// id, or a request that the model's wire cannot express; otherwise the provider's error. A
    /// failed submission is not retried: the provider may have accepted the batch, which would be
    /// billed twice.
    pub async fn submit(&self, requests: impl IntoIterator<Item = (impl Into<String>, BatchRequest)>) -> Result<Batch> {
        let requests = request::write(&self.desk, requests)?;
        let mut ids = BTreeSet::new();
        let twice = requests.iter().find(|request| !ids.insert(request.custom_id.as_str()));
        if let Some(twice) = twice {
            return Err(invalid(format!("two requests of the batch have the id '{}'", twice.custom_id)));
        }
        if requests.is_empty() {
            return Err(invalid("a batch needs a request".to_owned()));
        }
        let id = match self.api {
            BatchApi::OpenAi => openai::submit(&self.desk, &requests).await?,
            BatchApi::Anthropic => anthropic::submit(&self.desk, &requests).await?,
            BatchApi::Gemini => gemini::submit(&self.desk, &requests).await?,
            BatchApi::Mistral => mistral::submit(&self.desk, &requests).await?,
        };
        self.open(BatchId { provider: self.desk.provider.name.clone(), id })
    }

    /// Returns a handle of the batch with this id, which another process may have submitted.
    ///
    /// # Errors
    /// [`Config`](agent_core::ErrorKind::Config) if the id belongs to another provider.
    pub fn open(&self, id: BatchId) -> Result<Batch> {
        if id.provider != self.desk.provider.name {
            return Err(Error::config(format!("{} has the batch, and not {}", id.provider, self.desk.provider.name)));
        }
        Ok(Batch { desk: self.desk.clone(), api: self.api, id })
    }
}

pub(crate) fn invalid(message: String) -> Error {
    Error::new(ErrorKind::InvalidRequest, message).with_retry(Retry::Permanent)
}

impl fmt::Debug for Batches {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Batches")
            .field("provider", &self.desk.provider.name)
            .field("model", &self.desk.model.codec().origin().model())
            .finish_non_exhaustive()
    }
}
