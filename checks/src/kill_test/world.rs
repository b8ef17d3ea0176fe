//! Workload: a tree of agents of 30 steps on three levels, with tools of every effect.

use agent::{
    Agent, Result, WhenBusy,
    core::{
        AssistantMessage, Block, Effect, Error, Journal, Message, Model, ModelInfo, ModelRequest, ModelResponse,
        StateField, StateSchema, Tool, ToolOptions, ToolOutput, ToolRequest, ToolSpec, Usage, async_trait,
        tool::Reconciled,
    },
    middleware::Delegation,
};
use serde_json::{Value, json};

use super::{counter::Counter, moments::Moments};

pub(crate) const SESSION: &str = "killed";
pub(crate) const ROOT: &str = "root";

/// Tools, one per effect.
pub(crate) const TOOLS: [(&str, Effect); 4] = [
    ("pure", Effect::Pure),
    ("idempotent", Effect::Idempotent),
    ("reconcilable", Effect::Reconcilable),
    ("at_most_once", Effect::AtMostOnce),
];

/// Tool with an external effect.
struct Does {
    name: &'static str,
    effect: Effect,
    counter: Counter,
    moments: Moments,
}

/// Returns the result of a tool for these arguments, in every process.
pub(crate) fn given(arguments: &Value) -> Value {
    json!({"content": format!("done: {}", arguments["note"]), "entry": [arguments["note"]]})
}

#[async_trait]
impl Tool for Does {
    fn spec(&self) -> ToolSpec {
        let note = json!({"type": "object", "properties": {"note": {"type": "string"}}, "required": ["note"]});
        ToolSpec::new(self.name, "Does something outside.", note)
    }

    fn options(&self) -> ToolOptions {
        ToolOptions::default().effect(self.effect).writes("log", Some("entry"))
    }

    async fn call(&self, req: ToolRequest) -> Result<ToolOutput> {
        self.moments.pass(); // before the effect
        tokio::task::yield_now().await;
        req.verify_lease().await?;
        self.counter.add(&req.idempotency_key()).map_err(|e| Error::tool("the counter failed").with_source(e))?;
        self.moments.pass(); // after the effect, before its result is recorded
        tokio::task::yield_now().await;
        Ok(ToolOutput::value(given(&req.args)))
    }

    async fn reconcile(&self, req: ToolRequest) -> Result<Reconciled> {
        self.moments.pass();
        Ok(if self.counter.has(&req.idempotency_key()) {
            Reconciled::Happened(ToolOutput::value(given(&req.args)))
        } else {
            Reconciled::DidNot
        })
    }
}

/// Model whose response depends on the step of the conversation.
struct Steps(Vec<AssistantMessage>);

impl Steps {
    /// Creates a model of `steps` steps, all but the last of which call every tool; some call
    /// another agent too.
    fn new(agent: &str, steps: u32, helper: Option<(&str, &[u32])>) -> Self {
        let message = |step: u32| {
            let call = |(name, _): &(&str, Effect)| {
                let note = json!({"note": format!("{agent} {step} {name}")});
                Block::tool_call(format!("{step}-{name}"), *name, note.to_string())
            };
            let mut calls: Vec<_> = TOOLS.iter().map(call).collect();
            if let Some((helper, _)) = helper.filter(|(_, at)| at.contains(&step)) {
                let ask = json!({"agent": helper, "message": format!("help with {agent} {step}")});
                calls.insert(1, Block::tool_call(format!("{step}-ask"), "delegate", ask.to_string()));
            }
            AssistantMessage::new(calls)
        };
        Self((1..steps).map(message).chain([format!("{agent} is done").as_str().into()]).collect())
    }
}

#[async_trait]
impl Model for Steps {
    fn info(&self) -> ModelInfo {
        ModelInfo::new("steps")
    }

    async fn call(&self, req: ModelRequest) -> Result<ModelResponse> {
        let step = req.messages.iter().filter(|message| matches!(message, Message::Assistant(_))).count();
        let message = self.0.get(step).ok_or_else(|| Error::tool(format!("there is no step {step}")))?;
        Ok(ModelResponse::new(message.clone()).with_usage(Usage::new(3, 2)))
    }
}

/// Returns the tree, which each process builds anew: 10 steps at the top, and below them twice 5
/// and twice 5.
pub(crate) fn tree(journal: impl Journal, counter: &Counter, moments: &Moments) -> Result<Agent> {
    let agent = |name: &str, model: Steps| {
        let log = StateSchema::default().key("log", StateField::of::<Vec<String>>());
        let does = |(name, effect)| Does { name, effect, counter: counter.clone(), moments: moments.clone() };
        TOOLS.into_iter().fold(Agent::builder(name, model).state(log), |builder, tool| builder.tool(does(tool)))
    };
    let leaf = agent("leaf", Steps::new("leaf", 5, None)).build()?;
    let middle = agent("middle", Steps::new("middle", 5, Some(("leaf", &[2]))))
        .middleware(Delegation::new().to("leaf", "Helps.", leaf))
        .build()?;
    agent(ROOT, Steps::new(ROOT, 10, Some(("middle", &[3, 7]))))
        .middleware(Delegation::new().to("middle", "Helps.", middle))
        .store(journal)
        .when_busy(WhenBusy::queue()) // a dead process may still hold the session's lease
        .build()
}
