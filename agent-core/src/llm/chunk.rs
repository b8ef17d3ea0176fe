//! Streamed chunks of a model's answer.

use std::{fmt, sync::Arc};

use serde::{Deserialize, Serialize};

use crate::{
    error::Result,
    llm::MessageBuilder,
    message::{AssistantMessage, Block},
};

/// A chunk of a streamed message. `index` identifies the block within the message.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Chunk {
    /// Additional text.
    Text {
        /// Index of the block.
        index: u32,
        /// The added text.
        delta: String,
    },
    /// Additional reasoning.
    Reasoning {
        /// Index of the block.
        index: u32,
        /// The added text.
        delta: String,
    },
    /// A tool call begins.
    ToolCall {
        /// Index of the block.
        index: u32,
        /// Id of the call.
        id: Arc<str>,
        /// Name of the tool.
        name: Arc<str>,
    },
    /// Additional arguments of a call.
    Arguments {
        /// Index of the block.
        index: u32,
        /// The added text.
        delta: String,
    },
    /// A complete block, or the final form of a streamed one.
    Block {
        /// Index of the block.
        index: u32,
        /// The block.
        block: Block,
    },
    /// A block is complete. Sent for every streamed block.
    End {
        /// Index of the block.
        index: u32,
    },
    /// An attempt failed after it emitted chunks: discard them.
    Restart,
}

/// Callback that receives the output of a rewriter.
type Out<'a> = &'a mut dyn FnMut(Chunk) -> Result<()>;

