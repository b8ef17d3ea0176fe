//! A sub-agent's run, from its call to its end.

use std::{collections::BTreeMap, sync::Arc};

use crate::cx::RunCx;
use crate::request::{Parent, RunInput, RunRequest, SubAgent, SubRunHandle};
use crate::state::{Answer, BackgroundRun, Checkpoint, Finished, RunEnd, new_id};
use crate::{
    error::{Error, ErrorKind, Result},
    journal::{EntryBody, SessionIndex, SubAgentRecord},
    message::Message,
    request::AgentService,
    tool::ToolRequest,
};

/// How a sub-agent is called: anew, recalled by its id, or with a copy of the caller's conversation; in the background or
/// waited for.
///
/// ```
/// use agent_core::engine::SubAgentCall;
///
/// let call = SubAgentCall::new("researcher", "And in 1990?").recall("0198d0");
/// assert_eq!(call.recall.as_deref(), Some("0198d0"));
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct SubAgentCall {
    /// The sub-agent's key.
    pub key: String,
    /// What it is told.
    pub message: Message,
    /// The id of the sub-agent that is to go on with what it knows; a new one if unset.
    pub recall: Option<Arc<str>>,
    /// Whether it begins with a copy of the caller's conversation. Default: false.
    pub fork: bool,
    /// Whether the caller goes on meanwhile. Default: false.
    pub background: bool,
}

impl SubAgentCall {
    /// A call of a new sub-agent under `key`.
    pub fn new(key: impl Into<String>, message: impl Into<String>) -> Self {
        let message = Message::user(message);
        Self { key: key.into(), message, recall: None, fork: false, background: false }
    }

    /// Calls the sub-agent that has this id, with all that it knows.
    #[must_use]
    pub fn recall(mut self, id: impl Into<Arc<str>>) -> Self {
        self.recall = Some(id.into());
        self
    }

    /// Begins with a copy of the caller's conversation.
    #[must_use]
    pub fn fork(mut self) -> Self {
        self.fork = true;
        self
    }
}

/// A sub-agent's run that the journal knows and that has not begun: [`run`](Self::run) drives it.
#[derive(Debug)]
pub struct SubRun {
    cx: RunCx,
    key: String,
    /// The call that started it, or else the key.
    place: Arc<str>,
    agent_id: Arc<str>,
    run_id: Arc<str>,
    handle: SubRunHandle,
    service: AgentService,
    request: RunRequest,
    _at_work: AtWork,
}

impl SubRun {
    /// The sub-agent's key.
    pub fn key(&self) -> &str {
        &self.key
    }

    /// The id to recall the sub-agent by.
    pub fn id(&self) -> &Arc<str> {
        &self.agent_id
    }

    /// The run.
    pub fn run_id(&self) -> &Arc<str> {
        &self.run_id
    }

    /// What steers it.
    pub fn handle(&self) -> &SubRunHandle {
        &self.handle
    }

    /// Drives it to its end.
    ///
    /// # Errors
    /// Those of the sub-agent.
    pub async fn run(self) -> Result<RunEnd> {
        let log = self.cx.log();
        let end = log.run_step(&self.key, &self.run_id, self.service.run(self.request)).await;
        let stands = match &end {
            Ok(end) => end.checkpoint(),
            Err(e) => e.checkpoint(),
        };
        if let Some(stands) = stands.filter(|stands| stands.ids.run_id == self.run_id) {
            log.hand_up(stands);
        }
        end
    }

    /// Drives it to its end for a caller that waits. If it has to wait for an answer, so has the caller.
    ///
    /// # Errors
    /// Those of the sub-agent; [`ErrorKind::Interrupted`] with its checkpoint if it waits.
    pub async fn finish(self) -> Result<Finished> {
        let (cx, place) = (self.cx.clone(), self.place.clone());
        match self.run().await? {
            RunEnd::Finished(finished) => Ok(*finished),
            RunEnd::Interrupted(child) | RunEnd::Paused(child) => {
                cx.waits_for(&place, &child);
                Err(Error::suspended(&place, *child))
            }
            RunEnd::Cancelled(child) => {
                Err(Error::new(ErrorKind::Cancelled, "the sub-agent was cancelled").with_checkpoint(*child))
            }
        }
    }
}

