//! Check that a stream and a whole body yield the same response.

use agent::{
    Block, ModelResponse,
    core::{Chunk, model::MessageBuilder},
    llm::conformance::json,
};
use serde_json::{Value, json};

use super::{Outcome, Subject, decode::to_json};
use crate::recordings::Recording;

pub(super) fn check(subject: &Subject<'_>) -> Outcome {
    let (whole, turn) = match &subject.recording {
        Recording::Streamed(whole) => match subject.wire.turn(whole) {
            Some(turn) => (whole, turn),
            None => return Outcome::NotMeant,
        },
        Recording::Cut => return Outcome::NotCheckable("the stream was cut"),
        Recording::Interrupted => return Outcome::NotCheckable("the stream holds an error"),
        Recording::Broken(why) if subject.exchange.stream => return Outcome::NotCheckable(why),
        _ => return Outcome::NotMeant,
    };
    let (streamed, chunks) = match subject.streamed(true) {
        Ok(streamed) => streamed,
        Err(error) => return Outcome::failed(format!("the stream was not read: {error:?}")),
    };
    let whole = match subject.codec.decode(whole.to_string().as_bytes()) {
        Ok(whole) => whole,
        Err(error) => return Outcome::failed(format!("the equivalent whole body was not read: {error:?}")),
    };
    let mut complaints = other_answer(subject, &turn, &whole, &streamed);
    complaints.extend(other_blocks(&chunks, streamed.message.blocks()));
    match subject.streamed(false) {
        Ok((unheard, none)) if unheard == streamed && none.is_empty() => {}
        other => complaints.push(format!("without listeners the answer is another: {other:?}")),
    }
    Outcome::of(complaints)
}

/// Lists the differences between the streamed and the whole response of `turn`. A call without an
/// id gets one that may differ: it is derived from the event.
fn other_answer(subject: &Subject<'_>, turn: &Value, whole: &ModelResponse, streamed: &ModelResponse) -> Vec<String> {
    let said = subject.wire.said(turn);
    let [left, right] = [whole, streamed].map(|response| {
        let mut blocks: Vec<&Block> = response.message.blocks().iter().collect();
        if !subject.wire.has_order() {
            blocks.sort_by_key(|block| rank(block));
        }
        let mut blocks = json!(blocks);
        let calls = blocks.as_array_mut().into_iter().flatten().filter_map(|block| block.get_mut("tool_call"));
        for (call, _) in calls.zip(&said.calls).filter(|(_, said)| said.id.is_empty()) {
            call["id"] = "".into();
        }
        if subject.wire.arguments_are_json() {
            blocks.as_array_mut().into_iter().flatten().for_each(read_arguments);
        }
        let json = to_json(response);
        json!({"blocks": blocks, "finish": json["finish"], "usage": json["usage"], "id": json["id"], "model": json["model"]})
    });
    let mut out = json::differences(&left, &right);
    match (whole.message.raw(), streamed.message.raw()) {
        (Some(whole), Some(streamed)) => {
            let differences = subject.wire.turn_differences(&whole.to_value(), &streamed.to_value());
            out.extend(differences.into_iter().map(|difference| format!("/raw{difference}")));
        }
        (None, None) => {}
        (whole, streamed) => out.push(format!("/raw: {streamed:?} is not {whole:?}")),
    }
    out
}

/// Replaces the text of a call's arguments by their value.
fn read_arguments(block: &mut Value) {
    let Some(arguments) = block.pointer_mut("/tool_call/arguments") else { return };
    if let Some(value) = arguments.as_str().and_then(|text| serde_json::from_str(text).ok()) {
        *arguments = value;
    }
}

/// Returns the sort rank: reasoning, text, calls, others.
fn rank(block: &Block) -> u8 {
    match block {
        Block::Reasoning(_) => 0,
        Block::Text(_) => 1,
        Block::ToolCall(_) => 2,
        _ => 3,
    }
}

/// Lists the differences between the chunks for listeners and the message.
fn other_blocks(chunks: &[Chunk], blocks: &[Block]) -> Vec<String> {
    let mut heard = MessageBuilder::default();
    chunks.iter().for_each(|chunk| heard.push(chunk));
    let heard = json!(heard.into_blocks());
    let differences = json::differences(&json!(blocks), &heard).into_iter();
    let mut out: Vec<_> = differences.map(|difference| format!("/chunks{difference}")).collect();
    let mut ended: Vec<u32> =
        chunks.iter().filter_map(|chunk| if let Chunk::End { index } = chunk { Some(*index) } else { None }).collect();
    ended.sort_unstable();
    let all: Vec<u32> = (0..).take(blocks.len()).collect();
    if ended != all {
        out.push(format!("/chunks: the blocks {ended:?} ended, not {all:?}"));
    }
    out
}
