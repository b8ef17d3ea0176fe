//! Calls of roles.

use std::sync::Arc;

use agent_core::{OutputFormat, Part};
use serde::{Deserialize, Serialize};

use crate::Slot;

/// Kind of a call to a role.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Method {
    /// The planner's answer without tools.
    BaseResponse,
    /// The planner's analysis of the query.
    AnalyzeQuery,
    /// The planner's next step.
    NextStep,
    /// The worker's calls.
    ToolCommand,
    /// The verifier's verdict.
    Verify,
    /// The generator's solution.
    FinalOutput,
    /// The generator's answer.
    DirectOutput,
}

/// The four roles.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Role {
    /// Analyses the query and plans each step.
    Planner,
    /// Converts a step to tool calls.
    Worker,
    /// Decides whether the results answer the query.
    Verifier,
    /// Writes the outputs for the user.
    Generator,
}

impl Method {
    /// The role that answers this kind of call.
    pub fn role(self) -> Role {
        match self {
            Self::BaseResponse | Self::AnalyzeQuery | Self::NextStep => Role::Planner,
            Self::ToolCommand => Role::Worker,
            Self::Verify => Role::Verifier,
            Self::FinalOutput | Self::DirectOutput => Role::Generator,
        }
    }

    /// The slot whose model is called.
    pub fn slot(self) -> Slot {
        match self {
            Self::BaseResponse | Self::NextStep => Slot::PlannerMain,
            Self::AnalyzeQuery | Self::FinalOutput | Self::DirectOutput => Slot::PlannerFixed,
            Self::ToolCommand => Slot::Executor,
            Self::Verify => Slot::Verifier,
        }
    }

    /// True for the calls that write outputs, after the steps.
    pub(crate) fn is_output(self) -> bool {
        self.role() == Role::Generator
    }
}

/// One call to a role.
#[derive(Clone, Debug)]
pub(crate) struct Ask {
    pub(crate) method: Method,
    /// Number of the step; 0 before the first.
    pub(crate) step: u32,
    pub(crate) prompt: String,
    pub(crate) attachments: Vec<Part>,
    pub(crate) format: Option<Arc<OutputFormat>>,
    pub(crate) max_tokens: Option<u64>,
}

/// One call to a role, with its answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct RoleCall {
    /// Kind of the call.
    pub method: Method,
    /// Number of the step, from 1; 0 before the first.
    pub step: u32,
    /// True if this call repeats one whose answer could not be parsed.
    pub repair: bool,
    /// The prompt.
    pub prompt: String,
    /// The answer.
    pub response: String,
}