impl RunCx {
    /// Makes a sub-agent's run ready. From now on the journal knows that it was started.
    ///
    /// # Errors
    /// [`ErrorKind::SubAgentNotFound`] for an unknown key or id; [`ErrorKind::Limit`] at a cap on depth or fan-out;
    /// [`ErrorKind::Tool`] if the sub-agent is at work already.
    pub(super) async fn sub_run(&self, call: SubAgentCall) -> Result<SubRun> {
        self.begin_sub_run(call, None).await
    }

    /// Makes ready to go on with a sub-agent that ran in the background, with the answers to its questions.
    ///
    /// # Errors
    /// [`ErrorKind::SubAgentNotFound`] if its key is not known any more.
    pub(super) fn resume_background(&self, background: &BackgroundRun, checkpoint: Checkpoint) -> Result<SubRun> {
        let agent = self.sub_agents().get(&background.key)?.clone();
        let answers = self.answers_below(&background.run);
        self.resume_sub_run(agent, Some(background.call_id.clone()), checkpoint, answers)
    }

    /// The sub-agents that this agent called in its session so far, oldest first: those that can be recalled.
    ///
    /// # Errors
    /// Those of [`Journal::read`](crate::Journal::read).
    pub(super) async fn known_sub_agents(&self) -> Result<Vec<SubAgentRecord>> {
        let known = |index: &SessionIndex| index.sub_agents(&self.ids().agent_id).cloned().collect();
        self.log().look_at_whole_session(known).await
    }

    async fn begin_sub_run(&self, call: SubAgentCall, call_id: Option<Arc<str>>) -> Result<SubRun> {
        let agent = self.sub_agents().get(&call.key)?.clone();
        if call.background && self.log().steps().keeps() {
            return Err(Error::tool(
                "Sub-agents do not run in the background here: their ends would not come in the same order again.",
            ));
        }
        if call.recall.is_some() && call.fork {
            return Err(Error::tool(
                "A sub-agent that is recalled has its own conversation: it cannot begin with a copy.",
            ));
        }
        if let Some(id) = &call.recall {
            self.may_recall(&call.key, id).await?;
        }
        let run: Arc<str> = self.log().make_once(&format!("run below/{}", call.key), new_id).await?.into();
        let id = call.recall.clone().unwrap_or_else(|| run.clone());
        let at_work = AtWork::begin(self, &id)?;
        let place = call_id.clone().unwrap_or_else(|| agent.key.as_str().into());
        let (key, background) = (agent.key.clone(), call.background);
        let link = EntryBody::SubAgentLinked { call_id: place, key, run: run.clone(), background };
        record_link(self, &agent.key, link)?;
        self.log().commit().await?;
        let mut request = RunRequest::new(vec![call.message]);
        request.run_id = Some(run.clone());
        request.agent_id = call.recall;
        request.history = call.fork.then(|| self.history());
        Ok(self.ready(agent, call_id, request, (id, run), at_work))
    }

    fn resume_sub_run(
        &self,
        agent: SubAgent,
        call_id: Option<Arc<str>>,
        checkpoint: Checkpoint,
        answers: BTreeMap<String, Answer>,
    ) -> Result<SubRun> {
        let ids = (checkpoint.ids.agent_id.clone(), checkpoint.ids.run_id.clone());
        let at_work = AtWork::begin(self, &ids.0)?;
        let mut request = RunRequest::new(Vec::new());
        request.input = RunInput::Resume { checkpoint: Box::new(checkpoint), answers };
        Ok(self.ready(agent, call_id, request, ids, at_work))
    }

    fn ready(
        &self,
        agent: SubAgent,
        call_id: Option<Arc<str>>,
        mut request: RunRequest,
        (agent_id, run_id): (Arc<str>, Arc<str>),
        at_work: AtWork,
    ) -> SubRun {
        let place = call_id.clone().unwrap_or_else(|| agent.key.as_str().into());
        let handle = SubRunHandle::of(self);
        request.caps = agent.caps;
        request.parent = Some(Parent::new(self, call_id).steered_by(handle.clone()));
        let (cx, key, service) = (self.clone(), agent.key, agent.service);
        SubRun { cx, key, place, agent_id, run_id, handle, service, request, _at_work: at_work }
    }