type Observe = dyn Fn(&Chunk) -> Result<()> + Send + Sync;
type Map = dyn Fn(Chunk) -> Result<Option<Chunk>> + Send + Sync;
type Rewrite = dyn Fn(Chunk, Out<'_>) -> Result<()> + Send + Sync;

/// A layer's transform of chunks.
enum Transform {
    /// Observes each chunk, and may end the call.
    Observe(Box<Observe>),
    /// Maps each chunk to one chunk or none.
    Map(Box<Map>),
    /// Maps each chunk to any number of chunks.
    Rewrite(Box<Rewrite>),
}

/// Destination of a model call's chunks. Layers add transforms to it.
///
/// A transform may change a chunk, drop it, or end the call with an error. The innermost transform
/// runs first, so the outermost sees the final content.
#[derive(Clone, Default)]
pub struct ChunkSink(Option<Arc<Node>>);

struct Node {
    transform: Transform,
    outer: ChunkSink,
}

impl ChunkSink {
    /// Adds a transform that runs before (closer to the model than) the existing ones.
    #[must_use]
    pub fn with(&self, transform: impl Fn(Chunk) -> Result<Option<Chunk>> + Send + Sync + 'static) -> Self {
        self.layer(Transform::Map(Box::new(transform)))
    }

    /// Adds an observer that runs before the existing transforms.
    #[must_use]
    pub fn with_observer(&self, observe: impl Fn(&Chunk) + Send + Sync + 'static) -> Self {
        self.with_guard(move |chunk| {
            observe(chunk);
            Ok(())
        })
    }

    /// Adds a guard that runs before the existing transforms: it observes each chunk, and its error
    /// ends the call.
    #[must_use]
    pub fn with_guard(&self, guard: impl Fn(&Chunk) -> Result<()> + Send + Sync + 'static) -> Self {
        self.layer(Transform::Observe(Box::new(guard)))
    }

    /// Adds a rewriter that runs before the existing transforms: it may buffer chunks, and pass any
    /// number of chunks to its second argument. At the [`End`](Chunk::End) of a block it must flush
    /// the rest of the block.
    ///
    /// If the message differs from the model's, the provider's JSON is dropped entirely: it would
    /// still contain the removed content.
    ///
    /// ```
    /// use agent_core::{Chunk, ChunkSink};
    ///
    /// let twice = ChunkSink::default().with_rewriter(|chunk, out| {
    ///     out(chunk.clone())?;
    ///     out(chunk)
    /// });
    /// assert_eq!(twice.collect("ha".into())?.text(), "haha");
    /// # Ok::<(), agent_core::Error>(())
    /// ```
    #[must_use]
    pub fn with_rewriter(
        &self,
        rewrite: impl Fn(Chunk, &mut dyn FnMut(Chunk) -> Result<()>) -> Result<()> + Send + Sync + 'static,
    ) -> Self {
        self.layer(Transform::Rewrite(Box::new(rewrite)))
    }

    fn layer(&self, transform: Transform) -> Self {
        Self(Some(Arc::new(Node { transform, outer: self.clone() })))
    }

    /// True if there are no transforms: a model may then skip producing chunks.
    pub fn is_idle(&self) -> bool {
        self.0.is_none()
    }

    /// True if a transform may change or drop chunks, so that the message must be built from the
    /// output.
    pub fn transforms(&self) -> bool {
        self.layers().any(|node| !matches!(node.transform, Transform::Observe(_)))
    }

    fn rewrites(&self) -> bool {
        self.layers().any(|node| matches!(node.transform, Transform::Rewrite(_)))
    }

    fn layers(&self) -> impl Iterator<Item = &Node> {
        std::iter::successors(self.0.as_deref(), |node| node.outer.0.as_deref())
    }

    /// Passes a chunk through every layer to the readers. Use a [`Collector`] to build the message
    /// from the output too.
    ///
    /// # Errors
    /// If a layer ends the call.
    pub fn push(&self, chunk: Chunk) -> Result<()> {
        self.pass(chunk, &mut |_| {})
    }

    /// Passes a chunk through every layer, and calls `kept` with the output.
    fn pass(&self, mut chunk: Chunk, kept: &mut dyn FnMut(&Chunk)) -> Result<()> {
        let mut sink = self;
        while let Some(node) = &sink.0 {
            match &node.transform {
                Transform::Observe(observe) => observe(&chunk)?,
                Transform::Map(map) => match map(chunk)? {
                    Some(next) => chunk = next,
                    None => return Ok(()),
                },
                Transform::Rewrite(rewrite) => return rewrite(chunk, &mut |chunk| node.outer.pass(chunk, kept)),
            }
            sink = &node.outer;
        }
        kept(&chunk);
        Ok(())
    }

    /// Passes a complete message through the sink, block by block, and returns the result.
    ///
    /// A message that no layer changed is returned unchanged, with the provider's JSON.
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

/// Splits a complete block into the chunks of a stream.
fn pieces(index: u32, block: &Block) -> impl Iterator<Item = Chunk> {
    let whole = || Chunk::Block { index, block: block.clone() };
    let (first, second) = match block {
        // Data of a text other than its words is in no delta.
        Block::Text(t) if t.raw.is_none() => {
            (Chunk::Text { index, delta: t.text.clone() }, (!t.citations.is_empty()).then(whole))
        }
        Block::ToolCall(c) => (
            Chunk::ToolCall { index, id: c.id.clone(), name: c.name.clone() },
            Some(Chunk::Arguments { index, delta: c.arguments.clone() }),
        ),
        Block::Reasoning(r) if !r.text.is_empty() => (Chunk::Reasoning { index, delta: r.text.clone() }, Some(whole())),
        _ => (whole(), None),
    };
    [Some(first), second, Some(Chunk::End { index })].into_iter().flatten()
}

/// Pushes the chunks of one call through a sink, and builds a message from the output if that can
/// differ from the input.
#[derive(Debug)]
pub struct Collector {
    sink: ChunkSink,
    kept: Option<MessageBuilder>,
}

impl Collector {
    /// Creates a collector for `sink`.
    pub fn new(sink: &ChunkSink) -> Self {
        Self { sink: sink.clone(), kept: sink.transforms().then(MessageBuilder::default) }
    }

    /// Passes a chunk through the sink.
    ///
    /// # Errors
    /// If a layer ends the call.
    pub fn push(&mut self, chunk: Chunk) -> Result<()> {
        match &mut self.kept {
            Some(kept) => self.sink.pass(chunk, &mut |chunk| kept.push(chunk)),
            None => self.sink.push(chunk),
        }
    }

    /// Returns the final message: `said` if no layer changed it, otherwise the output of the
    /// layers, marked as edited.
    pub fn finish(self, mut said: AssistantMessage) -> AssistantMessage {
        if let Some(kept) = self.kept.map(MessageBuilder::into_blocks)
            && !same_content(&kept, said.blocks())
        {
            match self.sink.rewrites() {
                true => said = AssistantMessage::new(kept),
                false => *said.blocks_mut() = kept,
            }
        }
        said
    }
}

/// Equality that ignores the raw JSON, which chunks do not carry.
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
        f.debug_struct("ChunkSink").field("layers", &self.layers().count()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::{Citation, Origin, Raw, Text};

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
        let refuse = |_: &Chunk| Err(crate::error::Error::tool("no"));
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
    fn what_a_rewriter_takes_out_is_not_left_in_the_providers_own_json() {
        let hide = |chunk, out: Out<'_>| match chunk {
            Chunk::Text { index, .. } => {
                out(Chunk::Text { index, delta: "no ".into() })?;
                out(Chunk::Text { index, delta: "more".into() })
            }
            other => out(other),
        };
        let left = ChunkSink::default().with_rewriter(hide).collect(message()).expect("collects");
        assert_eq!((left.text().as_str(), left.calls().count(), left.raw()), ("no more", 1, None));
        let same = ChunkSink::default().with_rewriter(|chunk, out| out(chunk)).collect(message()).expect("collects");
        assert!(same.raw().is_some() && !same.is_edited(), "nothing was taken out");
    }

    #[test]
    fn what_a_transform_drops_is_not_in_the_message() {
        let sink = ChunkSink::default().with(|c| Ok(Some(c).filter(|c| !matches!(c, Chunk::Text { .. }))));
        let left = sink.collect(message()).expect("collects");
        assert_eq!((left.text().as_str(), left.calls().count(), left.is_edited()), ("", 1, true));
    }
}
