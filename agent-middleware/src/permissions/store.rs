//! Storage of permanent rules.

use std::{
    collections::BTreeMap,
    fs::{self, File},
    io::{self, ErrorKind as Io, Write},
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
};

use agent_core::{Error, ErrorKind, Result, RunCx};
use async_trait::async_trait;

use super::Rule;

/// Stores the rules that people made permanent with their answers.
///
/// An implementation derives the owner of the rules from the run. It must distinguish at least by
/// agent, since two agents may use the same name for different tools.
#[async_trait]
pub trait RuleStore: Send + Sync + 'static {
    /// Returns the rules that apply to the run.
    ///
    /// # Errors
    /// An error fails the run: without its rules nothing may be decided.
    async fn load(&self, cx: &RunCx) -> Result<Vec<Rule>>;

    /// Adds a rule.
    ///
    /// # Errors
    /// An error fails the run; the call in question does not run.
    async fn add(&self, cx: &RunCx, rule: Rule) -> Result<()>;
}

/// A JSON file with rules by the agent's name. Other processes may read it concurrently; only one
/// should write it.
///
/// ```
/// use agent_middleware::{Approval, permissions::RuleFile};
///
/// let approval = Approval::new().ask("deploy").keep_rules(RuleFile::new("rules.json"));
/// # drop(approval);
/// ```
#[derive(Debug)]
pub struct RuleFile {
    kept: Arc<Kept>,
}

/// The file, shared with the threads on which file operations may block.
#[derive(Debug)]
struct Kept {
    path: PathBuf,
    writing: Mutex<()>,
}

type ByAgent = BTreeMap<String, Vec<Rule>>;

impl RuleFile {
    /// Uses the file at `path`; it is created with its first rule.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self { kept: Arc::new(Kept { path: path.into(), writing: Mutex::new(()) }) }
    }

    async fn with<T: Send + 'static>(&self, work: impl FnOnce(&Kept) -> Result<T> + Send + 'static) -> Result<T> {
        let kept = self.kept.clone();
        let stopped = |e| self.kept.failed("cannot be reached", e);
        tokio::task::spawn_blocking(move || work(&kept)).await.map_err(stopped)?
    }
}

impl Kept {
    fn read(&self) -> Result<ByAgent> {
        match fs::read(&self.path) {
            Ok(bytes) => serde_json::from_slice(&bytes).map_err(|e| self.failed("holds no rules", e)),
            Err(e) if e.kind() == Io::NotFound => Ok(ByAgent::new()),
            Err(e) => Err(self.failed("cannot be read", e)),
        }
    }

    fn add(&self, agent: String, rule: Rule) -> Result<()> {
        let _one = self.writing.lock().unwrap_or_else(PoisonError::into_inner);
        let mut rules = self.read()?;
        let of_agent = rules.entry(agent).or_default();
        if of_agent.contains(&rule) {
            return Ok(());
        }
        of_agent.push(rule);
        let text = serde_json::to_vec_pretty(&rules).map_err(|e| self.failed("cannot be written", e))?;
        replace(&self.path, &text).map_err(|e| self.failed("cannot be written", e))
    }

    fn failed(&self, what: &str, e: impl std::error::Error + Send + Sync + 'static) -> Error {
        Error::new(ErrorKind::Store, format!("the rule file {} {what}", self.path.display())).with_source(e)
    }
}

/// Replaces the file atomically: readers see either the old or the new content, even after a power
/// failure.
fn replace(path: &Path, content: &[u8]) -> io::Result<()> {
    let mut aside = path.file_name().unwrap_or_default().to_owned();
    aside.push(".new");
    let aside = path.with_file_name(aside);
    let mut file = File::create(&aside)?;
    file.write_all(content)?;
    file.sync_all()?;
    fs::rename(&aside, path)?;
    sync_directory(path)
}

/// Makes the file's name durable. On platforms other than Unix, a directory cannot be opened, and
/// need not be.
#[cfg(unix)]
fn sync_directory(path: &Path) -> io::Result<()> {
    let directory = path.parent().filter(|directory| !directory.as_os_str().is_empty());
    File::open(directory.unwrap_or(Path::new(".")))?.sync_all()
}

#[cfg(not(unix))]
fn sync_directory(_: &Path) -> io::Result<()> {
    Ok(())
}

#[async_trait]
impl RuleStore for RuleFile {
    async fn load(&self, cx: &RunCx) -> Result<Vec<Rule>> {
        let agent = cx.ids().agent.to_string();
        self.with(move |kept| Ok(kept.read()?.remove(&agent).unwrap_or_default())).await
    }

    async fn add(&self, cx: &RunCx, rule: Rule) -> Result<()> {
        let agent = cx.ids().agent.to_string();
        self.with(move |kept| kept.add(agent, rule)).await
    }
}
