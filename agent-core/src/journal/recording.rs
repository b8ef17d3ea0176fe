//! Recordings of runs, and their comparison.

use std::{
    collections::{BTreeMap, HashSet},
    fmt,
    sync::Arc,
};

use super::{Entry, EntryBody, Journal, each_entry};
use crate::{
    error::{Error, Result},
    message::Message,
    state::{RunIds, RunStatus},
    tooling::ToolOutput,
};

/// Recorded entries of one run, read from its session's journal:
/// [`RunRequest::replay`](crate::RunRequest::replay) replays it, and [`diff`] compares it with
/// another.
#[derive(Clone, Debug)]
pub struct Recording {
    pub(super) ids: Arc<RunIds>,
    /// Entries of the session before the run.
    pub(super) past: Vec<Entry>,
    /// The entries of the run and of its descendants.
    pub(super) entries: Vec<Entry>,
}

impl Recording {
    /// Reads the newest root run of the agent `agent_id` in the session.
    ///
    /// # Errors
    /// Those of [`Journal::read`]; [`ErrorKind::Config`](crate::ErrorKind::Config) if there is no
    /// such run.
    pub async fn read(journal: &dyn Journal, session: &str, agent_id: &str) -> Result<Self> {
        let is_it = |ids: &RunIds| ids.parent_run_id.is_none() && *ids.agent_id == *agent_id;
        let found = Self::find(journal, session, is_it).await?;
        found.ok_or_else(|| Error::config(format!("session '{session}' holds no run of agent '{agent_id}'")))
    }

    /// Reads the run with this id in the session, including older runs and runs of sub-agents.
    ///
    /// # Errors
    /// Those of [`Journal::read`]; [`ErrorKind::Config`](crate::ErrorKind::Config) if there is no
    /// such run.
    pub async fn of_run(journal: &dyn Journal, session: &str, run_id: &str) -> Result<Self> {
        let found = Self::find(journal, session, |ids| *ids.run_id == *run_id).await?;
        found.ok_or_else(|| Error::config(format!("session '{session}' holds no run '{run_id}'")))
    }

    /// Finds the newest run that `is_it` accepts, with the entries before it and those of its tree.
    async fn find(journal: &dyn Journal, session: &str, is_it: impl Fn(&RunIds) -> bool) -> Result<Option<Self>> {
        let (mut all, mut newest) = (Vec::new(), None);
        each_entry(journal, session, 0, |entry| {
            if let EntryBody::RunStarted { ids, .. } = &entry.body
                && is_it(ids)
            {
                newest = Some((all.len(), ids.clone()));
            }
            all.push(entry.clone());
        })
        .await?;
        let Some((at, ids)) = newest else { return Ok(None) };
        let mut entries = all.split_off(at);
        let mut tree = HashSet::from([ids.run_id.clone()]);
        entries.retain(|entry| {
            if let EntryBody::RunStarted { ids, .. } = &entry.body
                && ids.parent_run_id.as_ref().is_some_and(|above| tree.contains(above))
            {
                tree.insert(ids.run_id.clone());
            }
            tree.contains(&entry.run)
        });
        Ok(Some(Self { ids, past: all, entries }))
    }

    /// Ids of the run.
    pub fn ids(&self) -> &Arc<RunIds> {
        &self.ids
    }

    /// Status of the run, if it has ended.
    pub fn status(&self) -> Option<&RunStatus> {
        self.own().rev().find_map(|entry| match &entry.body {
            EntryBody::RunEnded { status, .. } => Some(Some(status)),
            EntryBody::RunResumed { .. } => Some(None),
            _ => None,
        })?
    }

    /// True if the run did not finish: it is suspended, failed, or died with its process.
    pub fn is_open(&self) -> bool {
        !matches!(self.status(), Some(RunStatus::Finished(_)))
    }

    pub(super) fn own(&self) -> impl DoubleEndedIterator<Item = &Entry> {
        self.entries.iter().filter(|entry| entry.run == self.ids.run_id)
    }

    fn facts(&self) -> Vec<Fact> {
        let mut facts = Facts::default();
        self.beginning().history.iter().for_each(|message| facts.past(message));
        self.own().for_each(|entry| facts.apply(&entry.body));
        if let Some(RunStatus::Finished(reason)) = self.status() {
            facts.add("the end", reason.to_string());
        }
        facts.all
    }
}

