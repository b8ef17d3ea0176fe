//! What the roles are asked.

mod generator;
mod planner;
mod verifier;
mod worker;

use std::fmt::Write;

use crate::{Memory, NextStep, ToolMetadata};

/// What a role is to know when it is asked.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Scene<'a> {
    /// The query, the actions so far, and what the user said meanwhile.
    pub memory: &'a Memory,
    /// The analysis of the query, as text; empty before there is one.
    pub analysis: &'a str,
    /// The tools, by name.
    pub tools: &'a [&'a ToolMetadata],
    /// The step under way, from 1.
    pub step: u32,
    /// The most steps that there may be.
    pub max_steps: u32,
}

/// What the roles are asked: role by role, method by method. Each default can be replaced; what a method gives must depend on
/// nothing but its arguments, since a run that goes on in another process asks for it again.
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
    /// The query itself, to be answered without tools.
    fn base_response(&self, scene: &Scene<'_>) -> String {
        planner::base_response(scene)
    }

    /// What the query needs.
    fn analyze_query(&self, scene: &Scene<'_>) -> String {
        planner::analyze_query(scene)
    }

    /// What is to be done next.
    fn next_step(&self, scene: &Scene<'_>) -> String {
        planner::next_step(scene)
    }

    /// The calls of `tool` that do `step`.
    fn tool_command(&self, scene: &Scene<'_>, step: &NextStep, tool: &ToolMetadata) -> String {
        worker::tool_command(scene, step, tool)
    }

    /// Whether what is known answers the query.
    fn verify(&self, scene: &Scene<'_>) -> String {
        verifier::verify(scene)
    }

    /// The solution, step by step.
    fn final_output(&self, scene: &Scene<'_>) -> String {
        generator::final_output(scene)
    }

    /// The answer, in short.
    fn direct_output(&self, scene: &Scene<'_>) -> String {
        generator::direct_output(scene)
    }
}

/// The prompts as they come.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct DefaultPrompts;

impl Prompts for DefaultPrompts {}

impl Scene<'_> {
    /// All that is known, under headings: the query, its files, its analysis, what the user said, the actions so far.
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

    /// The tools with all that is known of them, under a heading.
    pub fn tool_list(&self) -> String {
        let tools = serde_json::to_value(self.tools).unwrap_or_default();
        format!("# Tools\n{tools:#}\n")
    }
}
