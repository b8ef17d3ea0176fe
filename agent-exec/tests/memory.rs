//! Memory use of runs.

#[path = "suite/common/mod.rs"]
mod common;

use std::{
    alloc::System,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use agent_core::{
    AssistantMessage, Block, BoxFuture, Effect, History, Journal, Message, Model, ModelInfo, ModelRequest,
    ModelResponse, Result, RunRequest, ToolOutput, ToolRequest, async_trait,
    journal::{Ack, Entry, JournalWriter},
};
use agent_exec::Agent;
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};
use tokio::sync::Mutex;

use common::{finished, tool};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// Held by the test that measures the memory in use.
static ALONE: Mutex<()> = Mutex::const_new(());

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
        let mut calls = self.calls.lock().await;
        *calls += 1;
        if (*calls).is_multiple_of(EACH) {
            let change = self.region.change();
            let in_use = change.bytes_allocated as isize - change.bytes_deallocated as isize;
            self.in_use.lock().await.push(in_use);
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
    let _alone = ALONE.lock().await;
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
    let in_use = in_use.lock().await;
    // Five thousand steps of more than one kilobyte lie between the two measurements.
    assert!(in_use[in_use.len() - 1] - in_use[0] < 200_000, "{in_use:?}");
}

/// A store that keeps nothing in this process, as one on a disk does not.
struct Elsewhere(Arc<AtomicU64>);

#[async_trait]
impl Journal for Elsewhere {
    async fn open(&self, _: &str, _: &str) -> Result<Arc<dyn JournalWriter>> {
        Ok(Arc::new(Self(self.0.clone())))
    }

    async fn read(&self, _: &str, _: u64, _: usize) -> Result<Vec<Arc<Entry>>> {
        Ok(Vec::new())
    }

    async fn sessions(&self) -> Result<Vec<String>> {
        Ok(Vec::new())
    }

    async fn delete(&self, _: &str) -> Result<bool> {
        Ok(false)
    }
}

impl JournalWriter for Elsewhere {
    fn append(&self, entries: Vec<Entry>) -> Ack {
        let before = self.0.fetch_add(entries.len() as u64, Ordering::SeqCst);
        Ack::Done(Some(Ok(before + 1)))
    }

    fn verify_lease(&self) -> BoxFuture<'static, Result<()>> {
        Box::pin(async { Ok(()) })
    }
}

/// Calls one tool, so often, and notes at each step how many bytes are in use.
struct Calls {
    tool: &'static str,
    most: usize,
    region: Region<'static, System>,
    in_use: Arc<Mutex<Vec<isize>>>,
}

#[async_trait]
impl Model for Calls {
    fn info(&self) -> ModelInfo {
        ModelInfo::new("calls")
    }

    async fn call(&self, req: ModelRequest) -> Result<ModelResponse> {
        let change = self.region.change();
        self.in_use.lock().await.push(change.bytes_allocated as isize - change.bytes_deallocated as isize);
        let said = match req.messages.iter().filter(|message| message.as_tool().is_some()).count() {
            done if done == self.most => Block::text("done"),
            done => Block::tool_call(format!("c{done}"), self.tool, "{}"),
        };
        Ok(ModelResponse::new(AssistantMessage::new(vec![said])))
    }
}

#[tokio::test]
async fn a_run_does_not_keep_the_conversations_of_sub_agents_whose_calls_were_answered() {
    const SIZE: usize = 100_000;
    let _alone = ALONE.lock().await;
    let calls = |tool, most| {
        let in_use = Arc::<Mutex<Vec<isize>>>::default();
        (Calls { tool, most, region: Region::new(ALLOCATOR), in_use: in_use.clone() }, in_use)
    };
    let read = tool("read", async |_| Ok(ToolOutput::text("x".repeat(SIZE))));
    let helper = Agent::builder("helper", calls("read", 1).0).tool(read).build().expect("builds");
    let delegates = tool("ask_helper", async |req: ToolRequest| {
        Ok(ToolOutput::text(req.call_sub_agent("helper", "read").await?.answer))
    });
    let delegates = delegates.with(|options| options.effect(Effect::Idempotent).delegates());
    let (model, in_use) = calls("ask_helper", 120);
    let agent = Agent::builder("boss", model).tool(delegates).sub_agent("helper", "Reads.", helper);
    let agent = agent.max_steps(200).store(Elsewhere(Arc::default())).build().expect("builds");
    assert_eq!(finished(agent.run("go").await).answer, "done");
    let in_use = in_use.lock().await;
    let each = (in_use[119] - in_use[19]) / 100;
    assert!(each < SIZE as isize / 5, "{each} bytes more for each sub-agent of {SIZE} bytes");
}
