//! How many tokens a request may use, before it is sent.

use std::sync::Arc;

use agent_core::{ModelRequest, TokenCounter};

use crate::{call::Call, tokens::ApproximateCounter};

/// How the tokens of requests are estimated.
#[derive(Clone)]
pub(super) enum Estimate {
    /// By the tokens of their texts, and of the longest answer.
    Counted(Arc<dyn TokenCounter>),
    /// As somebody said for models' requests; an embedder's are counted roughly.
    Told(Arc<dyn Fn(&ModelRequest) -> u64 + Send + Sync>),
}

impl Estimate {
    pub(super) fn of(&self, req: &impl Call) -> u64 {
        match (self, req.of_model()) {
            (Self::Counted(counter), _) => req.tokens(&**counter),
            (Self::Told(estimate), Some(req)) => estimate(req),
            (Self::Told(_), None) => req.tokens(&ApproximateCounter),
        }
    }
}
