//! Completion of an answer.

use agent_core::{AssistantMessage, Block, message::Raw};

use super::{ids::name_calls, lenient::kind};

/// Builds the message of these blocks, which were decoded from `raw` in the answer with this id.
/// `tell` passes the blocks to listeners.
pub(crate) fn message(
    mut blocks: Vec<Block>,
    answer: &str,
    raw: Raw,
    tell: impl FnOnce(Vec<Block>) -> Vec<Block>,
) -> AssistantMessage {
    let is_mended = name_calls(&mut blocks, answer, 0);
    let mut message = AssistantMessage::from_provider(tell(blocks), raw);
    if is_mended {
        message.blocks_mut(); // results will name ids that the raw message does not have
    }
    message
}

/// Returns true if the model refused to answer, and produced nothing else.
pub(crate) fn only_refuses(message: &AssistantMessage) -> bool {
    let is_refusal = |block: &Block| matches!(block, Block::Other(raw) if kind(raw.raw_value()) == "refusal");
    !message.has_text() && message.blocks().iter().any(is_refusal)
}
