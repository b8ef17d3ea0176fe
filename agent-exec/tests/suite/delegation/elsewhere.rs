//! Sub-agents that run in another tree, for example across a network.

use std::sync::{Arc, Mutex};

use agent_core::{
    ExitReason, GlobalStorage, MemoryJournal, Question, RunEnd, RunIds, RunRequest, State,
    engine::{Emitter, EventHub, RunDriver, RunLog, RunParts},
    run::{RunInput, SubAgent},
};
use tower::service_fn;

use super::*;
use crate::common::{finished, stopped};

/// Asks when it is started, and finishes with the answer when it is resumed; records how it was
/// started.
fn elsewhere(started: Arc<Mutex<Vec<&'static str>>>) -> Delegation {
    let agent = service_fn(move |req: RunRequest| {
        let started = started.clone();
        async move {
            let note = |how| started.lock().expect("a lock").push(how);
            let ids = match &req.input {
                RunInput::Resume { checkpoint, .. } => checkpoint.ids.clone(),
                _ => req.parent.as_ref().expect("below").cx.ids().child("helper", None, req.run_id.clone()),
            };
            match &req.input {
                RunInput::Resume { answers, .. } => {
                    note("goes on");
                    let said = answers["c9/approval"].value.to_string();
                    let finished = Finished::new(ids, said, ExitReason::Text, History::default());
                    Ok::<_, agent_core::Error>(RunEnd::Finished(Box::new(finished)))
                }
                _ => {
                    note("begins");
                    let mut stands = Checkpoint::new(ids, "f");
                    stands.questions.push(Question::new("c9/approval", "approval", json!({})));
                    Ok(RunEnd::Interrupted(Box::new(stands)))
                }
            }
        }
    });
    Delegation::new().to("helper", "Helps.", agent)
}

/// Returns a run with this sub-agent, driven by another executor.
fn driven_by_hand(helper: Agent) -> RunDriver {
    let (ids, journal) = (Arc::new(RunIds::root("other", "s")), Arc::new(MemoryJournal::default()));
    let writer = journal.open_now(&ids.session, &ids.agent_id).expect("is free");
    let emitter = Emitter::new(ids.clone(), EventHub::new(journal.clone(), ids.session.clone()), None);
    let (state, globals) = (State::default(), GlobalStorage::default());
    let log = RunLog::new(ids.clone(), journal, writer, emitter.clone(), state.clone(), globals.clone());
    let mut parts = RunParts::new(ids, emitter, log);
    (parts.state, parts.globals) = (state, globals);
    parts.sub_agents = [SubAgent::new("helper", "Helps.", helper)].into_iter().collect();
    RunDriver::new(parts)
}

#[tokio::test]
async fn an_agent_does_not_write_into_the_journal_of_a_run_to_which_its_executor_has_no_key() {
    let helper = built(Agent::builder("helper", thinks(|_, _| says("hi"))));
    let run = driven_by_hand(helper);
    let refused = run.cx().call_sub_agent("helper", "hello").await.expect_err("refused");
    assert_eq!(refused.kind(), agent_core::ErrorKind::Config);
    assert!(refused.message().contains("another executor's"), "{refused}");
}

#[tokio::test]
async fn one_that_ran_elsewhere_goes_on_from_where_it_stood_with_the_checkpoint_and_with_the_journal() {
    for recovers in [false, true] {
        let (started, journal) = (Arc::default(), Arc::new(MemoryJournal::default()));
        let agent = || {
            let model =
                thinks(|spoke, history| if spoke == 0 { ask("c1", "help", json!({})) } else { says(last(history)) });
            built(Agent::builder("boss", model).middleware(elsewhere(Arc::clone(&started))).store(journal.clone()))
        };
        let (kind, checkpoint) = stopped(agent().start(RunRequest::user("go").session("s")).await);
        assert_eq!((kind, questions(&checkpoint)), ("interrupted", vec!["c1/c9/approval"]));
        let answers = [("c1/c9/approval".to_owned(), json!("yes"))];
        let request = match recovers {
            true => RunRequest::recover("s", answers),
            false => RunRequest::resume(checkpoint, answers),
        };
        let end = finished(agent().start(request).await);
        assert_eq!(end.answer, "\"yes\"");
        assert_eq!(*started.lock().expect("a lock"), ["begins", "goes on"]);
    }
}
