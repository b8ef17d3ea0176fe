//! What the roles know of the steps so far.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::{Query, ToolCommand};

/// Most characters of a result that the roles are shown.
const LONGEST_RESULT: usize = 100_000;

/// What the roles know: the query, the actions so far, and what the user said meanwhile. Each run has its own.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Memory {
    /// What is to be solved.
    pub query: Query,
    /// One for each step.
    pub actions: Vec<Action>,
    /// What the user said while the run was under way.
    pub notes: Vec<String>,
}

/// What one step did.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Action {
    /// The tool that the planner chose; what it wrote, if there is no such tool.
    pub tool_name: String,
    /// What the step was for.
    pub sub_goal: String,
    /// The calls, if there was a command.
    pub command: Option<ToolCommand>,
    /// What the calls gave, in order.
    pub results: Vec<CallOutcome>,
    /// What kept the step from doing all that it was to do.
    pub problem: Option<StepProblem>,
}

/// What a planned call gave.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct CallOutcome {
    /// The call's id in its command.
    pub id: String,
    /// Its result, or why it failed or was not run; at most 100,000 characters.
    pub result: String,
    /// True if it failed or was not run.
    pub is_error: bool,
}

/// What kept a step from doing all that it was to do.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
#[non_exhaustive]
pub enum StepProblem {
    /// The planner's answer could not be read, twice.
    UnreadableStep {
        /// What is wrong with it.
        problem: String,
    },
    /// There is no such tool.
    UnknownTool {
        /// What the planner wrote.
        asked: String,
    },
    /// The worker's command could not be read or does not fit the tool, twice. Nothing was run.
    RefusedCommand {
        /// What is wrong with it.
        problem: String,
    },
    /// Some of the calls failed; what the others gave is kept.
    FailedCalls {
        /// Their ids in the command.
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

    /// The actions by the names `Action Step 1`, `Action Step 2` and so on, each with `tool_name`, `sub_goal`, `command` and
    /// `result`.
    pub fn actions_json(&self) -> Value {
        let named = (1..).zip(&self.actions).map(|(n, action)| (format!("Action Step {n}"), action.to_json()));
        Value::Object(named.collect::<Map<_, _>>())
    }
}

impl Action {
    /// What the calls gave: a list, or in words why there is none.
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

/// The text, cut to 100,000 characters of which the last three are dots.
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
