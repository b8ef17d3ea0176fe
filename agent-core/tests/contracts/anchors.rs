//! An index read from an anchor is equivalent to one read from the session's beginning.

use std::collections::BTreeMap;

use agent_core::{
    RunIds, Usage,
    budget::Amounts,
    journal::{Anchor, EntryBody, Liveness, RunStatus, SessionIndex},
    run::checkpoint::ChildRun,
};
use proptest::{collection::vec, prelude::*, sample::select};
use serde_json::{Value, json};

use crate::{
    fold::doing,
    fold_model::{Agent, Doing, Log, done},
};

/// The next event of an agent's newest run.
#[derive(Clone, Debug)]
enum Step {
    Acts(Doing),
    /// The run is suspended, and can be resumed.
    Stops(RunStatus),
    /// A reservation for a model call is made, or settled.
    Reserves,
    Settles,
    /// A call starts a child run.
    Calls {
        background: bool,
    },
    /// The newest child run receives a message, ends with some status, or its end is reported.
    Hears,
    Ends(RunStatus),
    Reports,
}

fn step() -> impl Strategy<Value = Step> {
    let stopped = || select(vec![RunStatus::Interrupted, RunStatus::Paused, RunStatus::Cancelled, RunStatus::Failed]);
    prop_oneof![
        12 => doing().prop_map(Step::Acts),
        2 => stopped().prop_map(Step::Stops),
        1 => Just(Step::Reserves),
        1 => Just(Step::Settles),
        2 => any::<bool>().prop_map(|background| Step::Calls { background }),
        1 => Just(Step::Hears),
        1 => stopped().prop_map(Step::Ends),
        1 => Just(Step::Ends(done())),
        1 => Just(Step::Reports),
    ]
}

/// A session of two agents, as seen by a process that applied all entries, and by one that started
/// at the newest anchor.
#[derive(Default)]
struct Session {
    log: Log,
    taken: usize,
    whole: SessionIndex,
    /// `None` before the first anchor, and after an entry undid a run from before the anchor.
    since: Option<SessionIndex>,
}

impl Session {
    fn take(&mut self) {
        for entry in &self.log.0[self.taken..] {
            self.whole.apply(entry);
            if let Some(since) = &mut self.since {
                since.apply(entry);
            }
        }
        self.since = self.since.take().filter(SessionIndex::is_sound);
        self.taken = self.log.0.len();
    }

    /// Writes an anchor, through its JSON form, and restarts from it. Both processes write anchors.
    fn anchor(&mut self) -> bool {
        let writer = self.since.as_ref().filter(|_| self.taken.is_multiple_of(2)).unwrap_or(&self.whole);
        let Some(anchor) = writer.anchor(1) else { return false };
        let json = serde_json::to_string(&anchor).expect("can be kept");
        let read: Anchor = serde_json::from_str(&json).expect("can be read");
        assert_eq!(read, anchor);
        self.log.add("anchor", EntryBody::Anchored { anchor: Box::new(read) });
        self.since = Some(SessionIndex::since(&self.log.0)); // from all anchors; other entries are ignored
        true
    }
}

/// An agent, and the descendants of its newest run.
struct Tree {
    name: &'static str,
    agent: Agent,
    is_over: bool,
    calls: usize,
}

impl Tree {
    fn new(name: &'static str) -> Self {
        Self { name, agent: Agent::new(name), is_over: true, calls: 0 }
    }

