//! Prompts of the generator, which writes the outputs.

use crate::Scene;

pub(super) fn final_output(scene: &Scene<'_>) -> String {
    let facts = scene.facts();
    format!(
        "Write the solution of this query from what the actions found.\n\n{facts}
# Instructions
1. Say in short what was asked.
2. Go through the solution step by step: what was done, with what result.
3. Give the answer, with its evidence; say what remains open or uncertain.
4. Use only what stands above and what everybody knows. If the actions found nothing, say so."
    )
}

pub(super) fn direct_output(scene: &Scene<'_>) -> String {
    let facts = scene.facts();
    format!(
        "Answer this query from what the actions found.\n\n{facts}
# Instructions
1. Say in one or two sentences how the answer was found.
2. Give the answer itself, exactly in the form that the query asks for, between <answer> and </answer>.
3. If the actions did not find it, give the best answer that they allow, and say that it is uncertain."
    )
}
