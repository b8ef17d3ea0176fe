//! A run as it is sent.

use std::{collections::BTreeMap, sync::Arc};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::RunAddress;
use crate::{
    amounts::Caps,
    error::{Error, Result},
    llm::ModelParams,
    message::Message,
    request::{RunInput, RunRequest, ToolChoices},
    state::{WhenBusy, WhenWaiting, new_id},
};

/// A run as it is sent to whoever runs it: the part of a [`RunRequest`] that is data, and when and before which others it may run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Job {
    /// Which run.
    pub at: RunAddress,
    /// The new messages.
    pub messages: Vec<Message>,
    /// As [`RunRequest::agent_id`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent_id: Option<Arc<str>>,
    /// As [`RunRequest::stream`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stream: Option<bool>,
    /// As [`RunRequest::params`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub params: Option<Box<ModelParams>>,
    /// The names of the agent's tools that are on offer; none is all of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tools: Option<Vec<String>>,
    /// As [`RunRequest::state`].
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub state: BTreeMap<String, Value>,
    /// As [`RunRequest::inputs`].
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub inputs: BTreeMap<String, Value>,
    /// As [`RunRequest::system_prompt`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub system_prompt: Option<String>,
    /// As [`RunRequest::user_prompt`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user_prompt: Option<String>,
    /// As [`RunRequest::when_busy`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub when_busy: Option<WhenBusy>,
    /// As [`RunRequest::when_waiting`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub when_waiting: Option<WhenWaiting>,
    /// As [`RunRequest::user`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<Arc<str>>,
    /// As [`RunRequest::caps`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub caps: Option<Caps>,
    /// Among whom turns are shared out: the jobs of one tenant do not hold up those of others. Default: all are one.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub tenant: String,
    /// Higher ones of a tenant go first. Default: 0.
    #[serde(default)]
    pub priority: i16,
    /// When it may begin: milliseconds since 1970, UTC. Default: now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_before: Option<u64>,
    /// As [`RunRequest::traceparent`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub traceparent: Option<Arc<str>>,
    /// What the sender has to tell whoever makes the job a request, such as the tools of a client. Default: null.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub extra: Value,
}

impl Job {
    /// The request, as one for this agent. What the request does not say of run and session is made up, so that the job is one run
    /// however often it is sent.
    ///
    /// # Errors
    /// [`ErrorKind::Config`](crate::ErrorKind::Config) if the request has what cannot be sent: live handles, tools of its own, a
    /// checkpoint, a run above it, an engine.
    pub fn new(agent: impl Into<Arc<str>>, request: &RunRequest) -> Result<Self> {
        let RunInput::Messages(messages) = &request.input else {
            return Err(unsendable("a checkpoint to go on from: give its run answers, or new messages"));
        };
        let tools = match &request.tools {
            ToolChoices::All => None,
            ToolChoices::Named(names) => Some(names.clone()),
            ToolChoices::Replace(_) | ToolChoices::Also(_) => {
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

    /// Sets among whom turns are shared out.
    #[must_use]
    pub fn tenant(mut self, tenant: impl Into<String>) -> Self {
        self.tenant = tenant.into();
        self
    }

    /// Sets before which others of the tenant it goes: higher ones are first.
    #[must_use]
    pub fn priority(mut self, priority: i16) -> Self {
        self.priority = priority;
        self
    }

    /// Sets when it may begin: milliseconds since 1970, UTC.
    #[must_use]
    pub fn not_before(mut self, at: u64) -> Self {
        self.not_before = Some(at);
        self
    }

    /// Sets the W3C trace context that the run belongs to.
    #[must_use]
    pub fn traceparent(mut self, traceparent: impl Into<Arc<str>>) -> Self {
        self.traceparent = Some(traceparent.into());
        self
    }

    /// Sets what whoever makes it a request is told.
    #[must_use]
    pub fn extra(mut self, extra: impl Into<Value>) -> Self {
        self.extra = extra.into();
        self
    }

    /// The request that it is, for the agent of its name.
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