    /// Refuses an id that no sub-agent of this key has.
    async fn may_recall(&self, key: &str, id: &str) -> Result<()> {
        let known = self.known_sub_agents().await?;
        match known.iter().find(|record| *record.id == *id) {
            Some(record) if record.key == key => Ok(()),
            Some(record) => Err(Error::new(
                ErrorKind::SubAgentNotFound,
                format!("Sub-agent {id} is '{}', not '{key}': recall it under that name.", record.key),
            )),
            None => {
                let ids: Vec<_> = known.iter().filter(|record| record.key == key).map(|record| &*record.id).collect();
                let ids = if ids.is_empty() { "none".to_owned() } else { ids.join(", ") };
                let message = format!(
                    "No sub-agent '{key}' with the id {id} was called in this conversation. Leave the id out to call a new \
                     one. Ids of '{key}' so far: {ids}"
                );
                Err(Error::new(ErrorKind::SubAgentNotFound, message))
            }
        }
    }
}

impl ToolRequest {
    /// Makes a sub-agent's run ready as this call. If this call is gone on with, it is the run that the call started before.
    ///
    /// # Errors
    /// As [`SubRuns::begin`](super::sub_runs::SubRuns::begin).
    pub async fn sub_run(&self, call: SubAgentCall) -> Result<SubRun> {
        let call_id: Arc<str> = self.call.id.clone();
        match &self.child {
            Some(checkpoint) => {
                let agent = self.cx.sub_agents().get(&call.key)?.clone();
                let answers = self.cx.answers_below(&call_id);
                self.cx.resume_sub_run(agent, Some(call_id), (**checkpoint).clone(), answers)
            }
            None => self.cx.begin_sub_run(call, Some(call_id)).await,
        }
    }
}

impl RunCx {
    /// Runs the sub-agent under `key` on a fresh history and waits for it.
    ///
    /// It shares the storage, the session, the budget, cancellation and events; history and state are its own. In a tool,
    /// use [`ToolRequest::call_sub_agent`], which can also go on with a sub-agent that had to wait.
    ///
    /// # Errors
    /// [`ErrorKind::SubAgentNotFound`]; those of the sub-agent; [`ErrorKind::Interrupted`] with its checkpoint if it waits.
    pub async fn call_sub_agent(&self, key: &str, message: impl Into<String>) -> Result<Finished> {
        self.sub_run(SubAgentCall::new(key, message)).await?.finish().await
    }
}

impl ToolRequest {
    /// Runs the sub-agent under `key` as this call, or goes on with it if this call is gone on with.
    ///
    /// # Errors
    /// As [`RunCx::call_sub_agent`].
    pub async fn call_sub_agent(&self, key: &str, message: impl Into<String>) -> Result<Finished> {
        self.sub_run(SubAgentCall::new(key, message)).await?.finish().await
    }
}

/// Holds a sub-agent's id while its run is ready or under way: two runs at once would write one conversation.
#[derive(Debug)]
struct AtWork {
    cx: RunCx,
    id: Arc<str>,
}

impl AtWork {
    fn begin(cx: &RunCx, id: &Arc<str>) -> Result<Self> {
        let mut control = cx.control();
        if control.at_work.contains(id) {
            return Err(Error::tool(format!(
                "Sub-agent {id} is at work already: wait for its end, or call a new one."
            )));
        }
        control.at_work.push(id.clone());
        Ok(Self { cx: cx.clone(), id: id.clone() })
    }
}

impl Drop for AtWork {
    fn drop(&mut self) {
        self.cx.control().at_work.retain(|id| *id != self.id);
    }
}

/// Notes that a sub-agent is to be started, if the budget's caps on depth and fan-out allow it.
fn record_link(cx: &RunCx, key: &str, link: EntryBody) -> Result<()> {
    let caps = cx.budget().run_caps();
    let refuse = |what, cap, why| {
        let message = format!("Sub-agent '{key}' was not started: {why} {cap}. Do the task yourself.");
        Err(Error::new(ErrorKind::Limit, message).with_context("budget", what))
    };
    if let Some(cap) = caps.depth.filter(|cap| cx.ids().depth >= *cap) {
        return refuse("depth", cap, "the budget's cap on the depth of agents below agents is");
    }
    let fits = |started| caps.fan_out.is_none_or(|cap| started < cap);
    match (cx.log().record_link(link, fits), caps.fan_out) {
        (false, Some(cap)) => refuse("fan-out", cap, "the budget's cap on the sub-agents of one run is"),
        _ => Ok(()),
    }
}
