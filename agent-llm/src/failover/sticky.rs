//! [`Sticky`]: the model that calls begin with after a failover.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
    time::Duration,
};

use agent_core::{RunCx, RunIds};
use tokio::time::Instant;

use super::course::Course;

/// Model that calls after a failover begin with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Sticky {
    /// Each call begins with the first model.
    #[default]
    No,
    /// Calls begin with the model that answered, for this long; then with the first again. This
    /// applies to the calls of all runs, so that not each of them waits for the failing model. A
    /// conversation that was too long for a model says nothing about other runs, and is not
    /// remembered.
    For(Duration),
    /// Calls of the same run begin with the model that answered, which keeps its style and the
    /// provider's prompt cache. Other runs, including sub-agents, begin with the first; so does a
    /// run that is resumed from a checkpoint.
    Run,
}

/// State learnt from failovers.
pub(super) struct Memory {
    sticky: Sticky,
    kept: Mutex<Kept>,
}

#[derive(Default)]
struct Kept {
    /// Index of a model, and when it expires; `None` if that is beyond the clock's range.
    all: Option<(usize, Option<Instant>)>,
    /// Per run id, until the run's context is dropped.
    runs: HashMap<Arc<str>, (usize, Weak<RunIds>)>,
}

impl Memory {
    pub(super) fn new(sticky: Sticky) -> Self {
        Self { sticky, kept: Mutex::default() }
    }

    /// Returns the index of the model that a call of the run begins with.
    pub(super) fn first(&self, cx: &RunCx) -> usize {
        let kept = self.kept();
        let at = match self.sticky {
            Sticky::No => None,
            Sticky::For(_) => {
                let holds = |until: Option<Instant>| until.is_none_or(|until| Instant::now() < until);
                kept.all.filter(|(_, until)| holds(*until)).map(|(at, _)| at)
            }
            Sticky::Run => kept.runs.get(&cx.ids().run_id).filter(|(_, run)| run.strong_count() > 0).map(|(at, _)| *at),
        };
        at.unwrap_or(0)
    }

    /// Remembers the model that answered.
    pub(super) fn keep(&self, cx: &RunCx, course: &Course<'_>) {
        if !course.has_moved() {
            return;
        }
        match self.sticky {
            Sticky::For(time) if !course.has_overflowed() => {
                self.kept().all = Some((course.place(), Instant::now().checked_add(time)));
            }
            Sticky::Run => {
                let runs = &mut self.kept().runs;
                runs.retain(|_, (_, run)| run.strong_count() > 0);
                runs.insert(cx.ids().run_id.clone(), (course.place(), Arc::downgrade(cx.ids())));
            }
            Sticky::No | Sticky::For(_) => {}
        }
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use agent_core::{
        Error, ErrorKind, History,
        testing::{ScriptedModel, detached_run},
    };

    use super::*;
    use crate::failover::{Candidate, rules::Rules};

    #[test]
    fn runs_that_are_over_are_forgotten() {
        let model = Arc::new(ScriptedModel::new([]));
        let candidates = [0, 1].map(|_| Candidate { model: model.clone(), label: "m".into(), window: None });
        let memory = Memory::new(Sticky::Run);
        for _ in 0..5 {
            let run = detached_run(History::default());
            let mut course = Course::new(&candidates, 0);
            course.advance(&Error::new(ErrorKind::Overloaded, "why"), &Rules::default()).expect("there is another");
            memory.keep(run.cx(), &course);
            assert_eq!((memory.first(run.cx()), memory.kept().runs.len()), (1, 1));
        }
    }
}
