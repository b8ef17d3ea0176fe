//! Journal entries of programs.

use agent_core::{Effect, Journal, MemoryJournal, RunRequest, ToolOutput, testing::Turn};
use agent_tools::{ToolExt, from_schema};
use serde_json::{Value, json};

use super::world::{Outside, builder, code_mode, finished, program};

/// Returns the number of journal bytes of a run whose program makes this many calls, each with this
/// value.
async fn written(calls: usize, value: fn() -> Value) -> usize {
    let journal = MemoryJournal::default();
    let code = format!(
        "n = 0\nfor i in range({calls}):\n    row = await rows(i)\n    n += len((row.get('data') or row['returnDisplay'])['text'])\nn"
    );
    let (agent, model) = builder([program("p", &code), Turn::text("so")], &Outside::default());
    let parameters = json!({"type": "object", "properties": {"i": {"type": "integer"}}, "required": ["i"]});
    let rows = from_schema("rows", "", parameters, move |_: Value, _: agent_core::ToolRequest| async move {
        Ok::<_, agent_core::Error>(ToolOutput::value(value()))
    });
    let agent = agent.tool(rows.with_options(|options| options.effect(Effect::Idempotent))).store(journal.clone());
    let agent = agent.middleware(code_mode()).max_steps(100).build().expect("builds");
    finished(agent.start(RunRequest::user("go").session("s")).await);
    assert_eq!(model.requests()[1].results()[0].1, (calls * 100_000).to_string());
    let entries = journal.read("s", 0, usize::MAX).await.expect("reads");
    entries.iter().map(|entry| serde_json::to_string(entry).expect("serialises").len()).sum()
}

#[tokio::test]
async fn what_a_step_writes_does_not_grow_with_the_steps_before_it() {
    // A call's result contains its text and its value. The program's copy is stored again only
    // where the text lacks it.
    let told: fn() -> Value = || json!({"content": "short", "returnDisplay": 0, "data": {"text": "x".repeat(100_000)}});
    let hidden: fn() -> Value = || json!({"content": "short", "returnDisplay": {"text": "x".repeat(100_000)}});
    for value in [told, hidden] {
        let (few, many) = (written(4, value).await, written(24, value).await);
        let each = (many - few) / 20;
        println!("{few} bytes for 4 calls, {many} for 24: {each} for each more");
        assert!((200_000..202_500).contains(&each), "{each} bytes for each call");
    }
}
