//! Confirmation strategies of tools: when and where a person is asked.

use std::{fmt, sync::Arc};

use agent_core::ToolRequest;

use super::{Approver, Decision, Remember};

/// Decides whether a call must be confirmed.
#[derive(Clone, Default)]
#[non_exhaustive]
pub enum ConfirmationPolicy {
    /// Every call.
    #[default]
    Always,
    /// No call.
    Never,
    /// Until the same tool was approved with the same arguments; the approval lasts for the
    /// session.
    Once,
    /// Calls that may be destructive, and those not declared non-destructive: see
    /// [`ToolRequest::is_risky`].
    IfRisky,
    /// Calls for which the function returns true.
    Custom(Arc<dyn Fn(&ToolRequest) -> bool + Send + Sync>),
}

impl ConfirmationPolicy {
    /// Asks if `asks` returns true. It receives the call with its arguments, and the run.
    pub fn custom(asks: impl Fn(&ToolRequest) -> bool + Send + Sync + 'static) -> Self {
        Self::Custom(Arc::new(asks))
    }
}

/// Confirmation strategy of a tool: when and where a person is asked.
///
/// ```
/// use agent_middleware::{Approval, approval::{ConfirmationPolicy, ConfirmationStrategy, ConsoleApprover}};
///
/// let approval = Approval::new()
///     .confirm(["pay"], ConfirmationStrategy::suspending(ConfirmationPolicy::Always))
///     .confirm(["read_file", "list_files"], ConfirmationStrategy::blocking(ConfirmationPolicy::Once, ConsoleApprover::new()))
///     .confirm(["*"], ConfirmationStrategy::suspending(ConfirmationPolicy::custom(|call| call.args.get("force").is_some())));
/// # drop(approval);
/// ```
#[derive(Clone)]
pub struct ConfirmationStrategy {
    policy: ConfirmationPolicy,
    pub(super) approver: Option<Arc<dyn Approver>>,
}

impl ConfirmationStrategy {
    /// Lets `approver` decide inside the process, while the call waits.
    pub fn blocking(policy: ConfirmationPolicy, approver: impl Approver) -> Self {
        Self { policy, approver: Some(Arc::new(approver)) }
    }

    /// Suspends the run with a question; the run resumes when it is answered.
    pub fn suspending(policy: ConfirmationPolicy) -> Self {
        Self { policy, approver: None }
    }

    pub(super) fn asks(&self, req: &ToolRequest) -> bool {
        match &self.policy {
            ConfirmationPolicy::Always | ConfirmationPolicy::Once => true,
            ConfirmationPolicy::Never => false,
            ConfirmationPolicy::IfRisky => req.is_risky(),
            ConfirmationPolicy::Custom(asks) => asks(req),
        }
    }

    /// Adds the policy's scope to the decision.
    pub(super) fn remembering(&self, decision: Decision) -> Decision {
        match (&self.policy, decision) {
            (ConfirmationPolicy::Once, Decision::Approve { remember: None, always }) => {
                Decision::Approve { remember: Some(Remember::Call), always }
            }
            (_, decision) => decision,
        }
    }
}

/// Strategies by tool.
#[derive(Default)]
pub(super) struct Strategies(Vec<(Vec<String>, ConfirmationStrategy)>);

impl Strategies {
    pub(super) fn add(&mut self, tools: Vec<String>, strategy: ConfirmationStrategy) {
        self.0.push((tools, strategy));
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the strategy of a tool: the one for its name alone, otherwise the first group that
    /// contains it, otherwise that of `*`.
    pub(super) fn find(&self, tool: &str) -> Option<&ConfirmationStrategy> {
        let own = self.0.iter().find(|(tools, _)| matches!(tools.as_slice(), [name] if name == tool));
        let group = || self.0.iter().find(|(tools, _)| tools.iter().any(|name| name == tool));
        let rest = || self.0.iter().find(|(tools, _)| tools.iter().any(|name| name == "*"));
        own.or_else(group).or_else(rest).map(|(_, strategy)| strategy)
    }
}

impl fmt::Debug for ConfirmationPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Always => "Always",
            Self::Never => "Never",
            Self::Once => "Once",
            Self::IfRisky => "IfRisky",
            Self::Custom(_) => "Custom",
        })
    }
}

impl fmt::Debug for ConfirmationStrategy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let blocking = self.approver.is_some();
        f.debug_struct("ConfirmationStrategy").field("policy", &self.policy).field("blocking", &blocking).finish()
    }
}
