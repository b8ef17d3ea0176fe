//! [`MessageBuilder`]: builds a message from chunks.

use super::Chunk;
use crate::message::{AssistantMessage, Block, Reasoning, ToolCall};

/// Builds the message of one model call from its chunks.
///
/// The codecs use it so that streamed and persisted content cannot differ; event readers can use it
/// too.
///
/// ```
/// use agent_core::{Chunk, model::MessageBuilder};
///
/// let mut message = MessageBuilder::default();
/// message.push(&Chunk::Text { index: 0, delta: "4".into() });
/// message.push(&Chunk::Text { index: 0, delta: "2".into() });
/// assert_eq!(message.finish().text(), "42");
/// ```
#[derive(Clone, Debug, Default)]
pub struct MessageBuilder {
    /// Blocks in order of first appearance, each with the provider's index.
    blocks: Vec<(u32, Block)>,
}

impl MessageBuilder {
    /// Adds a chunk. [`Chunk::Restart`] drops all blocks before it.
    pub fn push(&mut self, chunk: &Chunk) {
        match chunk {
            Chunk::Text { index, delta } => {
                match self.block(*index, |b| matches!(b, Block::Text(_)), || Block::text("")) {
                    Block::Text(t) => t.text.push_str(delta),
                    _ => unreachable!("the block was chosen by its kind"),
                }
            }
            Chunk::Reasoning { index, delta } => {
                let fresh = || Block::Reasoning(Reasoning::default());
                match self.block(*index, |b| matches!(b, Block::Reasoning(_)), fresh) {
                    Block::Reasoning(r) => r.text.push_str(delta),
                    _ => unreachable!("the block was chosen by its kind"),
                }
            }
            Chunk::ToolCall { index, id, name } => {
                self.blocks.push((*index, Block::tool_call(id.clone(), name.clone(), "")));
            }
            Chunk::Arguments { index, delta } => {
                if let Some(call) = self.open_call(*index) {
                    call.arguments.push_str(delta);
                }
            }
            Chunk::Block { index, block } => {
                match self.blocks.iter_mut().rev().find(|(i, b)| i == index && same_kind(b, block)) {
                    Some((_, known)) => *known = block.clone(),
                    None => self.blocks.push((*index, block.clone())),
                }
            }
            Chunk::Restart => self.blocks.clear(),
            Chunk::End { .. } => {}
        }
    }

    /// Returns the message built so far.
    pub fn finish(self) -> AssistantMessage {
        AssistantMessage::new(self.into_blocks())
    }

    /// Returns the blocks built so far; empty texts are omitted.
    pub fn into_blocks(self) -> Vec<Block> {
        let said = |b: &Block| !matches!(b, Block::Text(text) if text.is_empty());
        self.blocks.into_iter().map(|(_, b)| b).filter(said).collect()
    }

    fn block(&mut self, index: u32, wanted: fn(&Block) -> bool, fresh: impl FnOnce() -> Block) -> &mut Block {
        let at = self.blocks.iter().rposition(|(i, b)| *i == index && wanted(b)).unwrap_or_else(|| {
            self.blocks.push((index, fresh()));
            self.blocks.len() - 1
        });
        &mut self.blocks[at].1
    }

    fn open_call(&mut self, index: u32) -> Option<&mut ToolCall> {
        self.blocks.iter_mut().rev().find_map(|(i, b)| match b {
            Block::ToolCall(call) if *i == index => Some(call),
            _ => None,
        })
    }
}

fn same_kind(a: &Block, b: &Block) -> bool {
    std::mem::discriminant(a) == std::mem::discriminant(b)
}
