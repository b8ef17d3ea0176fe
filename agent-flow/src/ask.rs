//! One question to a role.

use std::sync::Arc;

use agent_core::{OutputFormat, Part};
use serde::{Deserialize, Serialize};

use crate::Slot;

/// What a role is asked for.
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

/// Who is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Role {
    /// Says what the query needs and what is to be done next.
    Planner,
    /// Turns a step into calls.
    Worker,
    /// Says whether it is enough.
    Verifier,
    /// Writes what the user is told.
    Generator,
}

impl Method {
    /// The role whose method it is.
    pub fn role(self) -> Role {
        match self {
            Self::BaseResponse | Self::AnalyzeQuery | Self::NextStep => Role::Planner,
            Self::ToolCommand => Role::Worker,
            Self::Verify => Role::Verifier,
            Self::FinalOutput | Self::DirectOutput => Role::Generator,
        }
    }

    /// The slot whose model is asked.
    pub fn slot(self) -> Slot {
        match self {
            Self::BaseResponse | Self::NextStep => Slot::PlannerMain,
            Self::AnalyzeQuery | Self::FinalOutput | Self::DirectOutput => Slot::PlannerFixed,
            Self::ToolCommand => Slot::Executor,
            Self::Verify => Slot::Verifier,
        }
    }

    /// Whether it is asked after the steps.
    pub(crate) fn is_output(self) -> bool {
        self.role() == Role::Generator
    }
}

/// One question to a role.
#[derive(Clone, Debug)]
pub(crate) struct Ask {
    pub(crate) method: Method,
    /// The step that it belongs to; 0 before the first.
    pub(crate) step: u32,
    pub(crate) prompt: String,
    pub(crate) attachments: Vec<Part>,
    pub(crate) format: Option<Arc<OutputFormat>>,
    pub(crate) max_tokens: Option<u64>,
}

/// One question to a role with its answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct RoleCall {
    /// What was asked for.
    pub method: Method,
    /// The step that it belongs to, from 1; 0 before the first.
    pub step: u32,
    /// True if the answer before it could not be read.
    pub repair: bool,
    /// The question.
    pub prompt: String,
    /// The answer.
    pub response: String,
}
