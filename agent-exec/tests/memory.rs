//! Memory use of a run without a store.

#[path = "suite/common/mod.rs"]
mod common;

use std::{
    alloc::System,
    sync::{Arc, Mutex},
};

use agent_core::{
    AssistantMessage, Block, History, Message, Model, ModelInfo, ModelRequest, ModelResponse, Result, RunRequest,
    ToolOutput, ToolRequest, async_trait,
};
use agent_exec::Agent;
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};

use common::{finished, tool};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// Number of steps of the run, and the interval at which its memory is measured.
const STEPS: usize = 6_000;
const EACH: usize = 1_000;

/// Calls a tool in each step but the last, and records how many bytes are in use.
struct Notes {
    region: Region<'static, System>,
    calls: Mutex<usize>,
    in_use: Arc<Mutex<Vec<isize>>>,
}

#[async_trait]
impl Model for Notes {
    fn info(&self) -> ModelInfo {
        ModelInfo::new("notes")
    }

    async fn call(&self, _: ModelRequest) -> Result<ModelResponse> {
        let mut calls = self.calls.lock().expect("free");
        *calls += 1;
        if (*calls).is_multiple_of(EACH) {
            let change = self.region.change();
            let in_use = change.bytes_allocated as isize - change.bytes_deallocated as isize;
            self.in_use.lock().expect("free").push(in_use);
        }
        let said = match *calls {
            STEPS => Block::text("done"),
            n => Block::tool_call(format!("c{n}"), "cut", format!(r#"{{"text": "{}"}}"#, "x".repeat(500))),
        };
        Ok(ModelResponse::new(AssistantMessage::new(vec![said])))
    }
}

#[tokio::test]
async fn a_run_without_a_store_keeps_no_more_than_its_conversation_and_its_newest_entries() {
    // Its result follows the messages it removes: the conversation has at most three messages.
    let cut = tool("cut", |request: ToolRequest| async move {
        let first = History::from_messages([Message::user("go")])?;
        request.cx.replace_history(first, "cut");
        Ok(ToolOutput::text("y".repeat(500)))
    });
    let in_use = Arc::<Mutex<Vec<isize>>>::default();
    let model = Notes { region: Region::new(ALLOCATOR), calls: Mutex::default(), in_use: in_use.clone() };
    let agent = Agent::builder("a", model).tool(cut).max_steps(u32::MAX).entries_kept(100).build().expect("builds");
    assert_eq!(finished(agent.start(RunRequest::user("go")).await).steps as usize, STEPS);
    let in_use = in_use.lock().expect("free");
    // Five thousand steps of more than one kilobyte lie between the two measurements.
    assert!(in_use[in_use.len() - 1] - in_use[0] < 200_000, "{in_use:?}");
}
