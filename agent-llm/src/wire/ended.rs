//! What an answer becomes when it has ended.

use agent_core::{AssistantMessage, Block, message::Raw};

use super::{ids::name_calls, lenient::kind};

/// The message of these blocks, which were read from `raw` in the answer of this id. Those who listen are told by `tell` which
/// blocks it has.
pub(crate) fn message(
    mut blocks: Vec<Block>,
    answer: &str,
    raw: Raw,
    tell: impl FnOnce(Vec<Block>) -> Vec<Block>,
) -> AssistantMessage {
    let is_mended = name_calls(&mut blocks, answer, 0);
    let mut message = AssistantMessage::from_provider(tell(blocks), raw);
    if is_mended {
        message.blocks_mut(); // the results will name ids that the raw message does not have
    }
    message
}

/// True if the model refused to answer, and said nothing else.
pub(crate) fn only_refuses(message: &AssistantMessage) -> bool {
    let is_refusal = |block: &Block| matches!(block, Block::Other(raw) if kind(raw.raw_value()) == "refusal");
    !message.has_text() && message.blocks().iter().any(is_refusal)
}
