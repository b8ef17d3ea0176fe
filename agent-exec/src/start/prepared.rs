//! Merges the settings of a request with the defaults of its agent.

use std::{collections::BTreeMap, sync::Arc};

use agent_core::{
    Budget, Caps, History, ModelParams, Resources, Result, RunRequest, WhenBusy, WhenWaiting,
    engine::{Parent, Steps},
    run::{RunInput, ToolChoices},
};
use serde_json::Value;

use super::AgentParts;
use crate::prompts::Rendered;

/// A request with its prompts rendered.
pub(super) struct Prepared {
    pub(super) input: RunInput,
    /// Initial state of a new run.
    pub(super) state: BTreeMap<String, Value>,
    /// The rendered system prompt, if the agent has a template for it.
    pub(super) system: Option<Result<String>>,
    pub(super) options: Arc<RunOptions>,
}

/// Settings of the request, with the agent's defaults filled in; everything except the run's start
/// state.
pub(super) struct RunOptions {
    pub(super) parent: Option<Parent>,
    pub(super) names_session: bool,
    pub(super) agent_id: Option<Arc<str>>,
    pub(super) run_id: Option<Arc<str>>,
    pub(super) user: Option<Arc<str>>,
    /// Initial history of a child run.
    pub(super) history: Option<History>,
    pub(super) stream: bool,
    pub(super) params: Arc<ModelParams>,
    pub(super) tools: ToolChoices,
    pub(super) resources: Resources,
    pub(super) caps: Option<Caps>,
    pub(super) budget: Option<Budget>,
    pub(super) when_busy: WhenBusy,
    pub(super) when_waiting: WhenWaiting,
    pub(super) allow_changed_agent: bool,
    pub(super) allow_rewind: bool,
    /// The step API of the engine, if an engine persists the run's steps.
    pub(super) steps: Option<Steps>,
}

impl Prepared {
    pub(super) fn of(agent: &AgentParts, request: RunRequest) -> Result<Self> {
        let Rendered { system, user, state: of_inputs } = agent.prompts.render(&request, &agent.schema)?;
        let (mut input, mut state) = (request.input, request.state);
        if let RunInput::Messages(messages) = &mut input {
            messages.extend(user);
        }
        state.extend(of_inputs);
        let options = RunOptions {
            parent: request.parent,
            names_session: request.session.is_some(),
            agent_id: request.agent_id,
            run_id: request.run_id,
            user: request.user,
            history: request.history,
            stream: request.stream.unwrap_or(agent.stream),
            params: match request.params {
                Some(over) => (*agent.executor.params).clone().with(*over).into(),
                None => agent.executor.params.clone(),
            },
            tools: request.tools,
            resources: agent.resources.clone().extended(&request.resources),
            caps: request.caps,
            budget: request.budget,
            when_busy: request.when_busy.unwrap_or(agent.when_busy),
            when_waiting: request.when_waiting.unwrap_or(agent.when_waiting),
            allow_changed_agent: request.allow_changed_agent,
            allow_rewind: request.allow_rewind,
            steps: request.steps,
        };
        Ok(Self { input, state, system, options: Arc::new(options) })
    }
}

impl RunOptions {
    pub(super) fn is_root(&self) -> bool {
        self.parent.is_none()
    }
}
