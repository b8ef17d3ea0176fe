//! A session that is read from an anchor means what it means when it is read from its beginning.

use agent_core::{
    RunIds,
    journal::{Anchor, EntryBody, Liveness, SessionIndex},
};
use proptest::{collection::vec, prelude::*};

use crate::{
    fold::doing,
    fold_model::{Agent, Doing, Log},
};

/// A session of two agents, as a process knows it that saw all of it, and as one that began at the newest anchor.
#[derive(Default)]
struct Session {
    log: Log,
    taken: usize,
    whole: SessionIndex,
    /// None before the first anchor, and when something before the anchor was undone.
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

    /// Writes an anchor, by way of its JSON, and begins there.
    fn anchor(&mut self) -> bool {
        let Some(anchor) = self.whole.anchor(1) else { return false };
        let json = serde_json::to_string(&anchor).expect("can be kept");
        let read: Anchor = serde_json::from_str(&json).expect("can be read");
        assert_eq!(read, anchor);
        self.since = Some(SessionIndex::since(&read));
        self.log.add("anchor", EntryBody::Anchored { anchor: Box::new(read) });
        true
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn what_follows_an_anchor_means_the_same_whoever_reads_it(
        doings in vec((0_usize..2, doing(), any::<bool>()), 0..60),
    ) {
        let (mut session, mut agents) = (Session::default(), [Agent::new("a"), Agent::new("b")]);
        let mut over = [false; 2];
        for (who, doing, anchors) in &doings {
            // Nothing is written by a run that is over.
            if over[*who] && !matches!(doing, Doing::RunStarts | Doing::Undone { .. }) {
                agents[*who].act(&Doing::RunStarts, &mut session.log);
            }
            agents[*who].act(doing, &mut session.log);
            over[*who] = agents[*who].ended.is_some() || matches!(doing, Doing::Undone { .. });
            session.take();
            if *anchors && session.anchor() {
                session.take();
            }
            let Some(since) = &session.since else { continue };
            for name in ["a", "b"] {
                prop_assert_eq!(since.view(name), session.whole.view(name));
                prop_assert_eq!(since.unfinished(name), session.whole.unfinished(name));
                prop_assert_eq!(since.open_since(name), session.whole.open_since(name));
                for run in session.whole.runs(name) {
                    let mut ids = RunIds::root(name, "s");
                    ids.run_id = run.run_id.clone();
                    let known = since.liveness(&ids);
                    prop_assert!(known == session.whole.liveness(&ids) || known == Liveness::Unknown);
                }
            }
            prop_assert_eq!(since.info(), session.whole.info());
            prop_assert_eq!(since.seq(), session.whole.seq());
        }
    }
}
