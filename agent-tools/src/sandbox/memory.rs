//! [`MemorySandbox`].

use std::{
    collections::BTreeMap,
    fmt,
    path::{Component, Path},
    sync::{Arc, Mutex, PoisonError},
};

use agent_core::{Error, Result, async_trait};
use bytes::Bytes;

use super::{Command, Exit, Guarantees, Process, Sandbox};

type Program = dyn Fn(&Command) -> (String, Exit) + Send + Sync;

/// A sandbox for tests: files in memory, and programs that are functions. It touches nothing of the machine.
#[derive(Clone)]
pub struct MemorySandbox {
    files: Arc<Mutex<BTreeMap<String, Bytes>>>,
    programs: BTreeMap<String, Arc<Program>>,
    guarantees: Guarantees,
}

impl MemorySandbox {
    /// An empty one, without programs.
    pub fn new() -> Self {
        let guarantees = Guarantees {
            files: true,
            network: true,
            processes: true,
            process_count: true,
            memory: true,
            no_survivors: true,
            ..Guarantees::none("nothing runs but functions of the test")
        };
        Self { files: Arc::default(), programs: BTreeMap::new(), guarantees }
    }

    /// Adds a program: what it writes, and how it ends. A shell is the program `sh`.
    #[must_use]
    pub fn program(
        mut self,
        name: impl Into<String>,
        run: impl Fn(&Command) -> (String, Exit) + Send + Sync + 'static,
    ) -> Self {
        self.programs.insert(name.into(), Arc::new(run));
        self
    }
}

impl Default for MemorySandbox {
    fn default() -> Self {
        Self::new()
    }
}

#[async_trait]
impl Sandbox for MemorySandbox {
    async fn start(&self, command: Command) -> Result<Process> {
        let (output, exit) = match self.programs.get(&command.program) {
            Some(run) => run(&command),
            None => (format!("{}: not found\n", command.program), Exit::code(127)),
        };
        let (process, driver) = Process::new(|| {});
        if !output.is_empty() {
            driver.output.try_send(output.into()).expect("the channel is new");
        }
        driver.exit.send(exit).expect("the process is held");
        Ok(process)
    }

    async fn read(&self, path: &str) -> Result<Bytes> {
        let files = self.files.lock().unwrap_or_else(PoisonError::into_inner);
        files.get(&name(path)?).cloned().ok_or_else(|| Error::tool(format!("'{path}' does not exist")))
    }

    async fn write(&self, path: &str, content: Bytes) -> Result<()> {
        self.files.lock().unwrap_or_else(PoisonError::into_inner).insert(name(path)?, content);
        Ok(())
    }

    fn temp_dir(&self) -> &str {
        "/tmp"
    }

    fn guarantees(&self) -> &Guarantees {
        &self.guarantees
    }
}

/// One name for each file, whichever way its path is written.
fn name(path: &str) -> Result<String> {
    let mut parts = Vec::new();
    for component in Path::new(path).components() {
        match component {
            Component::ParentDir if parts.pop().is_none() => {
                return Err(Error::tool(format!("'{path}' is outside the sandbox")));
            }
            Component::Normal(part) => parts.push(part.to_string_lossy()),
            Component::ParentDir | Component::CurDir | Component::RootDir | Component::Prefix(_) => {}
        }
    }
    Ok(parts.join("/"))
}

impl fmt::Debug for MemorySandbox {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemorySandbox").field("programs", &self.programs.keys()).finish_non_exhaustive()
    }
}
