//! Session that grows by turns of four steps, three of them with a tool call.

use std::{fs, sync::Arc};

use agent::{
    Agent, Error, ErrorKind, Result, RunRequest,
    config::StoreAddress,
    core::Journal,
    testing::{ScriptedModel, Turn},
    tool,
};
use serde_json::json;

/// Cost of a turn.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cost {
    /// CPU time of this process in microseconds.
    pub(super) cpu: f64,
    /// Bytes of its entries.
    pub(super) bytes: usize,
}

pub(super) struct Session {
    address: StoreAddress,
    name: String,
    journal: Arc<dyn Journal>,
    agent: Agent,
    turns: usize,
    /// Sequence number of the newest entry.
    newest: u64,
}

/// Returns the text that it is given.
#[tool]
async fn look(at: String) -> String {
    format!("There is {at}.")
}

fn agent(journal: Arc<dyn Journal>) -> Result<Agent> {
    let turn = |_| {
        let calls = (0..3).map(|n| Turn::call(&format!("c{n}"), "look", json!({"at": "the weather"})));
        calls.chain([Turn::text("It is fine.")]).collect::<Vec<_>>()
    };
    Agent::builder("turns", ScriptedModel::new((0..20_000).flat_map(turn))).tool(look).store(journal).build()
}

impl Session {
    pub(super) async fn open(address: &str) -> Result<Self> {
        let address: StoreAddress = address.parse()?;
        let journal = address.open().await?;
        let name = format!("turn-bench-{}", std::process::id());
        Ok(Self { agent: agent(journal.clone())?, address, name, journal, turns: 0, newest: 0 })
    }

    async fn turn(&mut self) -> Result<()> {
        self.turns += 1;
        self.agent.start(RunRequest::user("How is it?").session(self.name.as_str())).await.map(drop)
    }

    /// Adds turns up to this number.
    pub(super) async fn grow(&mut self, turns: usize) -> Result<()> {
        while self.turns < turns {
            self.turn().await?;
        }
        self.written().await.map(drop)
    }

    /// Returns the median cost of turns in a process that has the session cached.
    pub(super) async fn warm(&mut self, turns: usize) -> Result<Cost> {
        let (mut times, mut sizes) = (Vec::new(), Vec::new());
        for _ in 0..turns {
            let before = cpu()?;
            self.turn().await?;
            times.push(cpu()? - before);
            sizes.push(self.written().await?);
        }
        times.sort_unstable_by(f64::total_cmp);
        sizes.sort_unstable();
        Ok(Cost { cpu: times[turns / 2], bytes: sizes[turns / 2] })
    }

    /// Runs one turn in a process that loads the session.
    pub(super) async fn cold(&mut self) -> Result<Cost> {
        self.journal = self.address.open().await?;
        self.agent = agent(self.journal.clone())?;
        let before = cpu()?;
        self.turn().await?;
        let cpu = cpu()? - before;
        Ok(Cost { cpu, bytes: self.written().await? })
    }

    /// Returns the bytes written since the last call.
    async fn written(&mut self) -> Result<usize> {
        let mut bytes = 0;
        loop {
            let page = self.journal.read(&self.name, self.newest, 1_000).await?;
            let Some(last) = page.last() else { return Ok(bytes) };
            self.newest = last.seq;
            for entry in &page {
                bytes += entry.body.to_json()?.len();
            }
        }
    }

    pub(super) async fn delete(self) -> Result<()> {
        drop(self.agent);
        self.journal.delete(&self.name).await.map(drop)
    }
}

/// Returns the CPU time of all threads of this process in microseconds.
fn cpu() -> Result<f64> {
    let none = |e| Error::new(ErrorKind::Config, "the time of threads is not known: this needs Linux").with_source(e);
    let mut nanoseconds = 0.0;
    for task in fs::read_dir("/proc/self/task").map_err(none)? {
        // A thread may have ended meanwhile.
        let text = fs::read_to_string(task.map_err(none)?.path().join("schedstat")).unwrap_or_default();
        nanoseconds += text.split(' ').next().and_then(|first| first.parse::<f64>().ok()).unwrap_or(0.0);
    }
    Ok(nanoseconds / 1_000.0)
}
