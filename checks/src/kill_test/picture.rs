//! Comparable content of a session's journal.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    hash::{DefaultHasher, Hash, Hasher},
    sync::Arc,
};

use agent::{
    Result,
    core::{
        Effect, Journal, RunIds,
        journal::{Entry, EntryBody},
        tool::Doubt,
    },
};
use serde_json::Value;

use super::world::TOOLS;

/// Digest of an entry's content, without its time and position.
pub(crate) fn digest(entry: &Entry) -> u64 {
    let mut hasher = DefaultHasher::new();
    (&*entry.run, entry.body.to_json().unwrap_or_default()).hash(&mut hasher);
    hasher.finish()
}

/// One run of the tree, with run ids replaced by positions.
#[derive(Debug, PartialEq)]
struct RunPicture {
    agent: Arc<str>,
    history: String,
    state: BTreeMap<String, Value>,
    ended: Option<String>,
}

/// Content that must be the same however often the processes were killed.
#[derive(Debug, PartialEq)]
pub(crate) struct Picture(Vec<RunPicture>);

impl Picture {
    /// Describes the first difference.
    pub(crate) fn differs(&self, whole: &Self) -> Option<String> {
        if self.0.len() != whole.0.len() {
            return Some(format!("{} runs instead of {}", self.0.len(), whole.0.len()));
        }
        let (now, then) = self.0.iter().zip(&whole.0).find(|(now, then)| now != then)?;
        Some(format!("{now:?}\n  instead of\n{then:?}"))
    }
}

/// Session as recorded in its journal.
pub(crate) struct Told {
    pub(crate) picture: Picture,
    /// Ids of its runs.
    pub(crate) runs: BTreeSet<String>,
    /// Content digest of each entry, by sequence number.
    pub(crate) digests: HashMap<u64, u64>,
    /// Intended effects, by idempotency key.
    pub(crate) intents: BTreeMap<String, Effect>,
    pub(crate) steps: u64,
    /// Questions about at-most-once calls that had to be asked, by the end of their ids.
    pub(crate) doubts: BTreeSet<String>,
    /// Questions that were asked.
    pub(crate) asked: BTreeSet<String>,
    /// Calls, by idempotency key, about which a run asked two questions since their start, or one
    /// that was already answered.
    pub(crate) asked_again: BTreeSet<String>,
}

impl Told {
    pub(crate) async fn read(journal: &dyn Journal, session: &str) -> Result<Self> {
        let entries = journal.read(session, 0, usize::MAX).await?;
        let mut walk = Walk::default();
        entries.iter().for_each(|entry| walk.apply(entry));
        let mut runs = Vec::new();
        for ids in &walk.runs {
            let history = journal.index(session).await?.look(|index| index.history(&ids.agent_id));
            let mut history = serde_json::to_string(&history).unwrap_or_default();
            for (place, known) in walk.runs.iter().enumerate() {
                history = history.replace(&*known.run_id, &format!("run-{place}"));
            }
            let state = walk.states.remove(&ids.run_id).unwrap_or_default();
            let ended = walk.ended.remove(&ids.run_id);
            runs.push(RunPicture { agent: ids.agent.clone(), history, state, ended });
        }
        Ok(Self {
            picture: Picture(runs),
            runs: walk.runs.iter().map(|ids| ids.run_id.to_string()).collect(),
            digests: entries.iter().map(|entry| (entry.seq, digest(entry))).collect(),
            intents: walk.intents,
            steps: walk.accepted,
            doubts: walk.doubts,
            asked: walk.asked,
            asked_again: walk.asked_again,
        })
    }
}

/// State of the walk through the journal.
#[derive(Default)]
struct Walk {
    runs: Vec<Arc<RunIds>>,
    states: HashMap<Arc<str>, BTreeMap<String, Value>>,
    ended: HashMap<Arc<str>, String>,
    steps: HashMap<Arc<str>, u32>,
    accepted: u64,
    intents: BTreeMap<String, Effect>,
    /// At-most-once calls without a result, with the attempts that started them.
    open: HashMap<(Arc<str>, Arc<str>), Arc<str>>,
    doubts: BTreeSet<String>,
    asked: BTreeSet<String>,
    /// Digests of the questions that each run asked about a call since its start, by the
    /// idempotency key that they name. A question that is open when its run resumes is recorded
    /// again, and is the same.
    about: HashMap<String, HashMap<Arc<str>, String>>,
    /// Digests of answered questions.
    answered: BTreeSet<Box<str>>,
    asked_again: BTreeSet<String>,
}

impl Walk {
    fn apply(&mut self, entry: &Entry) {
        let run = &entry.run;
        match &entry.body {
            EntryBody::RunStarted { ids, .. } => self.runs.push(ids.clone()),
            // Calls that an earlier attempt started and left without a result are in doubt now.
            EntryBody::RunResumed { .. } => {
                let left = self.open.iter().filter(|((of, _), _)| of == run);
                self.doubts.extend(left.map(|((_, call), attempt)| format!("{call}/{}/{attempt}", Doubt::KIND)));
            }
            EntryBody::RunEnded { status, answer, .. } => {
                self.ended.insert(run.clone(), format!("{status:?} {answer:?}"));
            }
            EntryBody::ModelAccepted { step, .. } => {
                self.steps.insert(run.clone(), *step);
                self.accepted += 1;
            }
            EntryBody::StateChanged { state, .. } => {
                self.states.entry(run.clone()).or_default().extend(state.clone());
            }
            EntryBody::ToolStarted { call_id, name, effect, attempt } if TOOLS.iter().any(|(t, _)| **t == **name) => {
                let step = self.steps.get(run).copied().unwrap_or_default();
                let key = format!("{run}/{step}/{call_id}");
                self.about.remove(&key);
                self.intents.insert(key, *effect);
                if *effect == Effect::AtMostOnce {
                    self.open.insert((run.clone(), call_id.clone()), attempt.clone());
                }
            }
            EntryBody::Answered { digest, .. } if !digest.is_empty() => _ = self.answered.insert(digest.clone()),
            EntryBody::ToolFinished { call_id, .. } => drop(self.open.remove(&(run.clone(), call_id.clone()))),
            EntryBody::Asked { question } if question.kind == Doubt::KIND => {
                // The prefix consists of the calls of the runs above.
                let end = question.id.rsplitn(4, '/').take(3).collect::<Vec<_>>();
                self.asked.insert(end.into_iter().rev().collect::<Vec<_>>().join("/"));
                let key = question.payload["idempotency_key"].as_str().unwrap_or_default().to_owned();
                let before = self.about.entry(key.clone()).or_default().insert(run.clone(), question.digest.clone());
                if before.is_some_and(|before| before != question.digest) || self.answered.contains(&*question.digest) {
                    self.asked_again.insert(key);
                }
            }
            _ => {}
        }
    }
}
