//! Allocation counts of calls, which are exact on any machine.

#[path = "suite/common/mod.rs"]
mod common;

use std::alloc::System;

use agent_core::{AssistantMessage, Block, History, Message, ModelRequest, ToolMessage, testing::detached_run};
use agent_llm::{AnthropicCodec, AnthropicProfile, Codec, Decoder, SseSplitter};
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};

use crate::common::{DONE, codec, completion, delta, finish};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// Returns the minimum of several counts, because allocations of other threads are counted, too.
fn least(count: impl FnMut() -> usize) -> usize {
    std::iter::repeat_with(count).take(5).min().unwrap_or_default()
}

/// Counts the allocations of `work`, including reallocations.
fn allocations<T>(work: impl FnOnce() -> T) -> usize {
    let region = Region::new(ALLOCATOR);
    let kept = work();
    let change = region.change();
    drop(kept);
    change.allocations + change.reallocations
}

fn history(turns: usize) -> History {
    let mut history = History::from_messages([Message::user("go")]).expect("paired");
    for turn in 0..turns {
        let call = AssistantMessage::new(vec![Block::tool_call(format!("c{turn}"), "echo", r#"{"text":"v"}"#)]);
        let result = ToolMessage::text(format!("c{turn}"), "echo", "v", false);
        history.push_turn(call, vec![result]).expect("a turn");
    }
    history
}

/// Counts the allocations of encoding the request after one more turn, when all earlier turns have
/// been encoded.
fn step(codec: &impl Codec, turns: usize) -> usize {
    let mut before = history(turns);
    let earlier = ModelRequest::new(detached_run(before.clone()).cx().clone());
    (0..2).for_each(|_| drop(codec.encode(&earlier).expect("encodes")));
    let call = AssistantMessage::new(vec![Block::tool_call("c", "echo", "{}")]);
    before.push_turn(call, vec![ToolMessage::text("c", "echo", "v", false)]).expect("a turn");
    let req = ModelRequest::new(detached_run(before).cx().clone());
    allocations(|| codec.encode(&req))
}

/// Counts the allocations of decoding `event`, `count` times, in a stream that has begun.
fn chunks(codec: &impl Codec, listened_to: bool, count: usize, [begin, event, end]: [&str; 3]) -> usize {
    let mut decoder: Box<dyn Decoder> = codec.decoder(listened_to);
    let (mut splitter, mut chunks) = (SseSplitter::default(), Vec::with_capacity(8));
    let mut push = |event: &str| {
        splitter.push(event.as_bytes(), |e| decoder.frame(e.data, &mut chunks)).expect("a frame");
        chunks.clear();
    };
    push(begin);
    push(event);
    let cost = allocations(|| (0..count).for_each(|_| push(event)));
    push(end);
    decoder.finish(&mut chunks).expect("an answer");
    cost
}

fn a_stream_is_cheap(codec: &impl Codec, stream: [&str; 3]) {
    let unheard = least(|| chunks(codec, false, 1_000, stream));
    assert!(unheard <= 12, "{unheard}: only what is said grows, by doubling");
    let heard = least(|| chunks(codec, true, 1_000, stream));
    assert!(heard <= 1_012, "{heard}: one for each chunk");
}

fn a_step_is_cheap(codec: &impl Codec) {
    let (short, long) = (least(|| step(codec, 10)), least(|| step(codec, 1_000)));
    assert!(short <= 11, "{short} for a step, one of them for the ids of its calls");
    assert!(long <= short + 4, "{long} for a step of a long history, {short} for one of a short");
}

/// A single test, because allocations of concurrent tests would be counted.
#[test]
fn what_a_call_allocates_is_small_and_does_not_grow() {
    openai_chat();
    anthropic();
}

fn anthropic() {
    let profile = AnthropicProfile::compatible("acme", "http://acme.test");
    let codec = AnthropicCodec::new("m", profile).expect("a codec");
    let event = |kind: &str, rest: &str| format!("data: {{\"type\":\"{kind}\",\"index\":0,{rest}}}\n\n");
    let end = event("message_stop", "\"x\":1");
    for (block, delta) in [
        (r#""type":"text","text":"""#, r#""type":"text_delta","text":"some words""#),
        (r#""type":"thinking","thinking":"""#, r#""type":"thinking_delta","thinking":"some words""#),
        (r#""type":"tool_use","id":"c","name":"f","input":{}"#, r#""type":"input_json_delta","partial_json":"words""#),
    ] {
        let begin = event("content_block_start", &format!("\"content_block\":{{{block}}}"));
        let event = event("content_block_delta", &format!("\"delta\":{{{delta}}}"));
        a_stream_is_cheap(&codec, [&begin, &event, &end]);
    }
    a_step_is_cheap(&codec);
}

fn openai_chat() {
    let codec = codec();
    let end = finish("stop") + DONE;
    a_stream_is_cheap(&codec, ["", &delta(r#"{"content":"some words"}"#), &end]);
    a_step_is_cheap(&codec);

    let message = r#"{"role":"assistant","content":null,"tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":"{}"}}]}"#;
    let body = completion(message, "tool_calls");
    let decoded = least(|| allocations(|| codec.decode(body.as_bytes())));
    assert!(decoded <= 16, "{decoded} for an answer");
}
