//! Events of sub-agents, as readers see them.

use agent_core::{
    Chunk, Event, EventKind, RunRequest,
    testing::{ScriptedModel, Turn},
};
use futures::StreamExt;

use super::*;

// NexAU 62
#[tokio::test]
async fn what_a_sub_agent_streams_carries_its_run_and_comes_within_the_call() {
    let helper = built(Agent::builder("helper", ScriptedModel::new([Turn::text("two words")])).streaming(true));
    let args = json!({"agent": "helper", "message": "speak"});
    let model = ScriptedModel::new([Turn::call("a", "delegate", args), Turn::text("done")]);
    let events: Vec<Event> = built(boss(model, helper)).start(RunRequest::user("go").streaming(true)).collect().await;
    let line = |event: &Event| {
        let what = match &event.kind {
            EventKind::ToolStarted { call_id, .. } => format!("calls {call_id}"),
            EventKind::SubAgentStarted { key, .. } => format!("starts {key}"),
            EventKind::Chunk(Chunk::Text { delta, .. }) => format!("says {delta:?}"),
            EventKind::ToolAnswered { call_id, .. } => format!("has {call_id}"),
            _ => return None,
        };
        Some(format!("{} {what}", event.ids.path))
    };
    let lines: Vec<_> = events.iter().filter_map(line).collect();
    let expected = [
        "boss calls a",
        "boss starts helper",
        "boss/helper says \"two \"",
        "boss/helper says \"words\"",
        "boss has a",
        "boss says \"done\"",
    ];
    assert_eq!(lines, expected);
    let of_helper: Vec<_> = events.iter().filter(|event| event.ids.depth == 1).collect();
    let (root, run) = (&events[0].ids.run_id, &of_helper[0].ids.run_id);
    assert!(of_helper.iter().all(|event| event.ids.run_id == *run && event.ids.parent_run_id.as_ref() == Some(root)));
}