/// First difference between two runs.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Divergence {
    /// Number of the step, from 1; 0 before the first.
    pub step: u32,
    /// The kind of fact that differs.
    pub what: String,
    /// Its text in the first run; `None` if that run was over.
    pub one: Option<String>,
    /// Its text in the second run; `None` if that run was over.
    pub two: Option<String>,
}

impl fmt::Display for Divergence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let side = |side: &Option<String>| side.clone().unwrap_or_else(|| "nothing: the run was over".into());
        write!(f, "step {}, {}:\n- {}\n+ {}", self.step, self.what, side(&self.one), side(&self.two))
    }
}

/// Returns the first difference between two runs: in a message, a model's answer, a tool's result
/// or the end. Run ids, times, numbers of attempts and, apart from their answers, the activity of
/// sub-agents are ignored.
pub fn diff(one: &Recording, two: &Recording) -> Option<Divergence> {
    let (one, two) = (one.facts(), two.facts());
    let at = (0..one.len().max(two.len())).find(|at| !Fact::same(one.get(*at), two.get(*at)))?;
    let (one, two) = (one.get(at), two.get(at));
    let first = one.or(two)?;
    let what = match (one, two) {
        (Some(one), Some(two)) if one.what != two.what => format!("{} or {}", one.what, two.what),
        _ => first.what.clone(),
    };
    let said = |fact: Option<&Fact>| fact.map(|fact| fact.said.clone());
    Some(Divergence { step: first.step, what, one: said(one), two: said(two) })
}

#[derive(Debug)]
struct Fact {
    step: u32,
    what: String,
    said: String,
}

impl Fact {
    /// Ignores the step: a message from before one run may belong to a step of the other, if one of
    /// them is a fork.
    fn same(one: Option<&Self>, two: Option<&Self>) -> bool {
        let content = |fact: Option<&Self>| fact.map(|fact| (fact.what.clone(), fact.said.clone()));
        content(one) == content(two)
    }
}

#[derive(Default)]
struct Facts {
    all: Vec<Fact>,
    step: u32,
    answer: Option<crate::message::AssistantMessage>,
    finished: BTreeMap<Arc<str>, ToolOutput>,
    /// Results, reported in call order regardless of completion order.
    answered: BTreeMap<Arc<str>, ToolOutput>,
    calls: Vec<Arc<str>>,
}

impl Facts {
    fn add(&mut self, what: impl Into<String>, said: String) {
        self.all.push(Fact { step: self.step, what: what.into(), said });
    }

    /// Adds a message from before the run.
    fn past(&mut self, message: &Message) {
        match message {
            Message::Assistant(_) => self.message("the model's answer", message),
            Message::Tool(result) => self.add(format!("the result of call '{}'", result.call_id()), message.text()),
            _ => self.message("a message", message),
        }
    }

    fn message(&mut self, what: impl Into<String>, message: &Message) {
        self.add(what, serde_json::to_string(message).unwrap_or_else(|_| message.text()));
    }

    fn apply(&mut self, body: &EntryBody) {
        match body {
            EntryBody::MessageAppended { message } => self.message("a message", message),
            EntryBody::HistoryReplaced { reason, history, .. } if reason.as_str() != "resumed" => {
                self.add("the history was replaced", format!("{reason}: {} messages", history.len()));
            }
            EntryBody::ModelFinished { response, .. } => self.answer = Some(response.message.clone()),
            EntryBody::ModelAccepted { step, message, .. } => {
                self.step = *step;
                let Some(message) = message.clone().or_else(|| self.answer.take()) else { return };
                self.calls = message.calls().map(|call| call.id.clone()).collect();
                self.message("the model's answer", &Message::Assistant(message));
            }
            EntryBody::ToolFinished { call_id, output } => drop(self.finished.insert(call_id.clone(), output.clone())),
            EntryBody::ToolAnswered { call_id, output, .. } => {
                if let Some(output) = output.clone().or_else(|| self.finished.remove(call_id)) {
                    self.answered.insert(call_id.clone(), output);
                }
            }
            EntryBody::TurnEnded { changed, .. } => {
                self.answered.extend(changed.iter().map(|(id, output)| (id.clone(), output.clone())));
                for id in std::mem::take(&mut self.calls) {
                    if let Some(output) = self.answered.remove(&id) {
                        self.add(format!("the result of call '{id}'"), output.to_text());
                    }
                }
                self.answered.clear();
                self.finished.clear();
            }
            _ => {}
        }
    }
}
