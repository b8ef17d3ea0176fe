//! [`SubRuns`]: starts and observes child runs.

use std::{collections::BTreeMap, sync::Arc};

use futures::{StreamExt, stream};

use super::sub_run::{AtWork, SubAgentCall, SubRun};
use crate::cx::RunCx;
use crate::request::{Parent, RunInput, RunRequest, SubAgent, SubAgents, SubRunHandle};
use crate::state::{Answer, BackgroundRun, Checkpoint, ChildRun, Finished};
use crate::{
    error::{Error, ErrorKind, Result},
    journal::{Entry, EntryBody, SessionIndex, SubAgentRecord, each_entry},
    message::Message,
    middleware::Middlewares,
    tool::ToolRequest,
};

/// A run's interface for middlewares that start and observe its descendants.
///
/// ```
/// use agent_core::{
///     Result, RunCx, RunEnd,
///     engine::{SubAgentCall, SubRuns},
/// };
///
/// async fn ask(cx: &RunCx) -> Result<RunEnd> {
///     SubRuns::of(cx).begin(SubAgentCall::new("researcher", "Find the source.")).await?.run().await
/// }
/// ```
#[derive(Clone, Copy, Debug)]
pub struct SubRuns<'a>(&'a RunCx);

impl<'a> SubRuns<'a> {
    /// Creates the interface for the child runs of `cx`.
    pub fn of(cx: &'a RunCx) -> Self {
        Self(cx)
    }

