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

/// How many deeds there were, in the shared storage.
pub(super) const COUNT: Key<u32> = Key::new("count");

/// A call: its id, its tool and its arguments.
pub(super) type Call = (&'static str, &'static str, Value);

/// A call without arguments.
pub(super) fn call(id: &'static str, tool: &'static str) -> Call {
    (id, tool, json!({}))
}

/// A model that says what belongs to the step that its run is in, and `done` at the end. It counts its calls.
#[derive(Clone, Default)]
pub(super) struct Script {
    steps: Vec<Vec<Call>>,
    usage: Usage,
    fails: bool,
    pub(super) calls: Arc<AtomicU32>,
}

impl Script {
    pub(super) fn new(steps: impl IntoIterator<Item = Vec<Call>>) -> Self {
        Self { steps: steps.into_iter().collect(), usage: Usage::new(1, 1), ..Self::default() }
    }

    /// Sets what each call uses.
    pub(super) fn using(mut self, usage: Usage) -> Self {
        self.usage = usage;
        self
    }

    /// Fails where it would say that it is done.
    pub(super) fn failing(mut self) -> Self {
        self.fails = true;
        self
    }

    /// Counts its calls here.
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
            None => "done".into(),
        };
        Ok(ModelResponse::new(says).with_usage(self.usage))
    }
}

/// What steers a run.
pub(super) const STEERS: &str = "and be quick";

type Body = Box<dyn Fn(ToolRequest) -> BoxFuture<'static, Result<ToolOutput>> + Send + Sync>;

/// A tool that may be called again, made of a closure.
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

    /// Calls the sub-agent under `helper`, and does nothing else.
    pub(super) fn delegating() -> Self {
        let body = |req: ToolRequest| async move {
            let finished = req.call_sub_agent("helper", "help").await?;
            Ok(ToolOutput::text(finished.answer))
        };
        let Self { name, options, body } = Self::new("delegate", body);
        Self { name, options: options.delegates(), body }
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

/// What is outside of all processes: what was done there, and the calls that happened and whose process died before anybody knew. What those
/// counted died with it.
#[derive(Clone, Default)]
pub(super) struct Deeds {
    pub(super) outside: Outside,
    cut_off: Arc<Mutex<BTreeSet<String>>>,
}

impl Deeds {
    fn is_cut_off(&self, key: &str) {
        self.cut_off.lock().unwrap_or_else(PoisonError::into_inner).insert(key.to_owned());
    }

    /// How many calls were cut off, and happened.
    pub(super) fn cut_off(&self) -> u32 {
        let cut_off = self.cut_off.lock().unwrap_or_else(PoisonError::into_inner).len();
        u32::try_from(cut_off).expect("few")
    }

    /// What somebody answers who looks there.
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

    /// A tool of each effect.
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

/// A tool that does something outside, counts it in the shared storage, and is called by its effect.
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
