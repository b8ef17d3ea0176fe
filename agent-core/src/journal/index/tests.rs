//! Tests of the index's size and usage accounting in long runs.

use std::{collections::BTreeMap, sync::Arc};

use super::SessionIndex;
use crate::{
    amounts::Amounts,
    history::History,
    journal::{Entry, EntryBody, MemoryJournal, fork_at},
    llm::ModelResponse,
    message::{AssistantMessage, Block, Message},
    state::{ChildRun, ExitReason, RunIds, RunState, RunStatus},
    tooling::{Effect, ToolOutput},
    usage::Usage,
};

/// A log whose entries are applied as they are written.
#[derive(Default)]
struct Log {
    index: SessionIndex,
    entries: Vec<Entry>,
}

impl Log {
    fn add(&mut self, run: &str, body: EntryBody) {
        let mut entry = Entry::new(run.into(), 0, body);
        entry.seq = self.index.seq() + 1;
        self.index.apply(&entry);
        self.entries.push(entry);
    }

    fn begin(&mut self, run: &str, above: Option<&str>) {
        let mut ids = RunIds::root(run, "s");
        (ids.agent_id, ids.run_id) = (run.into(), run.into());
        ids.root_run_id = if above.is_some() { "root".into() } else { run.into() };
        ids.parent_run_id = above.map(Into::into);
        self.add(run, EntryBody::RunStarted { ids: Arc::new(ids), fingerprint: String::new() });
    }

    fn answer(&mut self, run: &str, step: u32, message: AssistantMessage) {
        let mut response = ModelResponse::new(message);
        response.usage = Usage::new(2, 1);
        self.add(run, EntryBody::BudgetReserved { call: step, amounts: Amounts::none().tokens(9) });
        self.add(run, EntryBody::ModelFinished { step, response: Arc::new(response) });
        self.add(run, EntryBody::BudgetSettled { call: step, amounts: Amounts::none().tokens(3) });
        self.add(run, EntryBody::ModelAccepted { step, message: None, exit: None });
    }

    fn end(&mut self, run: &str, status: RunStatus, usage: Usage) {
        self.add(run, EntryBody::RunEnded { status, usage: usage.into(), error: None, answer: None });
    }

    /// Adds a turn with one call, during which `during` runs.
    fn turn(&mut self, run: &str, step: u32, during: impl FnOnce(&mut Self)) {
        self.answer(run, step, AssistantMessage::new(vec![Block::tool_call("c", "tool", "{}")]));
        let (call_id, name): (Arc<str>, Arc<str>) = ("c".into(), "tool".into());
        let (effect, attempt) = (Effect::Pure, run.into());
        self.add(run, EntryBody::Decided { name: "d".into(), value: step.into(), beginning: false });
        self.add(run, EntryBody::ToolStarted { call_id: call_id.clone(), name: name.clone(), effect, attempt });
        during(self);
        self.add(run, EntryBody::ToolFinished { call_id: call_id.clone(), output: ToolOutput::text("done") });
        self.add(run, EntryBody::ToolAnswered { call_id, name, output: None });
        self.add(run, EntryBody::TurnEnded { step, changed: BTreeMap::new(), exit: None });
    }

    /// Adds a call that starts a child run, which answers and ends.
    fn child(&mut self, above: &str, run: &str, background: bool, status: RunStatus) {
        let link = EntryBody::linked(ChildRun::new("c".into(), "k", run.into()).in_background(background));
        self.add(above, link);
        self.begin(run, Some(above));
        self.add(run, EntryBody::MessageAppended { message: Message::user(format!("for {run}")) });
        self.answer(run, 1, AssistantMessage::new(vec![Block::text("so")]));
        self.end(run, status, Usage::new(2, 1));
    }

    fn root(&self) -> &RunState {
        self.index.state("root").expect("is under way")
    }

    /// The checkpoint of the root run, with the usage of all its descendants.
    fn stands(&self) -> RunState {
        self.index.at_rest(self.root())
    }
}

fn done() -> RunStatus {
    RunStatus::Finished(ExitReason::Text)
}

#[test]
fn ten_thousand_steps_leave_no_more_than_a_thousand_beside_the_conversation() {
    let held = |steps| {
        let mut log = Log::default();
        log.begin("root", None);
        for step in 1..=steps {
            log.turn("root", step, |_| ());
            log.entries.clear();
        }
        assert_eq!(log.stands().history.len() as u32, 2 * steps);
        log.add("root", EntryBody::HistoryReplaced { reason: "test".into(), before: 0, history: History::default() });
        let text = format!("{:?}", log.index);
        text.chars().filter(|c| !c.is_ascii_digit()).count()
    };
    assert_eq!(held(1_000), held(10_000));
}

