//! Programs in sandboxes.

#![cfg(target_os = "linux")]

#[cfg(feature = "container")]
mod container;
#[cfg(feature = "container")]
use crate::support::containers;
#[cfg(feature = "e2b")]
mod e2b;
#[cfg(feature = "e2b")]
mod e2b_hostile;
mod escape;
mod running;
#[cfg(feature = "e2b")]
use crate::support::e2b as service;
mod suite;
mod variables;
mod whole;

use std::{
    path::Path,
    time::{Duration, Instant},
};

use agent_tools::sandbox::{Command, Exit, Isolation, LocalSandbox, LocalSandboxBuilder, Sandbox};
use tempfile::TempDir;
use tokio::time::timeout;

/// Upper bound of the run time of the tests' programs on a busy machine.
const LONGEST: Duration = Duration::from_secs(60);

/// Sandbox `root` beside a directory `host` outside it.
struct Place {
    dir: TempDir,
    sandbox: LocalSandbox,
}

impl Place {
    fn new(isolation: Isolation, set: impl FnOnce(LocalSandboxBuilder) -> LocalSandboxBuilder) -> Self {
        let dir = tempfile::tempdir().expect("a directory");
        for name in ["root", "host"] {
            std::fs::create_dir(dir.path().join(name)).expect("creates");
        }
        let builder = LocalSandbox::builder(dir.path().join("root")).isolation(isolation);
        let sandbox = set(builder).build().expect("works here");
        Self { dir, sandbox }
    }

    fn host(&self) -> &Path {
        self.dir.path()
    }

    /// Runs a line of shell; returns its output and exit status.
    async fn run(&self, line: &str) -> (String, Exit) {
        run(&self.sandbox, Command::shell(line)).await
    }
}

/// Waits until nothing writes to this file any more.
fn rests(beat: &Path, what: &str) {
    let written = || std::fs::metadata(beat).and_then(|beat| beat.modified()).ok();
    let began = Instant::now();
    loop {
        let before = written();
        std::thread::sleep(Duration::from_millis(300));
        if written() == before {
            return;
        }
        assert!(began.elapsed() < Duration::from_secs(50), "{what}: it still beats");
    }
}

async fn run(sandbox: &dyn Sandbox, command: Command) -> (String, Exit) {
    let running = async {
        let mut process = sandbox.start(command).await.expect("starts");
        drop(process.take_input());
        let mut all = Vec::new();
        while let Some(piece) = process.output().await {
            all.extend_from_slice(&piece);
        }
        (String::from_utf8_lossy(&all).into_owned(), process.exit().await.expect("ends"))
    };
    timeout(LONGEST, running).await.expect("ends in time")
}

/// Returns the isolation backends that work on this machine.
fn isolations() -> Vec<Isolation> {
    let dir = tempfile::tempdir().expect("a directory");
    let works = |isolation: &Isolation| match LocalSandbox::builder(dir.path()).isolation(*isolation).build() {
        Ok(_) => true,
        Err(refused) => {
            println!("skipped: {refused}");
            false
        }
    };
    [Isolation::Bubblewrap, Isolation::Landlock].into_iter().filter(works).collect()
}
