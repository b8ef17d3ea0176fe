//! Journal size of a step: a model call, and one tool result of 100 bytes.

use std::{fs, path::Path, sync::Arc};

use agent::{
    Agent, AgentBuilder, Error, ErrorKind, Result, RunRequest, SqliteJournal,
    core::{
        Effect, Journal, MemoryJournal, Tool, ToolOptions, ToolOutput, ToolRequest, ToolSpec,
        journal::{Entry, EntryBody},
    },
    testing::{EveryHook, ScriptedModel, Turn},
};
use serde_json::json;

use super::Row;

/// Maximum file size in bytes of a run of 200 steps, after a checkpoint.
const FILE: u64 = 400_000;

pub(crate) async fn measure(dir: &Path, steps: u32) -> Result<Vec<Row>> {
    eprintln!("steps: a run of 200");
    let file = file_of(&dir.join("steps.db"), 200).await?;
    eprintln!("steps: a run of {steps}");
    let plain = bytes_per_step(agent(steps), steps).await?;
    eprintln!("steps: the same with ten middlewares");
    let ten = (0..10).fold(agent(50), |agent, _| agent.middleware(EveryHook));
    let (with, without) = (bytes_per_step(ten, 50).await?, &plain[..plain.len().min(50)]);

    let at = |step: usize| plain.get(step - 1).copied();
    let mut rows = vec![Row::new("bytes of a file of 200 steps", file.to_string(), "under 400000", file < FILE)];
    for step in [10, 100, 1000] {
        rows.extend(at(step).map(|bytes| Row::plain(format!("bytes of step {step}"), bytes.to_string())));
    }
    if let (Some(first), Some(last)) = (at(10), at(1000)) {
        let ratio = last as f64 / first as f64;
        rows.push(Row::new("  step 1000 to step 10", format!("{ratio:.3}"), "within 5 %", (ratio - 1.0).abs() <= 0.05));
    }
    let added = with.iter().sum::<usize>().abs_diff(without.iter().sum());
    rows.push(Row::new("bytes that ten middlewares add", added.to_string(), "none", added == 0));
    Ok(rows)
}

/// Returns the file size after a run.
async fn file_of(path: &Path, steps: u32) -> Result<u64> {
    let journal = SqliteJournal::open(path)?;
    let agent = agent(steps).store(journal.clone()).build()?;
    agent.start(RunRequest::user("Go.").session("s")).await?;
    drop((agent, journal)); // dropping the last handle leaves one file
    let size = fs::metadata(path).map_err(|e| Error::new(ErrorKind::Store, "the file is gone").with_source(e))?;
    Ok(size.len())
}

/// Returns the bytes of the entries of each step.
async fn bytes_per_step(agent: AgentBuilder, steps: u32) -> Result<Vec<usize>> {
    let journal = MemoryJournal::default();
    let agent = agent.store(journal.clone()).build()?;
    agent.start(RunRequest::user("Go.").session("s")).await?;
    let entries = journal.read("s", 0, usize::MAX).await?;
    let mut bytes = vec![0; steps as usize];
    let mut step = None;
    for entry in &entries {
        if let EntryBody::ModelFinished { step: begun, .. } = entry.body {
            step = Some(begun as usize - 1);
        }
        if let Some(bytes) = step.and_then(|step| bytes.get_mut(step)) {
            *bytes += size(entry)?;
        }
    }
    Ok(bytes)
}

fn size(entry: &Arc<Entry>) -> Result<usize> {
    Ok(entry.body.to_json()?.len())
}

fn agent(steps: u32) -> AgentBuilder {
    let calls = (1..=steps).map(|step| Turn::call(&format!("call_{step:024}"), "look", json!({"at": "the weather"})));
    let model = ScriptedModel::new(calls.chain([Turn::text("Done.")]));
    Agent::builder("bench", model).tool(Look).max_steps(steps + 1)
}

/// Tool that returns 100 bytes.
struct Look;

#[agent::async_trait]
impl Tool for Look {
    fn spec(&self) -> ToolSpec {
        ToolSpec::new("look", "Looks.", json!({"type": "object"}))
    }

    fn options(&self) -> ToolOptions {
        ToolOptions::default().effect(Effect::Pure)
    }

    async fn call(&self, _: ToolRequest) -> Result<ToolOutput> {
        Ok(ToolOutput::text("y".repeat(100)))
    }
}
