//! Runs that stop, and their stored checkpoints.

use std::sync::{Arc, Mutex};

use agent_core::{
    Checkpoint, Error, ErrorKind, MemoryJournal, Message, RunRequest,
    run::checkpoint::Phase,
    testing::{ScriptedModel, Turn},
};
use agent_exec::Agent;
use agent_middleware::{Breakpoints, Snapshots, breakpoints::BreakpointsConfig};
use serde_json::json;

use crate::common::{Watch, double, finished, roles, stopped};

/// Stores checkpoints as text, each under its number.
#[derive(Clone, Default)]
struct Kept(Arc<Mutex<Vec<String>>>);

impl Kept {
    fn snapshots(&self) -> Snapshots {
        let kept = self.0.clone();
        Snapshots::new(move |checkpoint: Checkpoint| {
            let text = checkpoint.to_json();
            let place = text.map(|text| {
                let mut kept = kept.lock().expect("free");
                kept.push(text);
                format!("number {}", kept.len())
            });
            async { place }
        })
    }

    fn last(&self) -> Checkpoint {
        Checkpoint::from_json(self.0.lock().expect("free").last().expect("kept")).expect("parses")
    }
}

fn script() -> ScriptedModel {
    ScriptedModel::new([Turn::call("1", "f", json!({"x": 3})), Turn::text("done")])
}

fn agent(model: &ScriptedModel, kept: &Kept) -> Agent {
    let builder = Agent::builder("a", model.clone()).tool(double("f")).middleware(kept.snapshots());
    builder.middleware(Breakpoints::new()).build().expect("builds")
}

fn go_on(checkpoint: Checkpoint) -> RunRequest {
    let answer = checkpoint.questions[0].answer(true);
    RunRequest::resume_with(checkpoint, [answer])
}

// Haystack 59, 60, 61, 63
#[tokio::test]
async fn one_goes_from_breakpoint_to_breakpoint_by_the_snapshots_and_is_told_where_each_is_kept() {
    let (model, kept) = (script(), Kept::default());
    let places = [Breakpoints::new().before_model(0), Breakpoints::new().before_tool("f", 0)];
    let places = places.into_iter().chain([Breakpoints::new().before_model(1)]);
    let mut request = RunRequest::user("go");
    let mut seen = Vec::new();
    for (at, place) in places.enumerate() {
        let (how, checkpoint) = stopped(agent(&model, &kept).start(request.resource(place)).await);
        assert_eq!((how, checkpoint.saved_as.as_deref()), ("interrupted", Some(&*format!("number {}", at + 1))));
        seen.push((model.calls(), checkpoint.history.len(), checkpoint.questions[0].payload["visits"].clone()));
        if at == 1 {
            let Phase::Tools(turn) = &checkpoint.phase else { panic!("{:?}", checkpoint.phase) };
            assert_eq!(turn.open_calls().collect::<Vec<_>>(), ["1"]);
        }
        request = go_on(kept.last());
    }
    let visits = |model, tools| json!({"model": model, "tools": tools});
    assert_eq!(seen, [(0, 1, visits(0, 0)), (1, 1, visits(1, 0)), (1, 3, visits(1, 1))]);
    let end = finished(agent(&model, &kept).start(request).await);
    assert_eq!(roles(&end.history), ["user", "assistant", "tool", "assistant"]);
    assert_eq!(model.calls(), 2);
}

// Haystack 62
#[tokio::test]
async fn a_breakpoint_of_no_kind_is_no_data_and_one_for_an_unknown_tool_fails_the_run_before_the_model() {
    for wrong in [
        json!({"at": [{"model": {"visit": 0, "tool": "f"}}]}),
        json!({"at": [{"embedder": {"visit": 0}}]}),
        json!({"at": [{"tools": {"tool": "f"}}]}),
    ] {
        serde_json::from_value::<BreakpointsConfig>(wrong.clone()).expect_err(&wrong.to_string());
    }
    let (model, kept) = (script(), Kept::default());
    let request = RunRequest::user("go").resource(Breakpoints::new().before_tool("zz", 0));
    let e = agent(&model, &kept).start(request).await.expect_err("refused");
    assert!(e.kind() == ErrorKind::Config && e.message().contains("'zz'; the tools are: f"), "{e}");
    assert_eq!(model.calls(), 0);
}

#[tokio::test]
async fn a_failed_run_is_kept_too_and_a_finished_one_is_not() {
    let (kept, broken) = (Kept::default(), || Turn::error(|| Error::new(ErrorKind::Provider, "boom")));
    let model = ScriptedModel::new([Turn::call("1", "f", json!({"x": 3})), broken(), Turn::text("done")]);
    let e = agent(&model, &kept).run("go").await.expect_err("fails");
    assert_eq!(e.checkpoint().and_then(|c| c.saved_as.as_deref()), Some("number 1"));
    let end = finished(agent(&model, &kept).start(RunRequest::resume(kept.last(), [])).await);
    assert_eq!((end.answer.as_str(), end.history.len()), ("done", 4));
    assert_eq!(kept.0.lock().expect("free").len(), 1);
}

#[tokio::test]
async fn a_run_may_bring_its_own_place_and_one_that_fails_is_a_warning_and_no_loss() {
    let (model, kept, watch) = (script(), Kept::default(), Watch::default());
    let full = Snapshots::new(|_| async { Err(Error::new(ErrorKind::Store, "the disk is full")) });
    let builder = Agent::builder("a", model.clone()).tool(double("f")).middleware(full).middleware(watch.clone());
    let agent =
        builder.middleware(Breakpoints::new().before_model(0)).store(MemoryJournal::default()).build().expect("builds");
    let (_, checkpoint) = stopped(agent.run("go").await);
    assert_eq!((checkpoint.saved_as, checkpoint.history.last().map(Message::role)), (None, Some("user")));
    assert_eq!(watch.warnings(), ["the checkpoint could not be kept: store: the disk is full"]);

    let (_, checkpoint) = stopped(agent.start(RunRequest::user("go").resource(kept.snapshots())).await);
    assert_eq!(checkpoint.saved_as.as_deref(), Some("number 1"));
}
