//! What came out of a solver, and how.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::{Memory, Method, Output, QueryAnalysis, RoleCall, ask::Role};

/// How the steps of a solver came to their end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Ending {
    /// The verifier said that it is enough.
    Verified,
    /// The step limit was reached; with a limit of zero no step was taken.
    StepLimit,
    /// The time for the steps was up; what was under way was cancelled.
    TimeLimit,
    /// The wanted outputs needed no step.
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

/// What came out of a solver, and how.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Solution {
    /// How the steps came to their end; none if something else ended the run, as its exit reason says.
    pub ending: Option<Ending>,
    /// What the planner said of the query.
    pub analysis: Option<QueryAnalysis>,
    /// The query, the actions, and what the user said meanwhile.
    pub memory: Memory,
    /// Every question to a role with its answer, in order.
    pub calls: Vec<RoleCall>,
    /// How long it took, in all processes together.
    pub execution_time: Duration,
    pub(crate) outputs: Vec<(Output, Option<String>)>,
}

/// A question to a role with its answer and its reward, as training code takes them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct RoleTrace {
    /// Who was asked.
    pub role: Role,
    /// What for.
    pub method: Method,
    /// The step, from 1; 0 before the first.
    pub step: u32,
    /// The question.
    pub prompt: String,
    /// The answer.
    pub response: String,
    /// What it was worth: the reward of the outcome, the same for all.
    pub reward: Option<f64>,
}

impl Solution {
    /// What was said for this output; none if it was not wanted, or did not come in time.
    pub fn output(&self, wanted: Output) -> Option<&str> {
        self.outputs.iter().find(|(output, _)| *output == wanted)?.1.as_deref()
    }

    /// The fullest output there is: the solution, or else the short answer, or else the one without steps.
    pub fn answer(&self) -> Option<&str> {
        [Output::Final, Output::Direct, Output::Base].into_iter().find_map(|output| self.output(output))
    }

    /// How many steps were taken.
    pub fn step_count(&self) -> usize {
        self.memory.actions.len()
    }

    /// The record of the whole course, by the field's keys: `query`, `image`, `base_response`, `query_analysis`, for each step
    /// `action_predictor_N_prompt` and `_response`, `tool_commander_N_prompt` and `_response`, `tool_result_N`,
    /// `verifier_N_prompt` and `_response`; then `memory`, `step_count`, `execution_time` (seconds), `final_output` and
    /// `direct_output`. What did not happen has no key; a second try has `_repair` in its.
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

    /// Every question to a role with its answer, and the reward of the outcome if there is one.
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

    /// The [`traces`](Self::traces) as JSON, one a line.
    pub fn traces_json_lines(&self, reward: Option<f64>) -> String {
        self.traces(reward).map(|trace| json!(trace).to_string() + "\n").collect()
    }
}
