//! Prompts of the planner, which analyses the query and plans each step.

use crate::Scene;

pub(super) fn base_response(scene: &Scene<'_>) -> String {
    scene.memory.query.text.clone()
}

pub(super) fn analyze_query(scene: &Scene<'_>) -> String {
    let (facts, tools) = (scene.facts(), scene.tool_list());
    format!(
        "Say what this query needs before anybody works on it.\n\n{facts}\n{tools}
# Instructions
1. Say in short what is asked.
2. Name what one must be able to do to answer it, and why.
3. Name the tools that may help, and how. Use no other tools than those above.
4. Say what else matters: limits, doubts, the form of the answer.

# Form of your answer
One JSON object with the texts `concise_summary`, `required_skills`, `relevant_tools` and `additional_considerations`."
    )
}

pub(super) fn next_step(scene: &Scene<'_>) -> String {
    let (facts, tools) = (scene.facts(), scene.tool_list());
    let (step, most) = (scene.step, scene.max_steps);
    format!(
        "Plan the next step towards an answer of this query. It is step {step} of at most {most}.\n\n{facts}\n{tools}
# Instructions
1. Look at what the actions so far found, and at what is missing.
2. Choose one tool, and one goal that it can reach in one step.
3. Put all that the tool needs into the context: values, names of files, results of earlier steps. Whoever does the step sees \
nothing else of your thoughts.
4. Do not repeat a step that failed in the same way.

# Form of your answer
One JSON object with the texts `justification`, `context`, `sub_goal` and `tool_name`, the last exactly as in the list."
    )
}
