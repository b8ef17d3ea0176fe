//! A model with injected faults.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;

use super::{
    Fault, Faults,
    faults::{slow, stall},
};
use crate::{
    error::{Error, ErrorKind, Result, Retry},
    llm::{ModelInfo, ModelResponse},
    message::Block,
    model::{Model, ModelRequest},
};

const FAULTS: [Fault; 7] = [
    Fault::Slow,
    Fault::Stall,
    Fault::Cut,
    Fault::RateLimited,
    Fault::ServerError,
    Fault::Garbage,
    Fault::DuplicateIds,
];

/// A model with injected [`Faults`].
///
/// ```
/// use agent_core::{ErrorKind, History, Model, ModelRequest, testing::{Faults, FaultyModel, ScriptedModel, SeededRng, Turn, detached_run}};
///
/// # tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build()?.block_on(async {
/// let always = Faults::new(SeededRng::new(1)).percent(100).at_most(1);
/// let model = FaultyModel::new(ScriptedModel::new([Turn::text("hello"), Turn::text("hello")]), always.clone());
/// let run = detached_run(History::default());
/// let _ = model.call(ModelRequest::new(run.cx().clone())).await; // whatever it was
/// assert_eq!(always.drawn(), 1);
/// assert!(model.call(ModelRequest::new(run.cx().clone())).await.is_ok());
/// # });
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct FaultyModel<M> {
    model: M,
    faults: Faults,
}

impl<M: Model> FaultyModel<M> {
    /// Creates a model that delegates to `model`, with these faults.
    pub fn new(model: M, faults: Faults) -> Self {
        Self { model, faults }
    }
}

#[async_trait]
impl<M: Model> Model for FaultyModel<M> {
    fn info(&self) -> ModelInfo {
        self.model.info()
    }

    async fn call(&self, req: ModelRequest) -> Result<ModelResponse> {
        let fails = |kind, retry| Error::new(kind, "a simulated fault").with_retry(retry);
        let soon = Retry::Temporary(None);
        self.faults.shuffle().await;
        let fault = self.faults.draw(&FAULTS);
        match fault {
            Some(Fault::Stall) => {
                stall().await;
                return Err(fails(ErrorKind::Timeout, soon));
            }
            Some(Fault::RateLimited) => {
                return Err(fails(ErrorKind::RateLimited, Retry::Temporary(Some(Duration::from_secs(2)))));
            }
            Some(Fault::ServerError) => return Err(fails(ErrorKind::Provider, soon)),
            Some(Fault::Garbage) if self.faults.coin() => return Err(fails(ErrorKind::Protocol, Retry::Unknown)),
            Some(Fault::Slow) => slow().await,
            _ => {}
        }
        let mut response = self.model.call(req).await?;
        self.faults.shuffle().await;
        match fault {
            Some(Fault::Cut) => return Err(fails(ErrorKind::Truncated, soon)),
            Some(Fault::Garbage) => garble(&mut response),
            Some(Fault::DuplicateIds) => make_ids_equal(&mut response),
            _ => {}
        }
        Ok(response)
    }
}

/// Makes the arguments of the first call invalid.
fn garble(response: &mut ModelResponse) {
    if !response.message.has_calls() {
        return;
    }
    let call = response.message.blocks_mut().iter_mut().find_map(|block| match block {
        Block::ToolCall(call) => Some(call),
        _ => None,
    });
    if let Some(call) = call {
        call.arguments = "{\"cut\": ".into();
    }
}

/// Sets the id of the first call on all calls.
fn make_ids_equal(response: &mut ModelResponse) {
    let Some(id) = response.message.calls().next().map(|call| call.id.clone()) else { return };
    for block in response.message.blocks_mut() {
        if let Block::ToolCall(call) = block {
            Arc::clone_from(&mut call.id, &id);
        }
    }
}
