//! The roles' knowledge of the steps so far.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::{Query, ToolCommand};

/// Maximum length in characters of a result in prompts.
const LONGEST_RESULT: usize = 100_000;

/// Knowledge of the roles: the query, the actions so far, and messages from the user during the
/// run. Each run has a separate memory.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Memory {
    /// The query to solve.
    pub query: Query,
    /// One action per step.
    pub actions: Vec<Action>,
    /// Messages from the user during the run.
    pub notes: Vec<String>,
}

/// Record of one step.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Action {
    /// Name of the tool that the planner chose, or the text that the planner wrote if there is no
    /// such tool.
    pub tool_name: String,
    /// Goal of the step.
    pub sub_goal: String,
    /// The worker's calls, if there was a command.
    pub command: Option<ToolCommand>,
    /// Results of the calls, in order.
    pub results: Vec<CallOutcome>,
    /// Problem that prevented a part of the step.
    pub problem: Option<StepProblem>,
}

/// Result of a planned call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct CallOutcome {
    /// Id of the call in its command.
    pub id: String,
    /// The result, or the reason why the call failed or did not run; at most 100,000 characters.
    pub result: String,
    /// True if the call failed or did not run.
    pub is_error: bool,
}

/// Problem that prevented a part of a step.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
#[non_exhaustive]
pub enum StepProblem {
    /// The planner's answer could not be parsed, twice.
    UnreadableStep {
        /// Description of the problem.
        problem: String,
    },
    /// There is no such tool.
    UnknownTool {
        /// Name that the planner wrote.
        asked: String,
    },
    /// The worker's command could not be parsed or does not match the tool, twice. Nothing was run.
    RefusedCommand {
        /// Description of the problem.
        problem: String,
    },
    /// Some of the calls failed; the results of the others are kept.
    FailedCalls {
        /// Ids of the failed calls in the command.
        ids: Vec<String>,
    },
}

impl CallOutcome {
    pub(crate) fn new(id: &str, result: &str, is_error: bool) -> Self {
        Self { id: id.to_owned(), result: shortened(result), is_error }
    }
}

impl Memory {
    pub(crate) fn new(query: Query) -> Self {
        Self { query, ..Self::default() }
    }

    /// Returns the actions as a JSON object with the keys `Action Step 1`, `Action Step 2` and so
    /// on, each with `tool_name`, `sub_goal`, `command` and `result`.
    pub fn actions_json(&self) -> Value {
        let named = (1..).zip(&self.actions).map(|(n, action)| (format!("Action Step {n}"), action.to_json()));
        Value::Object(named.collect::<Map<_, _>>())
    }
}

impl Action {
    /// Returns the results of the calls as a list, or a description of the problem if there are
    /// none.
    pub fn result_json(&self) -> Value {
        match &self.problem {
            Some(problem) if self.results.is_empty() => json!(problem.to_string()),
            _ => self.results.iter().map(|outcome| json!(outcome.result)).collect(),
        }
    }

    fn to_json(&self) -> Value {
        let command = match (&self.command, &self.problem) {
            (Some(command), _) => json!(command.calls),
            (None, Some(problem)) => json!(format!("No command was generated: {problem}")),
            (None, None) => Value::Null,
        };
        json!({
            "tool_name": self.tool_name,
            "sub_goal": self.sub_goal,
            "command": command,
            "result": self.result_json(),
        })
    }
}

impl std::fmt::Display for StepProblem {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::UnreadableStep { problem } => write!(f, "the planned step could not be read: {problem}"),
            Self::UnknownTool { asked } => write!(f, "there is no tool '{asked}'"),
            Self::RefusedCommand { problem } => write!(f, "the command was refused: {problem}"),
            Self::FailedCalls { ids } => write!(f, "these calls failed: {}", ids.join(", ")),
        }
    }
}

/// Truncates the text to 100,000 characters, of which the last three are dots.
fn shortened(text: &str) -> String {
    let dots = "...";
    match text.char_indices().nth(LONGEST_RESULT) {
        None => text.to_owned(),
        Some(_) => text.chars().take(LONGEST_RESULT - dots.len()).chain(dots.chars()).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_result_is_cut_to_100_000_characters_that_end_in_dots() {
        assert_eq!(shortened(&"é".repeat(100_000)), "é".repeat(100_000));
        let cut = shortened(&"é".repeat(100_001));
        assert_eq!((cut.chars().count(), cut.ends_with("é...")), (100_000, true));
    }
}
