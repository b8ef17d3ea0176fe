//! [`Finish`].

use agent_core::{Effect, Result, Tool, ToolOptions, ToolOutput, ToolRequest, ToolSpec, async_trait};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::schema;

#[derive(Deserialize, JsonSchema)]
struct FinishArgs {
    /// The work that was done and its result, for the user.
    result: String,
}

/// Tool by which a model declares its task done: `finish`. Its result becomes the run's answer if
/// the agent's builder sets `exit_on(["finish"])`.
///
/// For long tasks, where a model that stops calling tools may not be done.
///
/// ```
/// use agent_core::Tool;
/// use agent_tools::Finish;
///
/// assert_eq!(Finish::new().spec().name, "finish");
/// ```
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct Finish {}

impl Finish {
    /// Creates the tool.
    pub fn new() -> Self {
        Self {}
    }
}

#[async_trait]
impl Tool for Finish {
    fn spec(&self) -> ToolSpec {
        let description = "Says that the task is done, and ends the work. Call it alone, once everything that was asked for is done, or cannot be.";
        ToolSpec::new("finish", description, schema::of_arguments::<FinishArgs>())
    }

    fn options(&self) -> ToolOptions {
        ToolOptions::default().effect(Effect::Pure)
    }

    async fn call(&self, req: ToolRequest) -> Result<ToolOutput> {
        Ok(ToolOutput::text(req.parse::<FinishArgs>()?.result))
    }
}