#[test]
fn a_sub_agent_that_never_began_is_forgotten_with_its_turn_and_keeps_no_other() {
    let mut log = Log::default();
    log.begin("root", None);
    for n in 1..=100 {
        log.turn("root", n, |log| {
            log.add("root", EntryBody::linked(ChildRun::new("c".into(), "k", format!("lost{n}").into())));
            log.child("root", &format!("r{n}"), false, done());
        });
        assert_eq!((log.index.states.len(), log.root().run_meta.children.len()), (1, 0), "after {n}");
    }
}

#[test]
fn sub_agents_that_ended_leave_what_they_used_and_what_they_said() {
    let mut log = Log::default();
    log.begin("root", None);
    for n in 1..=1_000 {
        log.turn("root", n, |log| log.child("root", &format!("r{n}"), false, done()));
        assert_eq!((log.index.states.len(), log.root().run_meta.children.len()), (1, 0), "after {n}");
    }
    let stands = log.stands();
    assert_eq!((stands.usage.total(), stands.tree_usage.total(), stands.sub_agents), (3_000, 6_000, 1_000));
    assert_eq!(stands.used(), Amounts::none().tokens(6_000).model_calls(2_000).tool_calls(1_000));
    assert_eq!(log.index.history("r7").len(), 2, "it can be recalled with what it knows");
    assert!(log.index.knows(&RunState::new(named("r7"), "")), "its end needs no import");
}

fn named(run: &str) -> RunIds {
    let mut ids = RunIds::root(run, "s");
    ids.run_id = run.into();
    ids
}

#[test]
fn a_sub_agent_that_can_go_on_or_was_not_reported_stays() {
    let mut log = Log::default();
    log.begin("root", None);
    log.turn("root", 1, |log| {
        log.child("root", "waits", false, RunStatus::Interrupted);
        log.child("root", "failed", false, RunStatus::Failed);
        log.child("root", "beside", true, done());
        log.child("root", "told", true, done());
        log.add("root", EntryBody::SubAgentReported { run: "told".into(), message: None });
        log.child("root", "over", false, done());
        log.child("over", "below", false, done());
    });
    let children: Vec<_> = log.root().run_meta.children.iter().map(|child| &*child.run).collect();
    assert_eq!((children, log.index.states.len()), (vec!["waits", "beside"], 3));
    let stands = log.stands();
    let background: Vec<_> = stands.background.iter().map(|background| &*background.run).collect();
    assert_eq!((background, stands.tree_usage.total()), (vec!["beside"], 7 * 3));

    log.add("root", EntryBody::SubAgentReported { run: "beside".into(), message: None });
    log.turn("root", 2, |_| ());
    assert_eq!((log.index.states.len(), log.root().run_meta.reported.len()), (2, 0));
    assert_eq!(log.stands().tree_usage.total(), 8 * 3);
}

#[test]
fn what_a_run_goes_on_from_counts_what_its_ended_descendants_used_once() {
    let mut log = Log::default();
    log.begin("root", None);
    log.turn("root", 1, |log| log.child("root", "one", false, done()));
    let mut again = SessionIndex::default();
    again.adopt(&log.stands());
    let state = again.state("root").expect("was adopted");
    assert_eq!((again.tree_usage(state), again.at_rest(state).spent), (log.stands().tree_usage, log.stands().spent));
}

#[tokio::test]
async fn a_sub_agents_run_is_forked_when_its_caller_went_on_and_when_another_run_began() {
    let mut log = Log::default();
    log.begin("root", None);
    log.turn("root", 1, |log| log.child("root", "one", false, done()));
    log.end("root", done(), Usage::default());
    let mut ids = named("root");
    ids.run_id = "later".into();
    ids.root_run_id = "later".into();
    log.add("later", EntryBody::RunStarted { ids: Arc::new(ids), fingerprint: String::new() });
    let journal = MemoryJournal::default();
    journal.open_now("s", "root").expect("is free").append(log.entries).await.expect("appends");
    let fork = fork_at(&journal, "s", "one", Some("one"), 1, "t").await.expect("forks");
    assert_eq!((fork.step, fork.history.len()), (1, 2));
}

#[test]
fn a_run_is_read_from_where_it_first_began_however_often_it_begins_again() {
    let mut log = Log::default();
    log.begin("root", None);
    log.turn("root", 1, |log| log.child("root", "one", false, RunStatus::Interrupted));
    let first = log.index.began("one");
    let entry = &log.entries[usize::try_from(first).expect("small") - 1];
    assert!(matches!(&entry.body, EntryBody::RunStarted { ids, .. } if *ids.run_id == *"one"), "{entry:?}");
    log.begin("one", Some("root"));
    assert_eq!((log.index.began("one"), log.index.began("nobody")), (first, 0));
}
