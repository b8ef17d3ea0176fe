//! Metrics according to the conventions.

use std::time::Duration;

use agent_core::Usage;
use opentelemetry::{
    KeyValue, global,
    metrics::{Counter, Histogram, Meter},
};

use super::TokenMetrics;

/// The instruments, created from the meter provider that was global when the first span was
/// created.
#[derive(Debug)]
pub(super) struct Instruments {
    operation: Histogram<f64>,
    first_chunk: Histogram<f64>,
    output_chunk: Histogram<f64>,
    agent: Histogram<f64>,
    tool: Histogram<f64>,
    inference_calls: Histogram<u64>,
    tool_calls: Histogram<u64>,
    tokens: Histogram<u64>,
    split: Split,
}

/// Token metrics under the upcoming names.
#[derive(Debug)]
struct Split {
    input: Counter<u64>,
    cache_read: Counter<u64>,
    cache_write: Counter<u64>,
    output: Counter<u64>,
    reasoning: Counter<u64>,
    input_of_one: Histogram<u64>,
    output_of_one: Histogram<u64>,
}

impl Instruments {
    pub(super) fn new() -> Self {
        let meter = global::meter("agent");
        let seconds = |name, about| seconds(&meter, name, about);
        let calls = |name, about| {
            let powers = (0..=10).map(|power| f64::from(1 << power)).collect();
            meter.u64_histogram(name).with_unit("1").with_description(about).with_boundaries(powers).build()
        };
        let split_of = "gen_ai.client.inference.usage";
        let count = |what: &str, about| {
            let name = format!("{split_of}.{what}");
            meter.u64_counter(name).with_unit("{token}").with_description(about).build()
        };
        Self {
            operation: seconds("gen_ai.client.operation.duration", "How long a model call took."),
            first_chunk: seconds(
                "gen_ai.client.operation.time_to_first_chunk",
                "Time to the first piece of an answer.",
            ),
            output_chunk: seconds("gen_ai.client.operation.time_per_output_chunk", "Time between two pieces."),
            agent: seconds("gen_ai.invoke_agent.duration", "How long a run of an agent took."),
            tool: seconds("gen_ai.execute_tool.duration", "How long a tool call took."),
            inference_calls: calls("gen_ai.invoke_agent.inference_calls", "Model calls of one run."),
            tool_calls: calls("gen_ai.invoke_agent.tool_calls", "Tool calls of one run."),
            tokens: tokens(&meter, "gen_ai.client.token.usage", "Tokens of one model call."),
            split: Split {
                input: count("input_tokens", "Input tokens."),
                cache_read: count("cache_read.input_tokens", "Input tokens that a cache served."),
                cache_write: count("cache_write.input_tokens", "Input tokens that were written to a cache."),
                output: count("output_tokens", "Output tokens."),
                reasoning: count("reasoning.output_tokens", "Output tokens that were reasoning."),
                input_of_one: tokens(&meter, "gen_ai.client.inference.operation.input_tokens", "Input of one call."),
                output_of_one: tokens(&meter, "gen_ai.client.inference.operation.output_tokens", "Output of one call."),
            },
        }
    }

    pub(super) fn model_call(&self, took: Duration, of: &[KeyValue]) {
        self.operation.record(took.as_secs_f64(), of);
    }

    pub(super) fn first_chunk(&self, after: Duration, of: &[KeyValue]) {
        self.first_chunk.record(after.as_secs_f64(), of);
    }

    pub(super) fn output_chunk(&self, after: Duration, of: &[KeyValue]) {
        self.output_chunk.record(after.as_secs_f64(), of);
    }

    pub(super) fn tool_call(&self, took: Duration, of: &[KeyValue]) {
        self.tool.record(took.as_secs_f64(), of);
    }

    pub(super) fn run(&self, took: Duration, model_calls: u64, tool_calls: u64, of: &[KeyValue]) {
        self.agent.record(took.as_secs_f64(), of);
        self.inference_calls.record(model_calls, of);
        self.tool_calls.record(tool_calls, of);
    }

    /// Records the usage of a call. A response without usage is skipped, since nothing is known
    /// about it.
    pub(super) fn usage(&self, usage: &Usage, names: TokenMetrics, of: &[KeyValue]) {
        if names.current() && usage.calls > 0 {
            for (kind, tokens) in [("input", usage.prompt()), ("output", usage.output)] {
                let of: Vec<_> = of.iter().cloned().chain([KeyValue::new("gen_ai.token.type", kind)]).collect();
                self.tokens.record(tokens, &of);
            }
        }
        if names.split() && usage.calls > 0 {
            self.split(usage, of);
            self.split.input_of_one.record(usage.prompt(), of);
            self.split.output_of_one.record(usage.output, of);
        }
    }

    /// Records a failed call: under the upcoming names, its usage is zero.
    pub(super) fn failed(&self, names: TokenMetrics, of: &[KeyValue]) {
        if names.split() {
            self.split(&Usage::default(), of);
        }
    }

    fn split(&self, usage: &Usage, of: &[KeyValue]) {
        let Split { input, cache_read, cache_write, output, reasoning, .. } = &self.split;
        input.add(usage.prompt(), of);
        cache_read.add(usage.cached, of);
        cache_write.add(usage.cache_write, of);
        output.add(usage.output, of);
        reasoning.add(usage.reasoning, of);
    }
}

/// Creates a histogram from 10 ms to 82 s, in powers of two.
fn seconds(meter: &Meter, name: &'static str, about: &'static str) -> Histogram<f64> {
    let doubling = (0..14).map(|power| 0.01 * f64::from(1 << power)).collect();
    meter.f64_histogram(name).with_unit("s").with_description(about).with_boundaries(doubling).build()
}

/// Creates a histogram from 1 to 67 million, in powers of four.
fn tokens(meter: &Meter, name: &'static str, about: &'static str) -> Histogram<u64> {
    let fourfold = (0..14).map(|power| f64::from(1 << (2 * power))).collect();
    meter.u64_histogram(name).with_unit("{token}").with_description(about).with_boundaries(fourfold).build()
}
