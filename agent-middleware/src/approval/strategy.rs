//! How the calls of a tool are confirmed: whether somebody is asked, and where.

use std::{fmt, sync::Arc};

use agent_core::ToolRequest;

use super::{Approver, Decision, Remember};

/// Whether somebody is asked about a call.
#[derive(Clone, Default)]
#[non_exhaustive]
pub enum ConfirmationPolicy {
    /// About each.
    #[default]
    Always,
    /// About none.
    Never,
    /// Until the same tool was approved with the same arguments; that holds for the session.
    Once,
    /// About those that may destroy something, and those of which nobody says that they do not: see [`ToolRequest::is_risky`].
    IfRisky,
    /// If this says so.
    Custom(Arc<dyn Fn(&ToolRequest) -> bool + Send + Sync>),
}

impl ConfirmationPolicy {
    /// Asks if `asks` says so. It sees the call with its arguments, and the run.
    pub fn custom(asks: impl Fn(&ToolRequest) -> bool + Send + Sync + 'static) -> Self {
        Self::Custom(Arc::new(asks))
    }
}

/// How the calls of a tool are confirmed: whether somebody is asked, and where.
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
    /// Has `approver` decide inside the process, while the call waits.
    pub fn blocking(policy: ConfirmationPolicy, approver: impl Approver) -> Self {
        Self { policy, approver: Some(Arc::new(approver)) }
    }

    /// Suspends the run with a question, to be gone on with when it is answered.
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

    /// The decision with what the policy remembers of it.
    pub(super) fn remembering(&self, decision: Decision) -> Decision {
        match (&self.policy, decision) {
            (ConfirmationPolicy::Once, Decision::Approve { remember: None, always }) => {
                Decision::Approve { remember: Some(Remember::Call), always }
            }
            (_, decision) => decision,
        }
    }
}

/// Strategies for tools.
#[derive(Default)]
pub(super) struct Strategies(Vec<(Vec<String>, ConfirmationStrategy)>);

impl Strategies {
    pub(super) fn add(&mut self, tools: Vec<String>, strategy: ConfirmationStrategy) {
        self.0.push((tools, strategy));
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The strategy for a tool: that of its own name, or else of the first group with it, or else of `*`.
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
