//! Results of a solver.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::{Memory, Method, Output, QueryAnalysis, RoleCall, ask::Role};

/// Reason why the steps of a solver ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Ending {
    /// The verifier decided that no further step is needed.
    Verified,
    /// The step limit was reached; with a limit of zero no step was taken.
    StepLimit,
    /// The time limit for the steps was reached; running calls were cancelled.
    TimeLimit,
    /// The requested outputs need no step.
    NoSteps,
}

impl std::fmt::Display for Ending {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Verified => "verified",
            Self::StepLimit => "step_limit",
            Self::TimeLimit => "time_limit",
            Self::NoSteps => "no_steps",
        })
    }
}

/// Result of a solver's run.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Solution {
    /// Reason why the steps ended; `None` if the run ended for another reason, given by its exit
    /// reason.
    pub ending: Option<Ending>,
    /// The planner's analysis of the query.
    pub analysis: Option<QueryAnalysis>,
    /// The query, the actions, and messages from the user.
    pub memory: Memory,
    /// All calls of roles with their answers, in order.
    pub calls: Vec<RoleCall>,
    /// Active time of the run, over all processes.
    pub execution_time: Duration,
    pub(crate) outputs: Vec<(Output, Option<String>)>,
}

/// A call of a role with its answer and its reward, as input for training.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct RoleTrace {
    /// The role.
    pub role: Role,
    /// Kind of the call.
    pub method: Method,
    /// Number of the step, from 1; 0 before the first.
    pub step: u32,
    /// The prompt.
    pub prompt: String,
    /// The answer.
    pub response: String,
    /// Reward of the run's outcome, the same for all calls.
    pub reward: Option<f64>,
}

impl Solution {
    /// Returns an output; `None` if it was not requested, or timed out.
    pub fn output(&self, wanted: Output) -> Option<&str> {
        self.outputs.iter().find(|(output, _)| *output == wanted)?.1.as_deref()
    }

    /// Returns the most complete output: the solution, otherwise the short answer, otherwise the
    /// one without steps.
    pub fn answer(&self) -> Option<&str> {
        [Output::Final, Output::Direct, Output::Base].into_iter().find_map(|output| self.output(output))
    }

    /// Number of steps taken.
    pub fn step_count(&self) -> usize {
        self.memory.actions.len()
    }

    /// Returns the audit record of the run, with these keys: `query`, `image`, `base_response`,
    /// `query_analysis`, for each step `action_predictor_N_prompt` and `_response`,
    /// `tool_commander_N_prompt` and `_response`, `tool_result_N`, `verifier_N_prompt` and
    /// `_response`; then `memory`, `step_count`, `execution_time` (seconds), `final_output` and
    /// `direct_output`. Keys of events that did not happen are missing; the keys of a repeated call
    /// contain `_repair`.
    pub fn audit(&self) -> Value {
        let mut record = Map::new();
        let mut put = |key: &str, value: Value| drop(record.insert(key.to_owned(), value));
        put("query", json!(self.memory.query.text));
        put("image", json!(self.memory.query.attachments));
        let by_name =
            [(Output::Base, "base_response"), (Output::Final, "final_output"), (Output::Direct, "direct_output")];
        for (output, key) in by_name {
            if let Some(text) = self.output(output) {
                put(key, json!(text));
            }
        }
        if self.ending == Some(Ending::NoSteps) {
            return Value::Object(record);
        }
        if let Some(analysis) = &self.analysis {
            put("query_analysis", json!(analysis.to_string()));
        }
        for call in &self.calls {
            let name = match call.method {
                Method::NextStep => "action_predictor",
                Method::ToolCommand => "tool_commander",
                Method::Verify => "verifier",
                _ => continue,
            };
            let repair = if call.repair { "_repair" } else { "" };
            put(&format!("{name}_{}{repair}_prompt", call.step), json!(call.prompt));
            put(&format!("{name}_{}{repair}_response", call.step), json!(call.response));
        }
        for (n, action) in (1..).zip(&self.memory.actions).filter(|(_, action)| action.command.is_some()) {
            put(&format!("tool_result_{n}"), action.result_json());
        }
        put("memory", self.memory.actions_json());
        put("step_count", json!(self.step_count()));
        put("execution_time", json!(self.execution_time.as_secs_f64()));
        Value::Object(record)
    }

    /// Returns all calls of roles with their answers, and the reward of the outcome if there is
    /// one.
    pub fn traces(&self, reward: Option<f64>) -> impl Iterator<Item = RoleTrace> {
        self.calls.iter().map(move |call| RoleTrace {
            role: call.method.role(),
            method: call.method,
            step: call.step,
            prompt: call.prompt.clone(),
            response: call.response.clone(),
            reward,
        })
    }

    /// Returns the [`traces`](Self::traces) as JSON Lines.
    pub fn traces_json_lines(&self, reward: Option<f64>) -> String {
        self.traces(reward).map(|trace| json!(trace).to_string() + "\n").collect()
    }
}
