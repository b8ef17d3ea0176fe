//! Cost of counting a prompt of 100,000 tokens with 50 tools after one new message: the count of
//! the new message, and everything else.
//!
//! `cargo bench -p agent-llm --bench tokens`

use std::{hint::black_box, time::Instant};

use agent_core::{
    AssistantMessage, Block, History, Message, ModelRequest, TokenCounter, ToolMessage, ToolSpec, ToolSpecs,
    testing::detached_run,
};
use agent_llm::tokens::{ApproximateCounter, CalibratedCounter, IncrementalCounter, Tiktoken};
use serde_json::json;

const TOKENS: u64 = 100_000;
const WORDS: &str = "The quick brown fox jumps over the lazy dog, and nobody knows why it would do so. ";

/// A conversation of turns with a call each, and 100,000 tokens, of about `tokens` per message.
fn history(counter: &dyn TokenCounter, tokens: u64) -> History {
    let text = WORDS.repeat(usize::try_from(tokens).expect("small").div_ceil(19));
    let mut history = History::from_messages([Message::user("go")]).expect("paired");
    let turn = 2 * counter.text(&text);
    for n in 0..TOKENS / turn {
        let (id, text) = (format!("c{n}"), format!("{n} {text}"));
        let calls = AssistantMessage::new(vec![Block::text(&*text), Block::tool_call(&*id, "look", "{}")]);
        history.push_turn(calls, vec![ToolMessage::text(&*id, "look", text, false)]).expect("a turn");
    }
    history
}

fn tools() -> ToolSpecs {
    let property = |n| json!({"type": "string", "description": format!("What parameter {n} is for, in one sentence.")});
    let schema = json!({"type": "object", "properties": {"a": property(1), "b": property(2), "c": property(3)}});
    (0..50).map(|n| ToolSpec::new(format!("tool_{n}"), WORDS, schema.clone())).collect()
}

/// Returns the best of many times of `work`, in microseconds; `prepare` builds its input.
fn best<T, U>(mut prepare: impl FnMut() -> T, work: impl Fn(&T) -> U) -> f64 {
    let time = |_| {
        let subject = prepare();
        let start = Instant::now();
        black_box(work(black_box(&subject)));
        start.elapsed().as_nanos() as f64 / 1_000.0
    };
    (0..500).map(time).fold(f64::MAX, f64::min)
}

fn measure(name: &str, counter: impl TokenCounter + Clone, per_message: u64) {
    let (history, tools) = (history(&counter, per_message), tools());
    let counter = CalibratedCounter::new(IncrementalCounter::new(counter));
    let request = |history: History| {
        let mut req = ModelRequest::new(detached_run(history).cx().clone());
        req.tools = tools.clone();
        req
    };
    let tokens = request(history.clone()).tokens(&counter);
    let mut n = 0;
    let mut new = || {
        n += 1;
        Message::user(format!("{n} {}", WORDS.repeat(5)))
    };
    let alone = best(&mut new, |message| counter.message(message));
    let longer = || {
        let mut longer = history.clone();
        longer.push(new()).expect("paired");
        request(longer)
    };
    let step = best(longer, |req| req.tokens(&counter));
    println!(
        "{name:<20} {:>5} messages {tokens:>7} tokens: step {step:>6.1} µs, its message alone {alone:>6.1} µs, \
         everything else {:>5.1} µs",
        history.len(),
        step - alone
    );
}

fn main() {
    for per_message in [1_000, 200, 50] {
        measure("ApproximateCounter", ApproximateCounter, per_message);
        measure("Tiktoken o200k_base", Tiktoken::default(), per_message);
    }
}
