//! Prompt of the verifier, which decides whether the results answer the query.

use crate::Scene;

pub(super) fn verify(scene: &Scene<'_>) -> String {
    let (facts, tools) = (scene.facts(), scene.tool_list());
    let (step, most) = (scene.step, scene.max_steps);
    format!(
        "Judge whether what is known answers the query. {step} of at most {most} steps are done.\n\n{facts}\n{tools}
# Instructions
1. Completeness: is every part of the query answered by a result?
2. Consistency: do results contradict each other, or themselves?
3. Doubt: is a result ambiguous, or only claimed?
4. Tools: would one that was not used settle what is open?

# Form of your answer
One JSON object with the text `analysis` and the boolean `stop_signal`: true if nothing more is to be done, false if there \
should be another step."
    )
}
