//! Generated and mapped ids and names of calls.

use agent_core::Block;
use sha2::{Digest, Sha256};

/// Returns the id of the call at `at`, if its server assigned none: deterministic, so that a
/// recorded answer always decodes equally.
pub(crate) fn call_id(response: &str, at: usize) -> String {
    /// Maximum length of ids in OpenAI's Chat Completions.
    const LONGEST: usize = 40;
    let id = if response.is_empty() { format!("call_{at}") } else { format!("call_{response}_{at}") };
    if id.len() <= LONGEST {
        return id;
    }
    let digest: String = Sha256::digest(response).iter().take(8).map(|byte| format!("{byte:02x}")).collect();
    format!("call_{digest}_{at}")
}

/// Name of a nameless call. It is answered like a call of any unknown tool, and providers reject an
/// empty name.
pub(crate) const NAMELESS: &str = "unknown";

/// Assigns ids and names to the calls in `blocks` that have none; `before` is the number of earlier
/// calls. Returns true if there were any: then results will name ids that the provider's own JSON
/// does not have.
pub(crate) fn name_calls(blocks: &mut [Block], response: &str, before: usize) -> bool {
    let calls = blocks.iter_mut().filter_map(|block| match block {
        Block::ToolCall(call) => Some(call),
        _ => None,
    });
    let mut is_mended = false;
    for (at, call) in calls.enumerate() {
        if call.id.is_empty() {
            (call.id, is_mended) = (call_id(response, before + at).into(), true);
        }
        if call.name.is_empty() {
            (call.name, is_mended) = (NAMELESS.into(), true);
        }
    }
    is_mended
}
