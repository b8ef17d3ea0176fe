//! What a model says while it is still speaking.

use std::{fmt, sync::Arc};

use serde::{Deserialize, Serialize};

use crate::{AssistantMessage, Block, MessageBuilder, Result};

/// A piece of a message under way. `index` tells the blocks of a message apart.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Chunk {
    /// More text.
    Text {
        /// The block.
        index: u32,
        /// What is added.
        delta: String,
    },
    /// More reasoning.
    Reasoning {
        /// The block.
        index: u32,
        /// What is added.
        delta: String,
    },
    /// A tool call begins.
    ToolCall {
        /// The block.
        index: u32,
        /// The call's id.
        id: Arc<str>,
        /// The tool.
        name: Arc<str>,
    },
    /// More of a call's arguments.
    Arguments {
        /// The block.
        index: u32,
        /// What is added.
        delta: String,
    },
    /// A block that came whole, or the final form of one that came in pieces.
    Block {
        /// The block's index.
        index: u32,
        /// The block.
        block: Block,
    },
    /// A block is complete.
    End {
        /// The block.
        index: u32,
    },
    /// An attempt failed after it had spoken: drop what it said.
    Restart,
}

type Transform = dyn Fn(Chunk) -> Result<Option<Chunk>> + Send + Sync;

/// Where a model call reports chunks as they come. Layers stack transforms on it.
///
/// A transform may change a chunk, drop it, or end the call with an error. The innermost runs first, so the outermost sees
/// what the user may see.
#[derive(Clone, Default)]
pub struct ChunkSink(Option<Arc<Node>>);

struct Node {
    transform: Box<Transform>,
    /// True if the transform changes and drops nothing.
    observes: bool,
    outer: ChunkSink,
}

impl ChunkSink {
    /// Adds a transform that runs before (closer to the model than) those already there.
    #[must_use]
    pub fn with(&self, transform: impl Fn(Chunk) -> Result<Option<Chunk>> + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(Node { transform: Box::new(transform), observes: false, outer: self.clone() })))
    }

    /// Adds an observer that runs before those already there.
    #[must_use]
    pub fn with_observer(&self, observe: impl Fn(&Chunk) + Send + Sync + 'static) -> Self {
        let transform = move |chunk| {
            observe(&chunk);
            Ok(Some(chunk))
        };
        Self(Some(Arc::new(Node { transform: Box::new(transform), observes: true, outer: self.clone() })))
    }

    /// Adds a guard that runs before those already there: it sees each chunk, and an error of its ends the call.
    #[must_use]
    pub fn with_guard(&self, guard: impl Fn(&Chunk) -> Result<()> + Send + Sync + 'static) -> Self {
        let transform = move |chunk| guard(&chunk).map(|()| Some(chunk));
        Self(Some(Arc::new(Node { transform: Box::new(transform), observes: true, outer: self.clone() })))
    }

    /// True if nobody looks at chunks: a model may then save itself the making of them.
    pub fn is_idle(&self) -> bool {
        self.0.is_none()
    }

    /// True if a transform may change or drop chunks, so that the message must be made of what comes out.
    pub fn transforms(&self) -> bool {
        self.0.as_ref().is_some_and(|node| !node.observes || node.outer.transforms())
    }

    /// Returns the chunk as every layer left it; `None` if one dropped it.
    ///
    /// # Errors
    /// If a layer ends the call.
    pub fn push(&self, chunk: Chunk) -> Result<Option<Chunk>> {
        let (mut sink, mut chunk) = (self, chunk);
        while let Some(node) = &sink.0 {
            let Some(next) = (node.transform)(chunk)? else { return Ok(None) };
            (sink, chunk) = (&node.outer, next);
        }
        Ok(Some(chunk))
    }

    /// Passes a message that came whole through the sink, block by block, and returns what is left of it.
    ///
    /// A message that no layer changed is returned as it was, with the provider's own JSON.
    ///
    /// # Errors
    /// If a layer ends the call.
    pub fn collect(&self, message: AssistantMessage) -> Result<AssistantMessage> {
        if self.is_idle() {
            return Ok(message);
        }
        let mut collector = Collector::new(self);
        for (index, block) in (0..).zip(message.blocks()) {
            for chunk in pieces(index, block) {
                collector.push(chunk)?;
            }
        }
        Ok(collector.finish(message))
    }
}