    /// The agents that the run may call.
    pub fn agents(self) -> &'a SubAgents {
        self.0.sub_agents()
    }

    /// Middlewares inherited from ancestors, outermost first.
    pub fn inherited(self) -> &'a Middlewares {
        self.0.inherited()
    }

    /// Prepares a sub-agent's run and records its start in the journal.
    ///
    /// # Errors
    /// [`ErrorKind::SubAgentNotFound`](crate::ErrorKind::SubAgentNotFound) for an unknown key or
    /// id; [`ErrorKind::Limit`](crate::ErrorKind::Limit) at a cap on depth or fan-out;
    /// [`ErrorKind::Tool`](crate::ErrorKind::Tool) if the sub-agent is already running.
    pub async fn begin(self, call: SubAgentCall) -> Result<SubRun> {
        self.begin_as(call, None).await
    }

    /// The sub-agents that this agent has called in its session, oldest first: those that can be
    /// resumed.
    ///
    /// # Errors
    /// Those of [`Journal::read`](crate::Journal::read).
    pub async fn known(self) -> Result<Vec<SubAgentRecord>> {
        let known = |index: &SessionIndex| index.sub_agents(&self.0.ids().agent_id).cloned().collect();
        self.0.0.log.look_at_whole_session(known).await
    }

    /// Records that the run waits for the answers to the questions of a suspended child run.
    pub fn ask_for(self, child: &Checkpoint) {
        for question in &child.questions {
            let question = question.under(&child.ids.run_id);
            self.0.0.log.record(EntryBody::Asked { question: question.into() });
        }
    }

    /// Takes the background sub-agents of an earlier attempt that `is_own` accepts, to resume them.
    /// The others stay in the run's checkpoints.
    pub fn take_background(self, is_own: impl Fn(&BackgroundRun) -> bool) -> Vec<BackgroundRun> {
        let mut pending = self.0.pending();
        let (taken, left) = std::mem::take(&mut pending.background).into_iter().partition(is_own);
        pending.background = left;
        taken
    }

    /// Prepares the resumption of a background sub-agent, with the answers to its questions.
    ///
    /// # Errors
    /// [`ErrorKind::SubAgentNotFound`](crate::ErrorKind::SubAgentNotFound) if its key is no longer
    /// registered.
    pub fn resume(self, background: &BackgroundRun, checkpoint: Checkpoint) -> Result<SubRun> {
        let agent = self.agents().get(&background.key)?.clone();
        let answers = self.0.answers_of(&background.run);
        let caller = (Some(background.call_id.clone()), background.call_id.clone());
        self.resume_as(agent, caller, checkpoint, answers)
    }

    /// Reports the end of the background child run `run` to this run: `message` is inserted before
    /// the next model call, and recorded in the journal together with the report. Without a
    /// message, only the report is recorded: the end was delivered in another way, for example by a
    /// tool's result.
    ///
    /// # Errors
    /// [`ErrorKind::Stopped`](crate::ErrorKind::Stopped) if the run has ended.
    pub fn report(self, run: &Arc<str>, message: Option<Message>) -> Result<()> {
        match message {
            Some(message) => self.0.0.inbox.push_report(run, message),
            None => {
                self.0.0.log.record(EntryBody::SubAgentReported { run: run.clone(), message: None });
                Ok(())
            }
        }
    }

    /// True if steering messages are pending for the next model call.
    pub fn has_steering(self) -> bool {
        !self.0.0.inbox.is_empty()
    }

    /// Waits until a steering message is pending.
    pub async fn steered(self) {
        self.0.0.inbox.arrived().await;
    }

    /// Calls `take` with every durable entry of the session, oldest first.
    ///
    /// # Errors
    /// Those of [`Journal::read`](crate::Journal::read).
    pub async fn each_entry(self, take: impl FnMut(&Entry)) -> Result<()> {
        each_entry(&**self.0.0.log.journal(), &self.0.ids().session, 0, take).await
    }

    /// Begins runs in order, so that each has the same number after a restart, and drives at most
    /// `concurrency` of them at once.
    async fn run_all(
        self,
        calls: Vec<SubAgentCall>,
        concurrency: usize,
        call_id: Option<&Arc<str>>,
    ) -> Result<Vec<Result<Finished>>> {
        let mut begun = Vec::with_capacity(calls.len());
        for call in calls {
            begun.push(self.begin_as(call, call_id).await);
        }
        let finish = |run: Result<SubRun>| async { run?.finish().await?.complete() };
        let driven = stream::iter(begun.into_iter().map(finish)).buffered(concurrency.max(1));
        let ends: Vec<Result<Finished>> = driven.collect().await;
        match ends.iter().position(|end| matches!(end, Err(e) if !e.kind().is_failure())) {
            Some(waits) => Err(ends.into_iter().nth(waits).and_then(Result::err).expect("the position of an error")),
            None => Ok(ends),
        }
    }

    /// Makes a sub-agent's run ready for the call `call_id`, or for the hook that has the run. Code
    /// that is entered again gets the sub-agent back that it started under this key as the same
    /// number.
    async fn begin_as(self, call: SubAgentCall, call_id: Option<&Arc<str>>) -> Result<SubRun> {
        let (agent, log) = (self.agents().get(&call.key)?.clone(), &self.0.0.log);
        if call.background && log.steps().keeps() {
            return Err(Error::tool(
                "Sub-agents do not run in the background here: their ends would not come in the same order again.",
            ));
        }
        if call.recall.is_some() && call.fork {
            return Err(Error::tool(
                "A sub-agent that is recalled has its own conversation: it cannot begin with a copy.",
            ));
        }
        let owner = self.0.child_owner(call_id);
        let started_by = owner.is_call.then(|| owner.key.call_id.clone());
        let (id, place) = log.next_child(owner, &agent.key);
        let known = log.known_child(&id);
        let place = known.as_ref().map_or(place, |known| known.place.clone());
        let mut link = ChildRun::new(id.call_id.clone(), agent.key.as_str(), "".into());
        (link.hook, link.n, link.place, link.background) = (id.hook.clone(), id.n, place, call.background);
        let is_linked = known.is_some();
        match known {
            Some(ChildRun { checkpoint: Some(checkpoint), .. }) => {
                let answers = self.0.answers_of(link.place());
                return self.resume_as(agent, (started_by, link.place().clone()), *checkpoint, answers);
            }
            Some(known) => link.run = known.run, // it was linked, and did not begin
            None => {
                if let Some(id) = &call.recall {
                    self.may_recall(&call.key, id).await?;
                }
                link.run = log.child_id(self.0.scope_step(), &id).await?;
            }
        }
        let (run, place) = (link.run.clone(), link.place().clone());
        let id = call.recall.clone().unwrap_or_else(|| run.clone());
        let at_work = AtWork::begin(self.0, &id)?;
        if !is_linked {
            self.record_link(&agent.key, link)?;
            log.commit().await?;
        }
        let mut request = RunRequest::new(vec![call.message]);
        request.run_id = Some(run.clone());
        request.agent_id = call.recall;
        request.history = call.fork.then(|| self.0.history());
        Ok(self.ready(agent, (started_by, place), request, (id, run), at_work))
    }

    fn resume_as(
        self,
        agent: SubAgent,
        caller: (Option<Arc<str>>, Arc<str>),
        checkpoint: Checkpoint,
        answers: BTreeMap<String, Answer>,
    ) -> Result<SubRun> {
        let ids = (checkpoint.ids.agent_id.clone(), checkpoint.ids.run_id.clone());
        let at_work = AtWork::begin(self.0, &ids.0)?;
        let mut request = RunRequest::new(Vec::new());
        request.input = RunInput::Resume { checkpoint: Box::new(checkpoint), answers };
        Ok(self.ready(agent, caller, request, ids, at_work))
    }

    fn ready(
        self,
        agent: SubAgent,
        (call_id, place): (Option<Arc<str>>, Arc<str>),
        mut request: RunRequest,
        (agent_id, run_id): (Arc<str>, Arc<str>),
        at_work: AtWork,
    ) -> SubRun {
        let handle = SubRunHandle::of(self.0);
        request.caps = agent.caps;
        request.parent = Some(Parent::new(self.0, call_id).steered_by(handle.clone()));
        let (cx, key, service) = (self.0.clone(), agent.key, agent.service);
        SubRun { cx, key, place, agent_id, run_id, handle, service, request, _at_work: at_work }
    }

    /// Rejects an id that no sub-agent of this key has.
    async fn may_recall(self, key: &str, id: &str) -> Result<()> {
        let known = self.known().await?;
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

    /// Records the start of a sub-agent, if the budget's caps on depth and fan-out allow it.
    fn record_link(self, key: &str, link: ChildRun) -> Result<()> {
        let caps = self.0.budget().run_caps();
        let refuse = |what, cap, why| {
            let message = format!("Sub-agent '{key}' was not started: {why} {cap}. Do the task yourself.");
            Err(Error::new(ErrorKind::Limit, message).with_context("budget", what))
        };
        if let Some(cap) = caps.depth.filter(|cap| self.0.ids().depth >= *cap) {
            return refuse("depth", cap, "the budget's cap on the depth of agents under agents is");
        }
        let fits = |started| caps.fan_out.is_none_or(|cap| started < cap);
        match (self.0.0.log.record_link(EntryBody::linked(link), fits), caps.fan_out) {
            (false, Some(cap)) => refuse("fan-out", cap, "the budget's cap on the sub-agents of one run is"),
            _ => Ok(()),
        }
    }
}

