//! The output of `explain()` matches the execution.

use std::task::{Context, Poll};

use agent_core::{
    Result,
    testing::{HookTrace, ScriptedModel, Turn},
};
use agent_exec::{Agent, AgentBuilder};
use agent_middleware::{
    Guardrails, Logging, LongToolOutput, Pii, PromptInjection,
    guardrails::{GuardVerdict, Guarded},
};
use proptest::prelude::*;
use serde_json::json;
use tower::{Layer, Service};

use crate::common::gives;

/// A layer that logs when it is entered. The number makes it a distinct type with its own name.
#[derive(Clone)]
struct Probe<const N: usize>(HookTrace);

#[derive(Clone)]
struct Probed<S, const N: usize>(HookTrace, S);

impl<S, const N: usize> Layer<S> for Probe<N> {
    type Service = Probed<S, N>;

    fn layer(&self, inner: S) -> Self::Service {
        Probed(self.0.clone(), inner)
    }
}

impl<R, S: Service<R>, const N: usize> Service<R> for Probed<S, N> {
    type Response = S::Response;
    type Error = S::Error;
    type Future = S::Future;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.1.poll_ready(cx)
    }

    fn call(&mut self, req: R) -> Self::Future {
        self.0.note(&format!("Probe<{N}>"));
        self.1.call(req)
    }
}

#[derive(Clone, Copy, Debug)]
enum Item {
    Middleware,
    ModelLayer(u8),
    ToolLayer(u8),
}

fn items() -> impl Strategy<Value = Vec<Item>> {
    let item =
        prop_oneof![Just(Item::Middleware), (0..3u8).prop_map(Item::ModelLayer), (0..3u8).prop_map(Item::ToolLayer),];
    prop::collection::vec(item, 0..12)
}

const NAMES: [&str; 12] = ["m0", "m1", "m2", "m3", "m4", "m5", "m6", "m7", "m8", "m9", "m10", "m11"];

fn stacked(builder: AgentBuilder, items: &[Item], trace: &HookTrace) -> AgentBuilder {
    let layers = trace.beside("layer");
    items.iter().zip(NAMES).fold(builder, |builder, (item, name)| match item {
        Item::Middleware => builder.middleware(trace.beside(name)),
        Item::ModelLayer(0) => builder.model_layer(Probe::<0>(layers.clone())),
        Item::ModelLayer(1) => builder.model_layer(Probe::<1>(layers.clone())),
        Item::ModelLayer(_) => builder.model_layer(Probe::<2>(layers.clone())),
        Item::ToolLayer(0) => builder.tool_layer(Probe::<0>(layers.clone())),
        Item::ToolLayer(1) => builder.tool_layer(Probe::<1>(layers.clone())),
        Item::ToolLayer(_) => builder.tool_layer(Probe::<2>(layers.clone())),
    })
}

/// Returns the names that `explain()` prints in the line that begins with `line`, in the paragraph
/// of `what`.
fn printed(explained: &str, what: &str, line: &str) -> Vec<String> {
    let lines = explained.lines().skip_while(|text| *text != format!("{what}:")).skip(1);
    let mut own = lines.take_while(|text| text.starts_with("  "));
    let names = own.find_map(|text| text.trim().strip_prefix(line)).unwrap_or_default();
    let names = names.trim().split(" -> ").filter(|name| !name.is_empty());
    names.map(str::to_owned).take_while(|name| !["journal", "checks"].contains(&&**name)).collect()
}

/// Returns the names of the entered items, from the log lines that report them.
fn entered(seen: &[String], hook: &str) -> Vec<String> {
    let name = |line: &String| match line.strip_prefix("layer.") {
        Some(probe) => Some(probe.to_owned()),
        None => line.strip_suffix(hook).map(str::to_owned),
    };
    seen.iter().filter_map(name).collect()
}

/// Returns the log lines between the first `from` and the next `to`.
fn between(seen: &[String], from: &str, to: &str) -> Vec<String> {
    seen.iter().skip_while(|line| *line != from).skip(1).take_while(|line| *line != to).cloned().collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn the_printed_order_is_the_executed_order(items in items()) {
        let trace = HookTrace::new("around");
        let (before, after) = (trace.beside("begin"), trace.beside("end"));
        let model = ScriptedModel::new([Turn::call("c1", "f", json!({})), Turn::text("done")]);
        let builder = Agent::builder("a", model).tool(gives("f", json!(1)));
        let agent = stacked(builder, &items, &trace).build().expect("no order is declared");
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().expect("starts");
        before.note("run");
        runtime.block_on(agent.run("go")).expect("runs");
        after.note("run");

        let seen = between(&trace.seen(), "begin.run", "end.run");
        let explained = agent.explain();
        // The first model call ends where its batch of calls begins; without a middleware nothing
        // logs that point.
        let tools = seen.iter().position(|line| line.contains(".before_tools")).unwrap_or(seen.len());
        let model_call = &seen[..tools];
        prop_assert_eq!(printed(explained, "model call", "hooks, once per call:"), entered_hooks(model_call, ".before_model"));
        prop_assert_eq!(printed(explained, "tool call", "hooks, once per call:"), entered_hooks(&seen, ".before_tool(f)"));
        if tools < seen.len() {
            prop_assert_eq!(printed(explained, "model call", "once per attempt:"), entered(model_call, ".model>"));
            let rest = &seen[tools..];
            let answered = rest.iter().position(|line| line.ends_with(".after_tools")).unwrap_or(rest.len());
            prop_assert_eq!(printed(explained, "tool call", "once per attempt:"), entered(&rest[..answered], ".tool>"));
        }
        trace.assert_nested();
    }
}

fn entered_hooks(seen: &[String], hook: &str) -> Vec<String> {
    seen.iter().filter_map(|line| line.strip_suffix(hook)).map(str::to_owned).collect()
}

/// Guardrails with a guard that passes everything.
fn guardrails() -> Guardrails {
    Guardrails::new().guard(Guarded::new("guard", |_, _| async { Ok(GuardVerdict::Pass) }))
}

#[test]
fn what_keeps_things_back_stands_inside_what_shows_and_keeps_them() {
    type Stack = fn(AgentBuilder) -> AgentBuilder;
    let stacks: [(Stack, Stack, &str); 4] = [
        (
            |b| b.middleware(Logging::new()).middleware(Pii::new()),
            |b| b.middleware(Pii::new()).middleware(Logging::new()),
            "logging",
        ),
        (
            |b| b.middleware(LongToolOutput::new()).middleware(Pii::new()),
            |b| b.middleware(Pii::new()).middleware(LongToolOutput::new()),
            "long_tool_output",
        ),
        (
            |b| b.middleware(guardrails()).middleware(Pii::new()),
            |b| b.middleware(Pii::new()).middleware(guardrails()),
            "guardrails",
        ),
        (
            |b| b.middleware(LongToolOutput::new()).middleware(PromptInjection::new()),
            |b| b.middleware(PromptInjection::new()).middleware(LongToolOutput::new()),
            "long_tool_output",
        ),
    ];
    for (right, wrong, named) in stacks {
        let builder = || Agent::builder("a", ScriptedModel::new([]));
        right(builder()).build().expect("the right order");
        let e = wrong(builder()).build().expect_err("the wrong order");
        assert!(e.message().contains(named), "{e}");
    }
}
