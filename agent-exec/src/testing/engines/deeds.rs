//! Models and tools for runs whose processes die.

use std::{
    collections::BTreeSet,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU32, Ordering},
    },
};

use agent_core::{
    AssistantMessage, Block, BoxFuture, Effect, Error, Key, Message, Model, ModelInfo, ModelRequest, ModelResponse,
    Question, Result, Tool, ToolOptions, ToolOutput, ToolRequest, ToolSpec, Usage, async_trait,
    testing::Outside,
    tool::{Doubt, Reconciled},
};
use serde_json::{Value, json};

/// Number of effects, in the shared storage.
pub(super) const COUNT: Key<u32> = Key::new("count");

/// A call: its id, its tool and its arguments.
pub(super) type Call = (&'static str, &'static str, Value);

/// Returns a call without arguments.
pub(super) fn call(id: &'static str, tool: &'static str) -> Call {
    (id, tool, json!({}))
}

/// A model with one scripted response per step of the run, and `done` at the end. It counts its
/// calls.
#[derive(Clone, Default)]
pub(super) struct Script {
    steps: Vec<Vec<Call>>,
    usage: Usage,
    fails: bool,
    names_task: bool,
    pub(super) calls: Arc<AtomicU32>,
}

impl Script {
    pub(super) fn new(steps: impl IntoIterator<Item = Vec<Call>>) -> Self {
        Self { steps: steps.into_iter().collect(), usage: Usage::new(1, 1), ..Self::default() }
    }

    /// Sets the usage of each call.
    pub(super) fn using(mut self, usage: Usage) -> Self {
        self.usage = usage;
        self
    }

    /// Makes the model fail instead of its final response.
    pub(super) fn failing(mut self) -> Self {
        self.fails = true;
        self
    }

    /// Makes the final response name the run's task.
    pub(super) fn naming_its_task(mut self) -> Self {
        self.names_task = true;
        self
    }

    /// Sets the counter of the model's calls.
    pub(super) fn counting(mut self, calls: &Arc<AtomicU32>) -> Self {
        self.calls = calls.clone();
        self
    }
}

#[async_trait]
impl Model for Script {
    fn info(&self) -> ModelInfo {
        ModelInfo::new("script")
    }

    async fn call(&self, req: ModelRequest) -> Result<ModelResponse> {
        self.calls.fetch_add(1, Ordering::SeqCst);
        let begins = |message: &Message| matches!(message, Message::User(_)) && message.text() != STEERS;
        let of_run = req.messages.iter().rev().take_while(|message| !begins(message));
        let step = of_run.filter(|message| matches!(message, Message::Assistant(_))).count();
        let block = |(id, tool, args): &Call| Block::tool_call(*id, *tool, args.to_string());
        let says = match self.steps.get(step) {
            Some(calls) => AssistantMessage::new(calls.iter().map(block).collect()),
            None if self.fails => return Err(Error::config("the model is not there")),
            None if self.names_task => {
                let task = req.messages.iter().find(|message| begins(message)).map(Message::text);
                format!("did {}", task.unwrap_or_default()).as_str().into()
            }
            None => "done".into(),
        };
        Ok(ModelResponse::new(says).with_usage(self.usage))
    }
}

/// Message that steers a run.
pub(super) const STEERS: &str = "and be quick";

type Body = Box<dyn Fn(ToolRequest) -> BoxFuture<'static, Result<ToolOutput>> + Send + Sync>;

/// A repeatable tool, made from a closure.
pub(super) struct Does {
    name: &'static str,
    options: ToolOptions,
    body: Body,
}

impl Does {
    pub(super) fn new<F: Future<Output = Result<ToolOutput>> + Send + 'static>(
        name: &'static str,
        body: impl Fn(ToolRequest) -> F + Send + Sync + 'static,
    ) -> Self {
        let body: Body = Box::new(move |req| Box::pin(body(req)));
        Self { name, options: ToolOptions::default().effect(Effect::Idempotent), body }
    }

    /// Calls the sub-agent `helper`, and does nothing else.
    pub(super) fn delegating() -> Self {
        let body = |req: ToolRequest| async move {
            let finished = req.call_sub_agent("helper", "help").await?;
            Ok(ToolOutput::text(finished.answer))
        };
        Self::new("delegate", body).delegates()
    }

    /// Declares that the tool only calls sub-agents.
    pub(super) fn delegates(self) -> Self {
        Self { options: self.options.delegates(), ..self }
    }

    /// Declares that the tool must not be repeated.
    pub(super) fn at_most_once(self) -> Self {
        Self { options: self.options.effect(Effect::AtMostOnce), ..self }
    }
}

#[async_trait]
impl Tool for Does {
    fn spec(&self) -> ToolSpec {
        ToolSpec::new(self.name, "", json!({"type": "object"}))
    }

    fn options(&self) -> ToolOptions {
        self.options.clone()
    }

    async fn call(&self, req: ToolRequest) -> Result<ToolOutput> {
        (self.body)(req).await
    }
}

/// The world outside of all processes: its effects, and the calls that happened although their
/// process died before it could record them. Counts kept by those calls in the shared storage were
/// lost.
#[derive(Clone, Default)]
pub(super) struct Deeds {
    pub(super) outside: Outside,
    cut_off: Arc<Mutex<BTreeSet<String>>>,
}

impl Deeds {
    fn is_cut_off(&self, key: &str) {
        self.cut_off.lock().unwrap_or_else(PoisonError::into_inner).insert(key.to_owned());
    }

    /// Returns the number of calls that were cut off after they had happened.
    pub(super) fn cut_off(&self) -> u32 {
        let cut_off = self.cut_off.lock().unwrap_or_else(PoisonError::into_inner).len();
        u32::try_from(cut_off).expect("few")
    }

    /// Returns the answer of a person who inspects the outside world.
    pub(super) fn answer(&self, question: &Question) -> Value {
        if question.kind != Doubt::KIND {
            return json!(true);
        }
        let found = self.outside.look(question);
        if found.is_object() {
            self.is_cut_off(question.payload["idempotency_key"].as_str().expect("has a key"));
        }
        found
    }

    /// Returns one tool per effect.
    pub(super) fn tools(&self) -> [Deed; 4] {
        let effects = [
            ("pure", Effect::Pure),
            ("again", Effect::Idempotent),
            ("looks", Effect::Reconcilable),
            ("once", Effect::AtMostOnce),
        ];
        effects.map(|(name, effect)| Deed { name, effect, deeds: self.clone() })
    }
}

/// A tool that acts on the outside world, counts it in the shared storage, and is named after its
/// effect.
pub(super) struct Deed {
    name: &'static str,
    effect: Effect,
    deeds: Deeds,
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
        let output = ToolOutput::text(format!("did {}", req.call.id));
        req.cx.globals().update(&COUNT, |count| count.unwrap_or(0) + 1)?;
        self.deeds.outside.happened(&req.idempotency_key(), self.effect, &output);
        Ok(output)
    }

    async fn reconcile(&self, req: ToolRequest) -> Result<Reconciled> {
        let key = req.idempotency_key();
        let found = self.deeds.outside.output(&key).inspect(|_| self.deeds.is_cut_off(&key));
        Ok(found.map_or(Reconciled::DidNot, Reconciled::Happened))
    }
}
