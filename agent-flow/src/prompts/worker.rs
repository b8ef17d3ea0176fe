//! Prompt of the worker, which converts a step to calls of its tool.

use crate::{NextStep, Scene, ToolMetadata};

pub(super) fn tool_command(scene: &Scene<'_>, step: &NextStep, tool: &ToolMetadata) -> String {
    let facts = scene.facts();
    let NextStep { context, sub_goal, .. } = step;
    let name = &tool.tool_name;
    let tool = serde_json::to_value(tool).unwrap_or_default();
    format!(
        "Write the calls of the tool `{name}` that reach the goal of this step.\n\n{facts}
# The step
Goal: {sub_goal}
Context: {context}

# The tool
{tool:#}

# Instructions
1. Write one call, or several if the goal needs them, with arguments as the tool describes them.
2. Arguments are values. Where one is the result of another call, write {{\"$ref\": \"call-1\"}}, or \
{{\"$ref\": \"call-1#/rows/0\"}} for a part of it; results of earlier steps are \"step-1/call-1\" and so on.
3. Nothing that you write is run as code.

# Form of your answer
One JSON object with the texts `analysis` and `explanation`, and the list `calls` of objects with an `id` (\"call-1\", \
\"call-2\" and so on) and an object `arguments`."
    )
}