    fn takes(&mut self, step: &Step, log: &mut Log) {
        let begins = matches!(step, Step::Acts(Doing::RunStarts));
        // A run that has ended writes nothing.
        if self.is_over && !begins && !matches!(step, Step::Acts(Doing::Undone { .. })) {
            self.takes(&Step::Acts(Doing::RunStarts), log);
        }
        let run = self.agent.newest_run();
        let ended = |status: &RunStatus, tokens| EntryBody::RunEnded {
            status: status.clone(),
            usage: Usage::new(tokens, 1).into(),
            error: None,
            answer: None,
        };
        match step {
            Step::Acts(doing) => {
                self.agent.act(doing, log);
                self.is_over = self.agent.ended.is_some() || matches!(doing, Doing::Undone { .. });
                self.calls = if begins { 0 } else { self.calls };
            }
            Step::Stops(status) => log.add(&run, ended(status, 5)),
            Step::Reserves => log.add(&run, EntryBody::BudgetReserved { call: 1, amounts: Amounts::none().tokens(9) }),
            Step::Settles => log.add(&run, EntryBody::BudgetSettled { call: 1, amounts: Amounts::none().tokens(3) }),
            Step::Calls { background } => {
                self.calls += 1;
                let below = self.below(&run);
                let link = (below.run_id.clone(), *background);
                let child = ChildRun::new("c0".into(), "k", link.0.clone()).in_background(link.1);
                log.add(&run, EntryBody::linked(child));
                log.add(&link.0, EntryBody::RunStarted { ids: below.into(), fingerprint: String::new() });
            }
            _ if self.calls == 0 => {}
            Step::Hears => log.heard(&self.below(&run).run_id, "something"),
            Step::Ends(status) => log.add(&self.below(&run).run_id, ended(status, 7)),
            Step::Reports => {
                let child = self.below(&run).run_id;
                log.add(&run, EntryBody::SubAgentReported { run: child, message: None });
            }
        }
    }

    /// The newest descendant of `run`.
    fn below(&self, run: &str) -> RunIds {
        let mut ids = RunIds::root(self.name, "s");
        (ids.run_id, ids.root_run_id) = (run.into(), run.into());
        ids.child("k", None, Some(format!("{run}-{}", self.calls).into()))
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn what_follows_an_anchor_means_the_same_whoever_reads_it(
        steps in vec((0_usize..2, step(), any::<bool>()), 0..60),
    ) {
        let (mut session, mut trees) = (Session::default(), [Tree::new("a"), Tree::new("b")]);
        for (who, step, anchors) in &steps {
            trees[*who].takes(step, &mut session.log);
            session.take();
            if *anchors && session.anchor() {
                session.take();
            }
            let Some(since) = &session.since else { continue };
            for (name, tree) in ["a", "b"].into_iter().zip(&trees) {
                prop_assert_eq!(since.view(name), session.whole.view(name));
                prop_assert_eq!(since.unfinished(name), session.whole.unfinished(name));
                prop_assert_eq!(since.open_since(name), session.whole.open_since(name));
                let newest = tree.agent.newest_run();
                let below = tree.below(&newest).agent_id;
                prop_assert_eq!(since.view(&below), session.whole.view(&below));
                for run in session.whole.runs(name) {
                    let mut ids = RunIds::root(name, "s");
                    ids.run_id = run.run_id.clone();
                    let (known, all) = (since.liveness(&ids), session.whole.liveness(&ids));
                    prop_assert!(known == all || (known == Liveness::Unknown && *run.run_id != *newest));
                }
            }
            prop_assert_eq!(since.info(), session.whole.info());
            prop_assert_eq!(since.seq(), session.whole.seq());
        }
    }
}

#[test]
fn what_is_nested_too_deeply_to_be_read_back_from_an_anchor_is_in_none() {
    let anchored = |levels| {
        let mut log = Log::default();
        log.run("a", "r1");
        let value = (0..levels).fold(json!(1), |inner, _| Value::Array(vec![inner]));
        let state = BTreeMap::from([("deep".to_owned(), value)]);
        let changed = EntryBody::StateChanged { state, globals: BTreeMap::new() };
        EntryBody::from_json(&changed.to_json().expect("JSON")).expect("can be read where it is");
        log.add("r1", changed);
        let mut index = SessionIndex::default();
        log.0.iter().for_each(|entry| index.apply(entry));
        index.anchor(1).map(|anchor| EntryBody::Anchored { anchor: Box::new(anchor) })
    };
    assert!(anchored(123).is_none());
    let anchor = anchored(100).expect("is not too deep").to_json().expect("JSON");
    assert!(EntryBody::from_json(&anchor).is_ok());
}
