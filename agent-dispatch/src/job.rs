//! [`Job`]: the serialisable form of a run request.

use std::{collections::BTreeMap, sync::Arc};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use agent_core::{
    Caps, Error, Message, ModelParams, Result, RunRequest, WhenBusy, WhenWaiting,
    run::{RunInput, ToolChoices, new_id},
};

use crate::RunAddress;

/// A run to dispatch to another process: the serialisable part of a [`RunRequest`], with scheduling
/// options.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Job {
    /// Address of the run.
    pub at: RunAddress,
    /// New messages.
    pub messages: Vec<Message>,
    /// See [`RunRequest::agent_id`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent_id: Option<Arc<str>>,
    /// See [`RunRequest::stream`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stream: Option<bool>,
    /// See [`RunRequest::params`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub params: Option<Box<ModelParams>>,
    /// Names of the agent's tools to offer. Default: all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tools: Option<Vec<String>>,
    /// See [`RunRequest::state`].
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub state: BTreeMap<String, Value>,
    /// See [`RunRequest::inputs`].
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub inputs: BTreeMap<String, Value>,
    /// See [`RunRequest::system_prompt`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub system_prompt: Option<String>,
    /// See [`RunRequest::user_prompt`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user_prompt: Option<String>,
    /// See [`RunRequest::when_busy`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub when_busy: Option<WhenBusy>,
    /// See [`RunRequest::when_waiting`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub when_waiting: Option<WhenWaiting>,
    /// See [`RunRequest::user`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<Arc<str>>,
    /// See [`RunRequest::caps`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub caps: Option<Caps>,
    /// Tenant, for fair scheduling: the jobs of one tenant do not delay those of others. Default:
    /// one shared tenant.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub tenant: String,
    /// Priority within the tenant; higher values run first. Default: 0.
    #[serde(default)]
    pub priority: i16,
    /// Earliest start, in milliseconds since 1970, UTC. Default: now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_before: Option<u64>,
    /// See [`RunRequest::traceparent`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub traceparent: Option<Arc<str>>,
    /// Data from the sender for the code that converts the job to a request, such as the tools of a
    /// client. Default: null.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub extra: Value,
}

impl Job {
    /// Creates a job for this agent from the request. Missing run and session ids are generated, so
    /// that dispatching the job several times starts one run.
    ///
    /// # Errors
    /// [`ErrorKind::Config`](agent_core::ErrorKind::Config) if the request contains data that cannot be
    /// serialised: live handles, its own tools, a checkpoint, a parent run, an engine.
    pub fn new(agent: impl Into<Arc<str>>, request: &RunRequest) -> Result<Self> {
        let RunInput::Messages(messages) = &request.input else {
            return Err(unsendable("a checkpoint to go on from: give its run answers, or new messages"));
        };
        let tools = match &request.tools {
            ToolChoices::All => None,
            ToolChoices::Named(names) => Some(names.clone()),
            _ => {
                return Err(unsendable("tools of its own: give them to the agent"));
            }
        };
        if !request.resources.is_empty() || request.budget.is_some() {
            return Err(unsendable("live handles (resource(..), budget(..)): give them to the agent"));
        }
        if request.parent.is_some() || request.history.is_some() || request.steps.is_some() {
            return Err(unsendable("a run above it, a history or an engine: those are its process's"));
        }
        let made_up = || Arc::<str>::from(new_id());
        let run = request.run_id.clone().unwrap_or_else(made_up);
        let session = request.session.clone().unwrap_or_else(|| run.clone());
        Ok(Self {
            at: RunAddress::new(agent, session, run),
            messages: messages.clone(),
            agent_id: request.agent_id.clone(),
            stream: request.stream,
            params: request.params.clone(),
            tools,
            state: request.state.clone(),
            inputs: request.inputs.clone(),
            system_prompt: request.system_prompt.clone(),
            user_prompt: request.user_prompt.clone(),
            when_busy: request.when_busy,
            when_waiting: request.when_waiting,
            user: request.user.clone(),
            caps: request.caps,
            tenant: String::new(),
            priority: 0,
            not_before: None,
            traceparent: request.traceparent.clone(),
            extra: Value::Null,
        })
    }

    /// Sets the tenant.
    #[must_use]
    pub fn tenant(mut self, tenant: impl Into<String>) -> Self {
        self.tenant = tenant.into();
        self
    }

    /// Sets the priority within the tenant; higher values run first.
    #[must_use]
    pub fn priority(mut self, priority: i16) -> Self {
        self.priority = priority;
        self
    }

    /// Sets the earliest start, in milliseconds since 1970, UTC.
    #[must_use]
    pub fn not_before(mut self, at: u64) -> Self {
        self.not_before = Some(at);
        self
    }

    /// Sets the W3C trace context of the run.
    #[must_use]
    pub fn traceparent(mut self, traceparent: impl Into<Arc<str>>) -> Self {
        self.traceparent = Some(traceparent.into());
        self
    }

    /// Sets data for the code that converts the job to a request.
    #[must_use]
    pub fn extra(mut self, extra: impl Into<Value>) -> Self {
        self.extra = extra.into();
        self
    }

    /// Converts the job to a request for its agent.
    pub fn request(&self) -> RunRequest {
        let mut request = RunRequest::new(self.messages.clone());
        request.session = Some(self.at.session.clone());
        request.run_id = Some(self.at.run.clone());
        if let Some(names) = &self.tools {
            request.tools = ToolChoices::Named(names.clone());
        }
        request.agent_id.clone_from(&self.agent_id);
        request.stream = self.stream;
        request.params.clone_from(&self.params);
        request.state.clone_from(&self.state);
        request.inputs.clone_from(&self.inputs);
        request.system_prompt.clone_from(&self.system_prompt);
        request.user_prompt.clone_from(&self.user_prompt);
        (request.when_busy, request.when_waiting) = (self.when_busy, self.when_waiting);
        request.user.clone_from(&self.user);
        request.traceparent.clone_from(&self.traceparent);
        request.caps = self.caps;
        request
    }
}

fn unsendable(what: &str) -> Error {
    Error::config(format!("a run that goes to another process cannot bring {what}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_job_is_the_request_that_it_was_made_of() {
        let request = RunRequest::user("hello")
            .session("s")
            .run_id("r")
            .streaming(true)
            .state("k", 1)
            .input("city", "Bern")
            .tools_named(["look"])
            .on_behalf_of("ada")
            .traceparent("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")
            .caps(Caps::default().tokens(9))
            .when_busy(WhenBusy::queue());
        let job = Job::new("helper", &request).expect("it is data");
        let back: Job = serde_json::from_value(serde_json::to_value(&job).expect("JSON")).expect("a job");
        assert_eq!(back, job);
        assert_eq!(format!("{:?}", back.request()), format!("{request:?}"));
    }

    #[test]
    fn a_job_without_names_is_one_run_of_a_session_of_its_own() {
        let job = Job::new("helper", &RunRequest::user("hello")).expect("it is data");
        assert_eq!(job.at.session, job.at.run);
        assert_eq!(job.request().run_id, Some(job.at.run.clone()));
    }

    #[test]
    fn what_cannot_be_sent_is_refused() {
        let bad = [
            RunRequest::user("x").tools(Vec::new()),
            RunRequest::user("x").resource(7_u8),
            RunRequest::recover("s", []),
        ];
        for request in bad {
            let error = Job::new("helper", &request).expect_err("it is refused");
            assert!(error.message().contains("cannot bring"), "{error}");
        }
    }
}
