//! Side model calls: calls of models other than the agent's own.

use crate::{
    cx::{EngineCx, RunCx},
    error::{Error, ErrorKind, Result},
    llm::ModelResponse,
    model::{Model, ModelRequest},
};

impl RunCx {
    /// Calls a model other than the agent's own, for a middleware that needs a classification or a
    /// summary. The budget is reserved before the call and settled after it, and the usage counts
    /// as the run's. Call it within [`decide`](Self::decide), so that a resumed step does not
    /// repeat it.
    ///
    /// # Errors
    /// Those of the model; [`ErrorKind::Limit`] if a budget does not allow the call;
    /// [`ErrorKind::NonDeterminism`] in a replay, which uses recorded decisions and calls no model.
    ///
    /// ```
    /// use std::sync::Arc;
    ///
    /// use agent_core::{History, Message, Model, ModelRequest, Result, RunCx};
    ///
    /// async fn opinion(cx: &RunCx, model: &dyn Model, question: &str) -> Result<String> {
    ///     let mut request = ModelRequest::new(cx.clone());
    ///     request.messages = History::from_messages([Message::user(question)])?;
    ///     request.model = Some(Arc::new(model.info()));
    ///     Ok(cx.call_model(model, request).await?.message.text())
    /// }
    /// ```
    pub async fn call_model(&self, model: &dyn Model, mut request: ModelRequest) -> Result<ModelResponse> {
        if self.0.log.is_replay() {
            let message = "a replay asks no model: a call of a model beside the agent's own belongs into decide(..)";
            return Err(Error::new(ErrorKind::NonDeterminism, message));
        }
        if self.is_in_reserved_call() {
            request.cx = request.cx.in_reserved_call();
        }
        let (info, reserved) = (request.model.clone(), EngineCx(self).reserve_model_call(&mut request).await?);
        let mut answered = model.call(request).await;
        if let Ok(response) = &mut answered {
            EngineCx(self).complete_usage(reserved.as_ref(), response);
            self.0.log.record_side_call(response.usage);
        }
        let settled = self.budget().settle_model_call(reserved, info.as_deref(), &answered).await;
        answered.and_then(|response| settled.map(|()| response))
    }
}
