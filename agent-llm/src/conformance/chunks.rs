//! Checks that chunks describe the final message.

use std::{collections::BTreeMap, sync::Arc};

use agent_core::{Block, Chunk, model::MessageBuilder};

use super::{Samples, answers::streamed, drive::complaints};
use crate::RequestReader;

pub(super) fn tell_the_message(codec: &Arc<dyn RequestReader>, samples: &Samples) -> Vec<String> {
    let answers = samples.answers.iter().filter(|answer| !answer.events.is_empty());
    let check =
        |answer| streamed(&**codec, answer).map(|(response, chunks)| misheard(&chunks, response.message.blocks()));
    answers.flat_map(|answer| complaints(check(answer), &answer.name)).collect()
}

/// State of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Open,
    Ended,
}

/// Returns violations of the chunk rules, and differences between the chunks' message and `blocks`.
fn misheard(chunks: &[Chunk], blocks: &[Block]) -> Vec<String> {
    let mut out = Vec::new();
    let mut states: BTreeMap<u32, State> = BTreeMap::new();
    let mut heard = MessageBuilder::default();
    for chunk in chunks {
        heard.push(chunk);
        let Some(index) = index_of(chunk) else {
            out.push("a decoder does not restart: that is the retrying layer's".into());
            continue;
        };
        match (states.get(&index), chunk) {
            (None, Chunk::Arguments { .. } | Chunk::End { .. }) => {
                out.push(format!("block {index} has not begun: {chunk:?}"));
            }
            (Some(State::Open), Chunk::ToolCall { .. }) => out.push(format!("call {index} begins twice: {chunk:?}")),
            (Some(State::Ended), Chunk::End { .. }) => out.push(format!("block {index} ends twice")),
            // Only the final form of a block may follow the end of its deltas.
            (Some(State::Ended), chunk) if !matches!(chunk, Chunk::Block { .. }) => {
                out.push(format!("block {index} goes on after its end: {chunk:?}"));
            }
            (None, _) if u32::try_from(states.len()) != Ok(index) => {
                out.push(format!("block {index} is the {}th to begin", states.len()));
            }
            _ => {}
        }
        let is_end = matches!(chunk, Chunk::End { .. }) || states.get(&index) == Some(&State::Ended);
        states.insert(index, if is_end { State::Ended } else { State::Open });
    }
    let open = states.iter().filter(|(_, state)| **state == State::Open);
    out.extend(open.map(|(index, _)| format!("block {index} does not end")));
    let heard = heard.into_blocks();
    if heard != blocks {
        out.push(format!("the chunks make {heard:?}, and the message is {blocks:?}"));
    }
    if states.len() != blocks.len() {
        out.push(format!("there are {} blocks of chunks and {} of the message", states.len(), blocks.len()));
    }
    out
}

fn index_of(chunk: &Chunk) -> Option<u32> {
    match chunk {
        Chunk::Text { index, .. }
        | Chunk::Reasoning { index, .. }
        | Chunk::ToolCall { index, .. }
        | Chunk::Arguments { index, .. }
        | Chunk::Block { index, .. }
        | Chunk::End { index } => Some(*index),
        _ => None,
    }
}
