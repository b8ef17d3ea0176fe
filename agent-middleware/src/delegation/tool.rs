//! The tool that runs a sub-agent.

use std::sync::Arc;

use agent_core::{
    Effect, Error, ErrorKind, PerRun, Result, RunCx, SubAgent, Tool, ToolOptions, ToolOutput, ToolRequest, ToolSpec,
    engine::SubAgentCall, run::SubAgents, tool::Reconciled,
};
use async_trait::async_trait;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{
    DelegationConfig,
    family::{CANCEL_GRACE, Family},
    text,
};

/// Runs a sub-agent as a tool call.
pub(super) struct Delegate {
    spec: ToolSpec,
    /// Key of the only agent that it runs; a parameter of the call if unset.
    key: Option<String>,
    offer: Arc<Offer>,
}

/// Shared by all tools of one [`Delegation`](super::Delegation).
pub(super) struct Offer {
    pub(super) config: DelegationConfig,
    pub(super) agents: SubAgents,
    pub(super) families: Arc<PerRun<Family>>,
}

impl Offer {
    pub(super) fn family(&self, cx: &RunCx) -> Arc<Family> {
        self.families.of(cx, || Family::new(&self.config))
    }

    /// Returns the parameters that every call of an agent accepts.
    fn parameters(&self) -> Value {
        let mut properties = json!({
            "message": {"type": "string", "description": "The task, complete in itself."},
        });
        if self.config.recall {
            properties["id"] = json!({
                "type": "string",
                "description": "The id of an agent that you called before, to go on with it and what it knows. Leave it \
                                out to call a new one.",
            });
        }
        if self.config.fork {
            properties["fork"] = json!({
                "type": "boolean",
                "description": "True: the agent knows this conversation so far. Default: it knows only its task.",
            });
        }
        if self.config.background {
            properties["background"] = json!({
                "type": "boolean",
                "description": "True: you go on at once, and are told when the agent is done. Default: you wait for it.",
            });
        }
        json!({"type": "object", "properties": properties, "required": ["message"], "additionalProperties": false})
    }
}

#[derive(Deserialize)]
struct Args {
    agent: Option<String>,
    message: String,
    id: Option<String>,
    #[serde(default)]
    fork: bool,
    #[serde(default)]
    background: bool,
}

impl Delegate {
    /// Creates one tool for all agents.
    pub(super) fn any(agents: &[SubAgent], offer: Arc<Offer>) -> Self {
        let keys: Vec<_> = agents.iter().map(|a| a.key.as_str()).collect();
        let list: String = agents.iter().map(|a| format!("\n- **{}**: {}", a.key, a.description)).collect();
        let sees = match offer.config.fork {
            true => "Unless it is forked, the agent sees nothing of this conversation",
            false => "The agent sees nothing of this conversation",
        };
        let description = format!(
            "Hands a task to another agent and returns its answer. {sees}: say everything that it must know. Available \
             agents:{list}"
        );
        let mut parameters = offer.parameters();
        parameters["properties"]["agent"] = json!({"type": "string", "enum": keys, "description": "Which agent."});
        parameters["required"] = json!(["agent", "message"]);
        Self { spec: ToolSpec::new(&offer.config.tool, description, parameters), key: None, offer }
    }

    /// Creates a tool for one agent.
    pub(super) fn one(agent: &SubAgent, offer: Arc<Offer>) -> Self {
        let spec = ToolSpec::new(&agent.key, &agent.description, offer.parameters());
        Self { spec, key: Some(agent.key.clone()), offer }
    }

    /// Runs the sub-agent and waits for its answer.
    async fn wait(&self, req: &ToolRequest, call: SubAgentCall) -> Result<ToolOutput> {
        let key = call.key.clone();
        let _place = self.offer.family(&req.cx).place(&req.cx).await?;
        let run = req.sub_run(call).await?;
        let id = run.id().clone();
        match run.finish().await {
            Ok(finished) => Ok(text::answered(&key, &finished, self.offer.config.recall)),
            Err(e) if ends_the_caller(e.kind()) => Err(e),
            Err(e) => Err(text::failed(&key, &id, e)),
        }
    }

    /// Starts the sub-agent in the background.
    async fn start(&self, req: &ToolRequest, call: SubAgentCall) -> Result<ToolOutput> {
        let (family, config) = (self.offer.family(&req.cx), &self.offer.config);
        let place = family.place_now(&call.key)?;
        let run = req.sub_run(call).await?;
        let child = family.start(&req.cx, run, place, config.recall)?;
        Ok(text::started(&child.key, &child.id, &child.run, &config.tool))
    }
}

#[async_trait]
impl Tool for Delegate {
    fn spec(&self) -> ToolSpec {
        self.spec.clone()
    }

    fn options(&self) -> ToolOptions {
        let mut options = ToolOptions::default().effect(Effect::Reconcilable).delegates();
        options.cancel_grace = CANCEL_GRACE;
        options
    }

    async fn call(&self, req: ToolRequest) -> Result<ToolOutput> {
        let Args { agent, message, id, fork, background } = req.parse()?;
        let key = self.key.clone().or(agent).unwrap_or_default();
        self.offer.agents.get(&key)?;
        let config = &self.offer.config;
        if req.cx.ids().depth >= config.max_depth {
            return Err(Error::tool(format!(
                "Sub-agent '{key}' was not started: agents may be nested at most {} deep. Do the task yourself.",
                config.max_depth
            )));
        }
        let mut call = SubAgentCall::new(key, message);
        call.recall = id.filter(|id| !id.trim().is_empty()).map(Into::into);
        call.fork = fork;
        call.background = background && config.background;
        match call.background {
            true => self.start(&req, call).await,
            false => self.wait(&req, call).await,
        }
    }

    /// The start of a sub-agent is durable before it does anything: an unrecorded one did nothing.
    async fn reconcile(&self, _: ToolRequest) -> Result<Reconciled> {
        Ok(Reconciled::DidNot)
    }
}

/// True for errors that concern the caller and not only the sub-agent.
fn ends_the_caller(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::Interrupted | ErrorKind::Cancelled | ErrorKind::Store | ErrorKind::NonDeterminism)
}
