//! From entries to what they mean.

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
};

use serde_json::Value;

use super::{Entry, EntryBody, Journal, RunStatus};
use crate::{
    AssistantMessage, CallResult, History, Message, Result, ToolMessage, ToolOutput, Usage, history::NO_RESULT,
};

/// Reads a whole session and folds the conversation of one agent out of it.
///
/// # Errors
/// Those of [`Journal::read`].
pub async fn fold_session(journal: &dyn Journal, session: &str, agent_id: &str) -> Result<SessionView> {
    let mut fold = Fold::new(agent_id);
    each_entry(journal, session, |entry| fold.apply(entry)).await?;
    Ok(fold.finish())
}

/// Gives every entry of a session to `take`, oldest first, reading page by page.
///
/// # Errors
/// Those of [`Journal::read`].
pub async fn each_entry(journal: &(impl Journal + ?Sized), session: &str, mut take: impl FnMut(&Entry)) -> Result<()> {
    const PAGE: usize = 500;
    let mut after = 0;
    loop {
        let page = journal.read(session, after, PAGE).await?;
        page.iter().for_each(|entry| take(entry));
        match page.last() {
            Some(last) if page.len() == PAGE => after = last.seq,
            _ => return Ok(()),
        }
    }
}

/// What a session holds for one agent.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct SessionView {
    /// The agent's conversation. Calls that were never answered are answered "no result was recorded".
    pub history: History,
    /// The storage that the hierarchy shares.
    pub globals: BTreeMap<String, Value>,
    /// What the agent's runs used themselves.
    pub usage: Usage,
    /// The agent's newest run and how it ended; `None` while it is under way, or after a crash.
    pub last_run: Option<(Arc<str>, Option<RunStatus>)>,
}

/// A message with calls that are not all answered.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct OpenTurn {
    /// The message.
    pub message: AssistantMessage,
    /// The answers so far, by call id.
    pub answers: HashMap<Arc<str>, ToolOutput>,
}

/// What one entry did to the history.
#[derive(Debug)]
enum Change {
    Append(Vec<Message>),
    Replace(History),
}

/// Folds a session's entries into what they mean for one agent.
///
/// APPEND adds, REPLACE anchors, UNDO cuts to before a run: the same entries give the same history on every store.
#[derive(Debug)]
pub struct Fold {
    agent_id: Arc<str>,
    /// The agent's runs, with the sequence number at which each began.
    runs: HashMap<Arc<str>, u64>,
    /// The runs of other agents at the top of a tree: where each began, and whose it is.
    tops: HashMap<Arc<str>, (u64, Arc<str>)>,
    /// The agent at the top, if this one was called by others.
    above: Option<Arc<str>>,
    changes: Vec<(u64, Change)>,
    open: Option<OpenTurn>,
    /// The answer of the step under way, until it is accepted.
    finished: Option<AssistantMessage>,
    /// What tools of the open turn gave, until it is accepted.
    outputs: HashMap<Arc<str>, ToolOutput>,
    globals: BTreeMap<String, Value>,
    /// By run: one that went on tells at each of its ends what it used altogether.
    usage: HashMap<Arc<str>, Usage>,
    last_run: Option<(Arc<str>, Option<RunStatus>)>,
}

impl Fold {
    /// A fold for the agent that is known as `agent_id` in the session.
    pub fn new(agent_id: impl Into<Arc<str>>) -> Self {
        Self {
            agent_id: agent_id.into(),
            runs: HashMap::new(),
            tops: HashMap::new(),
            above: None,
            changes: Vec::new(),
            open: None,
            finished: None,
            outputs: HashMap::new(),
            globals: BTreeMap::new(),
            usage: HashMap::new(),
            last_run: None,
        }
    }

    /// Takes the next entry of the session, in order.
    pub fn apply(&mut self, entry: &Entry) {
        match &entry.body {
            EntryBody::RunStarted { ids, .. } if ids.agent_id == self.agent_id => {
                // What an earlier run left open is the earlier run's: undoing this one keeps it.
                self.close(entry.seq.saturating_sub(1));
                self.runs.insert(ids.run_id.clone(), entry.seq);
                self.above = self.tops.get(&ids.root_run_id).map(|(_, agent)| agent.clone());
                self.last_run = Some((ids.run_id.clone(), None));
            }
            EntryBody::RunStarted { ids, .. } if ids.parent_run_id.is_none() => {
                self.tops.insert(ids.run_id.clone(), (entry.seq, ids.agent_id.clone()));
            }
            // The storage is the hierarchy's: whichever run changed it.
            EntryBody::StateChanged { globals, .. } => {
                for (key, value) in globals {
                    match value {
                        Some(value) => self.globals.insert(key.clone(), value.clone()),
                        None => self.globals.remove(key),
                    };
                }
            }
            EntryBody::Undone { before_run } => {
                // What a sub-agent did is undone with the run at the top.
                let top = self.tops.get(before_run).filter(|(_, agent)| self.above.as_ref() == Some(agent));
                if let Some(start) = self.runs.get(before_run).copied().or(top.map(|(start, _)| *start)) {
                    self.changes.retain(|(seq, _)| *seq < start);
                    (self.open, self.finished) = (None, None);
                }
            }
            _ if self.runs.contains_key(&entry.run) => self.apply_own(entry),
            _ => {}
        }
    }

