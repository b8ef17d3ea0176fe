//! Agent of the killed runs, and its world: a file that all processes append to.

use std::{
    collections::BTreeMap,
    io::Write,
    path::{Path, PathBuf},
    time::Duration,
};

use agent_core::{
    AssistantMessage, Block, Effect, Message, Model, ModelInfo, ModelRequest, ModelResponse, Question, Result, Tool,
    ToolOptions, ToolOutput, ToolRequest, ToolSpec, Usage, async_trait,
    tool::{Doubt, Reconciled},
};
use agent_dispatch::RunAddress;
use agent_exec::Agent;
use agent_middleware::Delegation;
use agent_tools::RemoteAgent;
use serde_json::{Value, json};

/// Log of effects, one line each: the key of the call.
#[derive(Clone, Debug)]
pub(crate) struct World(pub(crate) PathBuf);

impl World {
    fn did(&self, key: &str) {
        let file = std::fs::OpenOptions::new().create(true).append(true).open(&self.0);
        file.and_then(|mut file| file.write_all(format!("{key}\n").as_bytes())).expect("the file can be written");
    }

    fn has(&self, key: &str) -> bool {
        self.done().contains_key(&format!("{DELICATE_MARK}{key}"))
    }

    /// Returns the number of occurrences of each effect.
    pub(crate) fn done(&self) -> BTreeMap<String, u32> {
        let mut done = BTreeMap::new();
        for line in std::fs::read_to_string(&self.0).unwrap_or_default().lines() {
            *done.entry(line.to_owned()).or_default() += 1;
        }
        done
    }

    /// Returns the answer of a person who inspects the world.
    pub(crate) fn answer(&self, question: &Question) -> Value {
        if question.kind != Doubt::KIND {
            return json!(true);
        }
        let key = question.payload["idempotency_key"].as_str().expect("a doubt has a key");
        if self.has(key) { json!({"happened": "done"}) } else { json!("did_not") }
    }
}

/// Calls of each step. Calls of one step run concurrently.
const STEPS: [&[&str]; 5] = [
    &["pure", "again", "looks", "once"],
    &["asks", "delegate", PORTER],
    &["once", "sleeps", "looks"],
    &["once"],
    &["looks"],
];

/// Calls of the sub-agent's steps.
const HELPER: [&[&str]; 2] = [&["once", "again"], &["looks"]];

/// Agent whose runs are separate invocations, and its calls.
pub(crate) const PORTER: &str = "porter";
const CARRIES: [&[&str]; 2] = [&["looks", "once"], &["again", "asks"]];

/// Returns the run of the porter that this run of the worker calls.
pub(crate) fn porter_of(worker: &RunAddress) -> RunAddress {
    let RunAddress { agent, session, run, .. } = worker;
    RunAddress::new(PORTER, format!("{session}/{agent}/{PORTER}"), format!("{run}/2/c1-2"))
}

/// Number of calls per run whose effect must not be repeated.
pub(crate) const DELICATE: usize = 10;

/// Prefix of the lines of those calls.
pub(crate) const DELICATE_MARK: &str = "!";

/// Final text.
pub(crate) const ANSWER: &str = "all is done";

/// Model that makes the calls of the conversation's current step.
struct Script(&'static [&'static [&'static str]]);

#[async_trait]
impl Model for Script {
    fn info(&self) -> ModelInfo {
        ModelInfo::new("script")
    }

    async fn call(&self, req: ModelRequest) -> Result<ModelResponse> {
        tokio::time::sleep(Duration::from_millis(10)).await;
        let step = req.messages.iter().filter(|message| matches!(message, Message::Assistant(_))).count();
        let call = |(n, name): (usize, &&str)| {
            let args = match *name {
                "delegate" => json!({"agent": "helper", "message": "help"}),
                PORTER => json!({"message": "carry"}),
                _ => json!({}),
            };
            Block::tool_call(format!("c{step}-{n}"), *name, args.to_string())
        };
        let message = match self.0.get(step) {
            Some(calls) => AssistantMessage::new(calls.iter().enumerate().map(call).collect()),
            None => ANSWER.into(),
        };
        Ok(ModelResponse::new(message).with_usage(Usage::new(1, 1)))
    }
}

struct Deed {
    name: &'static str,
    effect: Effect,
    world: World,
}

#[async_trait]
impl Tool for Deed {
    fn spec(&self) -> ToolSpec {
        ToolSpec::new(self.name, "", json!({"type": "object"}))
    }

    fn options(&self) -> ToolOptions {
        ToolOptions::default().effect(self.effect)
    }

    async fn call(&self, req: ToolRequest) -> Result<ToolOutput> {
        match self.name {
            "asks" => _ = req.ask::<bool>("may", json!("May I?"))?,
            "sleeps" => req.cx.sleep(&req.call.id, Duration::from_millis(150)).await?,
            _ => {}
        }
        let delicate = matches!(self.effect, Effect::Reconcilable | Effect::AtMostOnce);
        tokio::time::sleep(Duration::from_millis(10)).await;
        let mark = if delicate { DELICATE_MARK } else { "" };
        self.world.did(&format!("{mark}{}", req.idempotency_key()));
        tokio::time::sleep(Duration::from_millis(10)).await;
        Ok(ToolOutput::text("done"))
    }

    async fn reconcile(&self, req: ToolRequest) -> Result<Reconciled> {
        Ok(match self.world.has(&req.idempotency_key()) {
            true => Reconciled::Happened(ToolOutput::text("done")),
            false => Reconciled::DidNot,
        })
    }
}

/// Builds the agents of each process.
pub(crate) fn agents(world: &Path) -> [Agent; 2] {
    let deed = |name, effect| Deed { name, effect, world: World(world.to_owned()) };
    let helper = Agent::builder("helper", Script(&HELPER))
        .tool(deed("again", Effect::Idempotent))
        .tool(deed("looks", Effect::Reconcilable))
        .tool(deed("once", Effect::AtMostOnce))
        .build()
        .expect("a sub-agent");
    let porter = Agent::builder(PORTER, Script(&CARRIES))
        .tool(deed("looks", Effect::Reconcilable))
        .tool(deed("once", Effect::AtMostOnce))
        .tool(deed("again", Effect::Idempotent))
        .tool(deed("asks", Effect::Pure))
        .build()
        .expect("an agent");
    let worker = Agent::builder("worker", Script(&STEPS))
        .tool(deed("pure", Effect::Pure))
        .tool(deed("again", Effect::Idempotent))
        .tool(deed("looks", Effect::Reconcilable))
        .tool(deed("once", Effect::AtMostOnce))
        .tool(deed("asks", Effect::Pure))
        .tool(deed("sleeps", Effect::Pure))
        .tool(RemoteAgent::new(PORTER))
        .middleware(Delegation::new().to("helper", "Helps.", helper))
        .build()
        .expect("an agent");
    [worker, porter]
}
