//! Worker processes.

use std::{
    io::{self, BufRead, BufReader},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::{Arc, PoisonError},
    thread,
    time::Duration,
};

use agent::{Error, PostgresJournal, PostgresQueue, Result, Worker, model::Backoff};
use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};

use super::{Acknowledged, LEASE, NAME};
use crate::kill_test::{child::Watched, counter::Counter, moments::Moments, world};

/// Works until it is killed.
pub(super) async fn live(dir: &Path, url: &str) -> Result<()> {
    let counter = Counter::open(dir).map_err(|e| Error::config("no counter").with_source(e))?;
    let (journal, queue) = loop {
        // The database may be down.
        match open(url).await {
            Ok(opened) => break opened,
            Err(_) => tokio::time::sleep(Duration::from_millis(200)).await,
        }
    };
    let moments = Moments::new(None);
    let agent = world::tree(Watched::new(Arc::new(journal), moments.clone()), &counter, &moments)?;
    // After any fault, each run must end.
    let again =
        Backoff::new().retries(u32::MAX).initial_delay(Duration::from_millis(50)).max_delay(Duration::from_millis(500));
    let worker = Worker::builder(Arc::new(queue)).agent(agent).at_once(4).lease(LEASE).attempts(again);
    worker.poll(Duration::from_millis(200)).build()?.run_until(std::future::pending()).await;
    Ok(())
}

async fn open(url: &str) -> Result<(PostgresJournal, PostgresQueue)> {
    Ok((PostgresJournal::builder(url).lease_ttl(LEASE).connect().await?, PostgresQueue::builder(url).connect().await?))
}

/// Running workers.
pub(super) struct Workers {
    children: Vec<Child>,
    dir: PathBuf,
    url: String,
    acknowledged: Acknowledged,
}

impl Workers {
    pub(super) fn start(number: usize, dir: &Path, url: &str, acknowledged: Acknowledged) -> io::Result<Self> {
        let mut workers = Self { children: Vec::new(), dir: dir.to_owned(), url: url.to_owned(), acknowledged };
        for _ in 0..number.max(1) {
            let child = workers.spawn()?;
            workers.children.push(child);
        }
        Ok(workers)
    }

    pub(super) fn number(&self) -> usize {
        self.children.len()
    }

    /// Kills one, and starts another in its place.
    pub(super) fn kill(&mut self, at: usize) -> io::Result<()> {
        let child = &mut self.children[at];
        child.kill()?;
        child.wait()?;
        self.children[at] = self.spawn()?;
        Ok(())
    }

    /// Stops or continues one.
    pub(super) fn freeze(&self, at: usize, stops: bool) {
        let signal = if stops { Signal::SIGSTOP } else { Signal::SIGCONT };
        if let Ok(pid) = i32::try_from(self.children[at].id()) {
            let _ = kill(Pid::from_raw(pid), signal); // an ended worker is found by its kill
        }
    }

    pub(super) fn end(mut self) {
        for child in &mut self.children {
            let _ = child.kill();
            let _ = child.wait();
        }
    }

    fn spawn(&self) -> io::Result<Child> {
        let mut command = Command::new(std::env::current_exe()?);
        command.arg(NAME).arg("--child").arg(&self.dir).args(["--url", &self.url]);
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn()?;
        let stdout = child.stdout.take().ok_or_else(|| io::Error::other("the worker has no output"))?;
        let acknowledged = self.acknowledged.clone();
        drop(thread::spawn(move || read(BufReader::new(stdout), &acknowledged)));
        Ok(child)
    }
}

/// Reads the report of a worker until it ends. A truncated last line is ignored.
fn read(mut lines: impl BufRead, acknowledged: &Acknowledged) {
    let mut line = String::new();
    while lines.read_line(&mut line).is_ok_and(|n| n > 0) && line.ends_with('\n') {
        let words: Vec<_> = line.split_ascii_whitespace().collect();
        if let ["ack", session, seq, digest] = words[..]
            && let (Ok(seq), Ok(digest)) = (seq.parse(), digest.parse())
        {
            let mut all = acknowledged.lock().unwrap_or_else(PoisonError::into_inner);
            all.entry(session.to_owned()).or_default().insert(seq, digest);
        }
        line.clear();
    }
}
