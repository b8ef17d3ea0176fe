//! Rewrites model responses while they are streamed.

use std::{
    collections::BTreeMap,
    mem,
    sync::{Arc, Mutex, PoisonError},
};

use agent_core::{Block, Chunk, Result};

use super::{Rewrite, content, look_back::LookBack};

type Out<'a> = &'a mut dyn FnMut(Chunk) -> Result<()>;

/// Returns a rewriter for the sink of one attempt of a model call: see
/// [`ChunkSink::with_rewriter`](agent_core::ChunkSink).
pub(crate) fn rewriter(rewrite: Arc<dyn Rewrite>) -> impl Fn(Chunk, Out<'_>) -> Result<()> + Send + Sync + 'static {
    let blocks = Mutex::new(BTreeMap::new());
    move |chunk, out| {
        let mut blocks = blocks.lock().unwrap_or_else(PoisonError::into_inner);
        pass(&*rewrite, &mut blocks, chunk, out)
    }
}

/// Buffered content of a block.
#[derive(Default)]
struct Buffered {
    text: LookBack,
    reasoning: LookBack,
    arguments: String,
    /// Kind of a block that has begun but from which nothing was released yet.
    unheard: Option<fn(u32) -> Chunk>,
}

fn pass(rewrite: &dyn Rewrite, blocks: &mut BTreeMap<u32, Buffered>, chunk: Chunk, out: Out<'_>) -> Result<()> {
    match chunk {
        Chunk::Text { index, delta } if rewrite.rewrites_words() => {
            let buffered = begun(blocks, index, |index| Chunk::Text { index, delta: String::new() }, out)?;
            let delta = buffered.text.push(rewrite, &delta)?;
            buffered.say(delta, |delta| out(Chunk::Text { index, delta }))
        }
        Chunk::Reasoning { index, delta } if rewrite.rewrites_words() => {
            let buffered = begun(blocks, index, |index| Chunk::Reasoning { index, delta: String::new() }, out)?;
            let delta = buffered.reasoning.push(rewrite, &delta)?;
            buffered.say(delta, |delta| out(Chunk::Reasoning { index, delta }))
        }
        Chunk::Arguments { index, delta } if rewrite.of_arguments().is_some() => {
            blocks.entry(index).or_default().arguments.push_str(&delta);
            Ok(())
        }
        Chunk::Block { index, block } => {
            flush(rewrite, blocks, index, out)?;
            let block: Block = content::block(rewrite, &block)?.unwrap_or(block);
            out(Chunk::Block { index, block })
        }
        Chunk::End { index } => {
            flush(rewrite, blocks, index, out)?;
            out(Chunk::End { index })
        }
        Chunk::ToolCall { index, .. } => {
            keep_places(blocks, index, out)?;
            out(chunk)
        }
        Chunk::Restart => {
            blocks.clear();
            out(Chunk::Restart)
        }
        other => out(other),
    }
}

/// Returns the buffer of the block `index`, which received a delta.
fn begun<'a>(
    blocks: &'a mut BTreeMap<u32, Buffered>,
    index: u32,
    empty: fn(u32) -> Chunk,
    out: Out<'_>,
) -> Result<&'a mut Buffered> {
    keep_places(blocks, index, out)?;
    Ok(blocks.entry(index).or_insert_with(|| Buffered { unheard: Some(empty), ..Buffered::default() }))
}

/// Announces the blocks that released nothing yet before another one begins, to preserve their
/// order.
fn keep_places(blocks: &mut BTreeMap<u32, Buffered>, next: u32, out: Out<'_>) -> Result<()> {
    for (index, buffered) in blocks.iter_mut().filter(|(index, _)| **index != next) {
        if let Some(empty) = buffered.unheard.take() {
            out(empty(*index))?;
        }
    }
    Ok(())
}

/// Releases the buffered content of a complete block.
fn flush(rewrite: &dyn Rewrite, blocks: &mut BTreeMap<u32, Buffered>, index: u32, out: Out<'_>) -> Result<()> {
    keep_places(blocks, index, out)?;
    let Some(mut buffered) = blocks.remove(&index) else { return Ok(()) };
    let text = mem::take(&mut buffered.text).finish(rewrite)?;
    buffered.say(text, |delta| out(Chunk::Text { index, delta }))?;
    let reasoning = mem::take(&mut buffered.reasoning).finish(rewrite)?;
    buffered.say(reasoning, |delta| out(Chunk::Reasoning { index, delta }))?;
    let Some(rewrite) = rewrite.of_arguments() else { return Ok(()) };
    let arguments = rewrite.arguments(&mem::take(&mut buffered.arguments))?.into_owned();
    buffered.say(arguments, |delta| out(Chunk::Arguments { index, delta }))
}

impl Buffered {
    fn say(&mut self, delta: String, say: impl FnOnce(String) -> Result<()>) -> Result<()> {
        if delta.is_empty() {
            return Ok(());
        }
        self.unheard = None;
        say(delta)
    }
}
