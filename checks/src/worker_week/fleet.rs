//! Worker processes and their reports.

use std::{
    collections::HashMap,
    fs,
    io::{self, BufRead, BufReader},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::{Arc, Mutex, PoisonError},
    thread,
};

use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};

use super::NAME;
use crate::worker_kill::database::Database;

/// Start time of each step of each run, in microseconds since the Unix epoch, with the step number.
type Steps = Arc<Mutex<HashMap<String, Vec<(usize, u64)>>>>;

/// Running workers.
pub(super) struct Fleet {
    children: Vec<Child>,
    dir: PathBuf,
    url: String,
    steps: Steps,
}

impl Fleet {
    pub(super) fn start(number: usize, dir: &Path, database: &Database) -> io::Result<Self> {
        let url = database.url(database.port());
        let mut fleet = Self { children: Vec::new(), dir: dir.to_owned(), url, steps: Steps::default() };
        for _ in 0..number.max(1) {
            let child = fleet.spawn()?;
            fleet.children.push(child);
        }
        Ok(fleet)
    }

    pub(super) fn number(&self) -> usize {
        self.children.len()
    }

    pub(super) fn dir(&self) -> &Path {
        &self.dir
    }

    /// Starts a replacement for a worker, then signals the old one to shut down, which brings its
    /// runs to a safe point; waits for its end.
    pub(super) async fn replace(&mut self, at: usize) -> io::Result<()> {
        let pid = i32::try_from(self.children[at].id()).map_err(io::Error::other)?;
        let new = self.spawn()?;
        let mut old = std::mem::replace(&mut self.children[at], new);
        let told = kill(Pid::from_raw(pid), Signal::SIGTERM);
        tokio::task::spawn_blocking(move || old.wait()).await??;
        Ok(told?)
    }

    /// Returns the memory of each worker in KiB.
    pub(super) fn memory(&self) -> Vec<u64> {
        let of = |child: &Child| {
            let status = fs::read_to_string(format!("/proc/{}/status", child.id())).ok()?;
            status.lines().find_map(|line| line.strip_prefix("VmRSS:")?.trim().strip_suffix(" kB")?.parse().ok())
        };
        self.children.iter().map(|child| of(child).unwrap_or_default()).collect()
    }

    /// Returns the start time of a run's step; `None` if it has not started.
    pub(super) fn began(&self, run: &str, step: usize) -> Option<u64> {
        let steps = self.steps.lock().unwrap_or_else(PoisonError::into_inner);
        steps.get(run)?.iter().find(|(number, _)| *number == step).map(|(_, at)| *at)
    }

    /// Returns the start times of the steps of all runs with this id prefix.
    pub(super) fn steps(&self, prefix: &str) -> Vec<Vec<(usize, u64)>> {
        let steps = self.steps.lock().unwrap_or_else(PoisonError::into_inner);
        steps.iter().filter(|(run, _)| run.starts_with(prefix)).map(|(_, steps)| steps.clone()).collect()
    }

    fn spawn(&self) -> io::Result<Child> {
        let mut command = Command::new(std::env::current_exe()?);
        command.arg(NAME).arg("--child").arg(&self.dir).args(["--url", &self.url]);
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn()?;
        let stdout = child.stdout.take().ok_or_else(|| io::Error::other("the worker has no output"))?;
        let steps = self.steps.clone();
        drop(thread::spawn(move || read(BufReader::new(stdout), &steps)));
        Ok(child)
    }
}

impl Drop for Fleet {
    fn drop(&mut self) {
        for child in &mut self.children {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

fn read(lines: impl BufRead, steps: &Steps) {
    for line in lines.lines().map_while(Result::ok) {
        let words: Vec<_> = line.split_ascii_whitespace().collect();
        if let ["step", run, step, at] = words[..]
            && let (Ok(step), Ok(at)) = (step.parse(), at.parse())
        {
            let mut steps = steps.lock().unwrap_or_else(PoisonError::into_inner);
            steps.entry(run.to_owned()).or_default().push((step, at));
        }
    }
}