    fn apply_own(&mut self, entry: &Entry) {
        let seq = entry.seq;
        match &entry.body {
            EntryBody::RunResumed { .. } => self.last_run = Some((entry.run.clone(), None)),
            EntryBody::MessageAppended { message } => {
                self.close(seq);
                self.changes.push((seq, Change::Append(vec![message.clone()])));
            }
            EntryBody::HistoryReplaced { history, .. } => self.changes.push((seq, Change::Replace(history.clone()))),
            EntryBody::ModelFinished { response, .. } => self.finished = Some(response.message.clone()),
            EntryBody::ModelAccepted { message, .. } => {
                self.close(seq);
                let Some(message) = message.clone().or_else(|| self.finished.take()) else { return };
                self.finished = None;
                if message.has_calls() {
                    self.open = Some(OpenTurn { message, answers: HashMap::new() });
                } else if !message.is_empty() {
                    self.changes.push((seq, Change::Append(vec![Message::Assistant(message)])));
                }
            }
            // What a tool gave counts once the hooks have seen it: one of them may have had to remove a secret.
            EntryBody::ToolFinished { call_id, output } => drop(self.outputs.insert(call_id.clone(), output.clone())),
            EntryBody::ToolAnswered { call_id, output, .. } => {
                let finished = self.outputs.remove(call_id);
                self.answer(call_id, output.as_ref().or(finished.as_ref()));
            }
            EntryBody::TurnEnded { changed, .. } => {
                changed.iter().for_each(|(call_id, output)| self.answer(call_id, Some(output)));
                self.close(seq);
            }
            EntryBody::RunEnded { status, usage, .. } => {
                self.usage.insert(entry.run.clone(), **usage);
                if let Some((run, last)) = &mut self.last_run
                    && *run == entry.run
                {
                    *last = Some(status.clone());
                }
            }
            _ => {}
        }
    }

    fn answer(&mut self, call_id: &Arc<str>, output: Option<&ToolOutput>) {
        if let (Some(open), Some(output)) = (&mut self.open, output) {
            open.answers.insert(call_id.clone(), output.clone());
        }
    }

    /// Brings an open turn into the history, with an error for each call that has no answer.
    fn close(&mut self, seq: u64) {
        self.outputs.clear();
        let Some(OpenTurn { message, mut answers }) = self.open.take() else { return };
        let results = message.calls().map(|call| match answers.remove(&*call.id) {
            Some(output) => CallResult::new(call.id.clone(), call.name.clone(), output).to_message(),
            None => ToolMessage::text(call.id.clone(), call.name.clone(), NO_RESULT, true),
        });
        let turn = results.map(Message::Tool).collect::<Vec<_>>();
        let turn = std::iter::once(Message::Assistant(message)).chain(turn).collect();
        self.changes.push((seq, Change::Append(turn)));
    }

    /// What the entries mean.
    pub fn finish(mut self) -> SessionView {
        self.close(u64::MAX);
        self.finish_open()
    }

    /// What the entries mean, without a turn that is still open.
    pub(super) fn finish_open(mut self) -> SessionView {
        let anchor = self.changes.iter().rposition(|(_, change)| matches!(change, Change::Replace(_)));
        let mut messages = Vec::new();
        for (_, change) in self.changes.drain(anchor.unwrap_or(0)..) {
            match change {
                Change::Replace(history) => messages = history.iter().cloned().collect(),
                Change::Append(more) => messages.extend(more),
            }
        }
        // Entries of a foreign or damaged journal may be unpaired; repairing them loses nothing that a provider would take.
        let (history, _) = History::import(messages);
        let mut usage = Usage::default();
        self.usage.into_values().for_each(|used| usage += used);
        SessionView { history, globals: self.globals, usage, last_run: self.last_run }
    }
}