impl ToolRequest {
    /// Makes a sub-agent's run ready as part of this call. If the call is entered again, it is the
    /// run that the call started under this key as the same number.
    ///
    /// # Errors
    /// Those of [`SubRuns::begin`].
    pub async fn sub_run(&self, call: SubAgentCall) -> Result<SubRun> {
        SubRuns::of(&self.cx).begin_as(call, Some(&self.call.id)).await
    }

    /// Runs the sub-agent under `key` as part of this call, or resumes the one that the call
    /// started. A call may start several, also at once and under one key.
    ///
    /// A tool that does nothing else declares so with
    /// [`ToolOptions::delegates`](crate::ToolOptions::delegates). Otherwise its effect applies
    /// after a crash, as for every other tool.
    ///
    /// # Errors
    /// Those of [`RunCx::call_sub_agent`].
    pub async fn call_sub_agent(&self, key: &str, message: impl Into<String>) -> Result<Finished> {
        self.sub_run(SubAgentCall::new(key, message)).await?.finish().await?.complete()
    }

    /// Runs several sub-agents as part of this call, at most `concurrency` at once: see
    /// [`RunCx::call_sub_agents`].
    ///
    /// # Errors
    /// Those of [`RunCx::call_sub_agents`].
    pub async fn call_sub_agents(
        &self,
        calls: impl IntoIterator<Item = SubAgentCall>,
        concurrency: usize,
    ) -> Result<Vec<Result<Finished>>> {
        SubRuns::of(&self.cx).run_all(calls.into_iter().collect(), concurrency, Some(&self.call.id)).await
    }
}

impl RunCx {
    /// Runs the sub-agent under `key` with an empty history, and waits for it.
    ///
    /// It shares the storage, the session, the budget, cancellation and events; history and state
    /// are its own. The hook or the tool that starts it owns it: if that is entered again, after a
    /// crash, a pause or a question, it gets back the sub-agents that it started, by key and
    /// number. Sub-agents of `before_agent` belong to the whole run.
    ///
    /// # Errors
    /// [`ErrorKind::SubAgentNotFound`]; those of the sub-agent; [`ErrorKind::Interrupted`] with its
    /// checkpoint if it waits; [`ErrorKind::Middleware`] if it waits in `after_agent`, which is not
    /// entered again; [`ErrorKind::Tool`] if it [ended early](Finished::complete): its budget, its
    /// steps or its time were used up.
    pub async fn call_sub_agent(&self, key: &str, message: impl Into<String>) -> Result<Finished> {
        SubRuns::of(self).begin(SubAgentCall::new(key, message)).await?.finish().await?.complete()
    }

    /// Runs several sub-agents, at most `concurrency` at once (0 counts as 1), and waits for all of
    /// them. Returns one result per call, in their order: the failure of one does not end the
    /// others.
    ///
    /// ```
    /// use agent_core::{Result, ToolOutput, ToolRequest, engine::SubAgentCall};
    ///
    /// async fn compare(req: ToolRequest, cities: Vec<String>) -> Result<ToolOutput> {
    ///     let calls = cities.iter().map(|city| SubAgentCall::new("weather", city));
    ///     let mut lines = Vec::new();
    ///     for (city, end) in cities.iter().zip(req.call_sub_agents(calls, 4).await?) {
    ///         lines.push(match end {
    ///             Ok(finished) => format!("{city}: {}", finished.answer),
    ///             Err(e) => format!("{city}: unknown ({})", e.message()),
    ///         });
    ///     }
    ///     Ok(ToolOutput::text(lines.join("\n")))
    /// }
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::Interrupted`], [`ErrorKind::Stopped`] and [`ErrorKind::Cancelled`] of one of them,
    /// after all have ended or wait.
    pub async fn call_sub_agents(
        &self,
        calls: impl IntoIterator<Item = SubAgentCall>,
        concurrency: usize,
    ) -> Result<Vec<Result<Finished>>> {
        SubRuns::of(self).run_all(calls.into_iter().collect(), concurrency, None).await
    }
}