/// A whole block as the chunks that a stream would have brought.
fn pieces(index: u32, block: &Block) -> Vec<Chunk> {
    let mut chunks = match block {
        Block::Text(t) if t.raw.is_none() => {
            let mut chunks = vec![Chunk::Text { index, delta: t.text.clone() }];
            // What a text says beside its words is in no delta.
            chunks.extend((!t.citations.is_empty()).then(|| Chunk::Block { index, block: block.clone() }));
            chunks
        }
        Block::ToolCall(c) => vec![
            Chunk::ToolCall { index, id: c.id.clone(), name: c.name.clone() },
            Chunk::Arguments { index, delta: c.arguments.clone() },
        ],
        Block::Reasoning(r) if !r.text.is_empty() => {
            vec![Chunk::Reasoning { index, delta: r.text.clone() }, Chunk::Block { index, block: block.clone() }]
        }
        other => vec![Chunk::Block { index, block: other.clone() }],
    };
    chunks.push(Chunk::End { index });
    chunks
}

/// Pushes the chunks of one call through a sink and keeps what comes out, if that can differ from what goes in.
#[derive(Debug)]
pub struct Collector<'a> {
    sink: &'a ChunkSink,
    kept: Option<MessageBuilder>,
}

impl<'a> Collector<'a> {
    /// A collector over `sink`.
    pub fn new(sink: &'a ChunkSink) -> Self {
        Self { sink, kept: sink.transforms().then(MessageBuilder::default) }
    }

    /// Passes a chunk through the sink.
    ///
    /// # Errors
    /// If a layer ends the call.
    pub fn push(&mut self, chunk: Chunk) -> Result<()> {
        if let (Some(chunk), Some(kept)) = (self.sink.push(chunk)?, &mut self.kept) {
            kept.push(&chunk);
        }
        Ok(())
    }

    /// The message to keep: `said` itself if no layer changed it, else what the layers left, marked as edited.
    pub fn finish(self, mut said: AssistantMessage) -> AssistantMessage {
        if let Some(kept) = self.kept.map(MessageBuilder::into_blocks)
            && !same_content(&kept, said.blocks())
        {
            *said.blocks_mut() = kept;
        }
        said
    }
}

/// Equal but for the raw JSON that chunks do not carry.
fn same_content(a: &[Block], b: &[Block]) -> bool {
    a.len() == b.len()
        && a.iter().zip(b).all(|(a, b)| match (a, b) {
            (Block::Text(a), Block::Text(b)) => a.text == b.text,
            (Block::ToolCall(a), Block::ToolCall(b)) => {
                (&a.id, &a.name, &a.arguments) == (&b.id, &b.name, &b.arguments)
            }
            (Block::Reasoning(a), Block::Reasoning(b)) => a.text == b.text,
            (a, b) => a == b,
        })
}

impl fmt::Debug for ChunkSink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let depth = std::iter::successors(self.0.as_ref(), |node| node.outer.0.as_ref()).count();
        f.debug_struct("ChunkSink").field("layers", &depth).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Citation, Origin, Raw, Text};

    fn message() -> AssistantMessage {
        let raw = Raw::parse(Origin::new("w", "p", "m"), "{}").expect("valid JSON");
        AssistantMessage::from_provider(vec![Block::text("a secret"), Block::tool_call("1", "f", "{}")], raw)
    }

    #[test]
    fn a_sink_that_only_looks_leaves_the_message_as_it_came() {
        let same = ChunkSink::default().with_observer(|_| {}).collect(message()).expect("collects");
        assert!(same.ptr_eq(&same.clone()) && !same.is_edited());
    }

    #[test]
    fn a_transform_that_changes_nothing_leaves_the_message_unedited() {
        let same = ChunkSink::default().with(|c| Ok(Some(c))).collect(message()).expect("collects");
        assert!(!same.is_edited(), "the provider's own JSON still holds");
    }

    #[test]
    fn a_guard_changes_nothing_and_can_end_the_call() {
        let refuse = |_: &Chunk| Err(crate::Error::tool("no"));
        let sink = ChunkSink::default().with_guard(|_| Ok(()));
        assert!(!sink.transforms() && !sink.collect(message()).expect("collects").is_edited());
        assert!(sink.with_guard(refuse).collect(message()).is_err());
    }

    #[test]
    fn a_text_keeps_its_citations_when_a_layer_changes_another_block() {
        let mut cited = Text::new("21 degrees");
        cited.citations = vec![Citation { title: Some("The weather".into()), ..Citation::default() }];
        let message = AssistantMessage::new(vec![Block::Text(cited.clone()), Block::tool_call("1", "f", "{}")]);
        let sink = ChunkSink::default().with(|c| Ok(Some(c).filter(|c| !matches!(c, Chunk::ToolCall { .. }))));
        assert_eq!(sink.collect(message).expect("collects").blocks(), [Block::Text(cited)]);
    }

    #[test]
    fn what_a_transform_drops_is_not_in_the_message() {
        let sink = ChunkSink::default().with(|c| Ok(Some(c).filter(|c| !matches!(c, Chunk::Text { .. }))));
        let left = sink.collect(message()).expect("collects");
        assert_eq!((left.text().as_str(), left.calls().count(), left.is_edited()), ("", 1, true));
    }
}
