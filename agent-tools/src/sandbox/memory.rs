//! [`MemorySandbox`].

use std::{
    collections::BTreeMap,
    fmt,
    io::{self, Read},
    path::{Component, Path},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use agent_core::{Error, Result, async_trait, run::new_id};
use bytes::Bytes;

use super::{
    Command, Copied, Entry, EntryKind, Exit, Guarantees, LARGEST_FILE, Process, Sandbox,
    tree::{self, Folder, Sink, Tally, uncopied},
};
use crate::blocking::blocking;

type Files = BTreeMap<String, Bytes>;

type Program = dyn Fn(&Command) -> (String, Exit) + Send + Sync;

/// Sandbox for tests: files in memory, and functions as programs. It accesses nothing of the
/// machine.
#[derive(Clone)]
pub struct MemorySandbox {
    files: Arc<Mutex<Files>>,
    /// Snapshots by name.
    snapshots: Arc<Mutex<BTreeMap<String, Files>>>,
    programs: BTreeMap<String, Arc<Program>>,
    guarantees: Guarantees,
}

impl MemorySandbox {
    /// Creates an empty sandbox without programs.
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
        Self { files: Arc::default(), snapshots: Arc::default(), programs: BTreeMap::new(), guarantees }
    }

    /// Adds a program: a function from a command to output and exit status. A shell is the
    /// program `sh`.
    #[must_use]
    pub fn program(
        mut self,
        name: impl Into<String>,
        run: impl Fn(&Command) -> (String, Exit) + Send + Sync + 'static,
    ) -> Self {
        self.programs.insert(name.into(), Arc::new(run));
        self
    }

    /// Creates a sandbox with the same programs and the files of a [snapshot](Sandbox::snapshot) of
    /// this one or its clones.
    ///
    /// # Errors
    /// [`ErrorKind::Config`](agent_core::ErrorKind::Config) if the snapshot does not exist.
    pub fn restored(&self, snapshot: &str) -> Result<Self> {
        let found = self.snapshots.lock().unwrap_or_else(PoisonError::into_inner).get(snapshot).cloned();
        let files = found.ok_or_else(|| Error::config(format!("the sandbox has no snapshot '{snapshot}'")))?;
        Ok(Self { files: Arc::new(Mutex::new(files)), ..self.clone() })
    }

    fn put(&self, path: &str, content: Bytes) -> Result<()> {
        super::check_size(path, content.len())?;
        let name = name(path)?;
        let mut files = self.files();
        let above = name.match_indices('/').map(|(end, _)| &name[..end]).find(|above| files.contains_key(*above));
        if let Some(above) = above {
            return Err(Error::tool(format!("'{path}' cannot be used: '{above}' is a file")));
        }
        if is_folder(&files, &name) {
            return Err(Error::tool(format!("'{path}' cannot be used: it is a directory")));
        }
        files.insert(name, content);
        Ok(())
    }

    fn files(&self) -> MutexGuard<'_, Files> {
        self.files.lock().unwrap_or_else(PoisonError::into_inner)
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
        let name = name(path)?;
        let files = self.files();
        let why = if is_folder(&files, &name) { "is a directory" } else { "does not exist" };
        files.get(&name).cloned().ok_or_else(|| Error::tool(format!("'{path}' {why}")))
    }

    async fn write(&self, path: &str, content: Bytes) -> Result<()> {
        self.put(path, content)
    }

    async fn list(&self, path: &str) -> Result<Vec<Entry>> {
        let name = name(path)?;
        let files = self.files();
        if !is_folder(&files, &name) {
            let why = if files.contains_key(&name) { "is no directory" } else { "does not exist" };
            return Err(Error::tool(format!("'{path}' {why}")));
        }
        let mut entries: Vec<Entry> = Vec::new();
        for (path, content) in files.iter() {
            let Some(below) = below(path, &name) else { continue };
            let entry = match below.split_once('/') {
                None => Entry::file(below, content.len() as u64),
                Some((folder, _)) => Entry::new(folder, EntryKind::Folder),
            };
            // Entries of one folder are adjacent.
            if entries.last() != Some(&entry) {
                entries.push(entry);
            }
        }
        Ok(entries)
    }

    async fn stat(&self, path: &str) -> Result<Option<Entry>> {
        let name = name(path)?;
        let files = self.files();
        let last = name.rsplit('/').next().unwrap_or_default();
        let folder = || is_folder(&files, &name).then(|| Entry::new(last, EntryKind::Folder));
        Ok(files.get(&name).map(|content| Entry::file(last, content.len() as u64)).or_else(folder))
    }

    async fn remove(&self, path: &str) -> Result<()> {
        let removed = self.files().remove(&name(path)?);
        removed.map(drop).ok_or_else(|| Error::tool(format!("'{path}' is no file that is there")))
    }

    async fn upload(&self, from: &Path, to: &str) -> Result<Copied> {
        let (from, sandbox, folder) = (tree::open(from, false)?, self.clone(), name(to)?);
        blocking(move || tree::walk(&from, &mut Held { sandbox, folder }).map_err(|e| uncopied(&e))).await
    }

    async fn download(&self, from: &str, to: &Path) -> Result<Copied> {
        let folder = name(from)?;
        let files = self.files().clone();
        if !is_folder(&files, &folder) {
            return Err(Error::tool(format!("'{from}' is no directory of the sandbox")));
        }
        let mut to = Folder::new(tree::open(to, true)?);
        let copy = move || {
            let mut tally = Tally::new();
            for (path, content) in files.iter().filter_map(|(path, content)| Some((below(path, &folder)?, content))) {
                let path = Path::new(path);
                let above: Vec<_> = path.ancestors().skip(1).filter(|above| !above.as_os_str().is_empty()).collect();
                above.into_iter().rev().try_for_each(|above| to.folder(above, 0o755))?;
                tally.file(content.len() as u64)?;
                to.file(path, 0o644, content.len() as u64, &mut &content[..])?;
            }
            to.finish().map(|()| tally.copied())
        };
        blocking(move || copy().map_err(|e: io::Error| uncopied(&e))).await
    }

    async fn pause(&self) -> Result<()> {
        Ok(())
    }

    async fn resume(&self) -> Result<()> {
        Ok(())
    }

    /// Pass the name to [`restored`](Self::restored). The snapshot is dropped with the last clone.
    async fn snapshot(&self) -> Result<String> {
        let (name, files) = (new_id(), self.files().clone());
        self.snapshots.lock().unwrap_or_else(PoisonError::into_inner).insert(name.clone(), files);
        Ok(name)
    }

    fn root(&self) -> &str {
        "/"
    }

    fn temp_dir(&self) -> &str {
        "/tmp"
    }

    fn guarantees(&self) -> &Guarantees {
        &self.guarantees
    }
}

/// Target folder of copies. Empty folders do not exist here.
struct Held {
    sandbox: MemorySandbox,
    folder: String,
}

impl Sink for Held {
    fn folder(&mut self, _: &Path, _: u32) -> io::Result<()> {
        Ok(())
    }

    fn file(&mut self, path: &Path, _: u32, size: u64, content: &mut dyn Read) -> io::Result<()> {
        let mut bytes = Vec::new();
        content.take(size.min(LARGEST_FILE + 1)).read_to_end(&mut bytes)?;
        let path = format!("{}/{}", self.folder, path.display());
        self.sandbox.put(&path, bytes.into()).map_err(io::Error::other)
    }
}

/// Returns true for the root, and for every parent of a file.
fn is_folder(files: &Files, name: &str) -> bool {
    name.is_empty() || files.range(format!("{name}/")..).next().is_some_and(|(path, _)| below(path, name).is_some())
}

/// Returns the rest of a path below a folder.
fn below<'a>(path: &'a str, folder: &str) -> Option<&'a str> {
    if folder.is_empty() { Some(path) } else { path.strip_prefix(folder)?.strip_prefix('/') }
}

/// Normalises a path, so that each file has one name.
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
