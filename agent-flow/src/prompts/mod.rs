//! Prompts of the roles.

mod generator;
mod planner;
mod verifier;
mod worker;

use std::fmt::Write;

use crate::{Memory, NextStep, ToolMetadata};

/// Context for building a prompt.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Scene<'a> {
    /// The query, the actions so far, and messages from the user.
    pub memory: &'a Memory,
    /// Analysis of the query, as text; empty before it exists.
    pub analysis: &'a str,
    /// The tools, by name.
    pub tools: &'a [&'a ToolMetadata],
    /// Number of the current step, from 1.
    pub step: u32,
    /// Maximum number of steps.
    pub max_steps: u32,
}

/// Prompts of the roles, one method per kind of call. Each default can be overridden; the result
/// must depend only on the arguments, since a run resumed in another process builds the prompt
/// again.
///
/// | method | role | slot | the answer is read as |
/// |---|---|---|---|
/// | [`base_response`](Self::base_response) | planner | `planner_main` | text |
/// | [`analyze_query`](Self::analyze_query) | planner | `planner_fixed` | [`QueryAnalysis`](crate::QueryAnalysis) |
/// | [`next_step`](Self::next_step) | planner | `planner_main` | [`NextStep`] |
/// | [`tool_command`](Self::tool_command) | worker | `executor` | [`ToolCommand`](crate::ToolCommand) |
/// | [`verify`](Self::verify) | verifier | `verifier` | [`MemoryVerification`](crate::MemoryVerification) |
/// | [`final_output`](Self::final_output) | generator | `planner_fixed` | text |
/// | [`direct_output`](Self::direct_output) | generator | `planner_fixed` | text |
///
/// ```
/// use agent_flow::{Prompts, Scene};
///
/// struct Terse;
///
/// impl Prompts for Terse {
///     fn direct_output(&self, scene: &Scene<'_>) -> String {
///         format!("{}\nAnswer in one word.", scene.facts())
///     }
/// }
/// ```
pub trait Prompts: Send + Sync + 'static {
    /// The prompt for an answer without tools: the query itself.
    fn base_response(&self, scene: &Scene<'_>) -> String {
        planner::base_response(scene)
    }

    /// The prompt for the analysis of the query.
    fn analyze_query(&self, scene: &Scene<'_>) -> String {
        planner::analyze_query(scene)
    }

    /// The prompt for planning the next step.
    fn next_step(&self, scene: &Scene<'_>) -> String {
        planner::next_step(scene)
    }

    /// The prompt for the calls of `tool` that execute `step`.
    fn tool_command(&self, scene: &Scene<'_>, step: &NextStep, tool: &ToolMetadata) -> String {
        worker::tool_command(scene, step, tool)
    }

    /// The prompt for deciding whether the results answer the query.
    fn verify(&self, scene: &Scene<'_>) -> String {
        verifier::verify(scene)
    }

    /// The prompt for the step-by-step solution.
    fn final_output(&self, scene: &Scene<'_>) -> String {
        generator::final_output(scene)
    }

    /// The prompt for the short answer.
    fn direct_output(&self, scene: &Scene<'_>) -> String {
        generator::direct_output(scene)
    }
}

/// The default prompts.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct DefaultPrompts;

impl Prompts for DefaultPrompts {}

impl Scene<'_> {
    /// All facts, under headings: the query, its files, its analysis, messages from the user, the
    /// actions so far.
    pub fn facts(&self) -> String {
        let Memory { query, actions, notes } = self.memory;
        let mut facts = format!("# Query\n{}\n", query.text);
        if !query.files.is_empty() {
            facts.push_str("\n# Files\n");
            for file in &query.files {
                let _ = writeln!(facts, "- {}: {}", file.file_name, file.description);
            }
        }
        if !self.analysis.is_empty() {
            let _ = write!(facts, "\n# Analysis of the query\n{}\n", self.analysis);
        }
        if !notes.is_empty() {
            let _ = write!(facts, "\n# What the user added meanwhile\n{}\n", notes.join("\n"));
        }
        if !actions.is_empty() {
            let _ = write!(facts, "\n# Actions so far\n{:#}\n", self.memory.actions_json());
        }
        facts
    }

    /// The descriptions of all tools, under a heading.
    pub fn tool_list(&self) -> String {
        let tools = serde_json::to_value(self.tools).unwrap_or_default();
        format!("# Tools\n{tools:#}\n")
    }
}
