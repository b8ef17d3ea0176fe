//! Token estimates of requests before they are sent.

use std::sync::Arc;

use agent_core::{ModelRequest, TokenCounter};

use crate::{call::Call, tokens::ApproximateCounter};

/// Token estimate of requests.
#[derive(Clone)]
pub(super) enum Estimate {
    /// The tokens of all texts, plus the maximum output.
    Counted(Arc<dyn TokenCounter>),
    /// Custom estimate of model requests; embedding requests are estimated roughly.
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
