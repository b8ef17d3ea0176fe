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
use serde_json::json;

use super::Rule;

/// Stores the rules that people made permanent with their answers.
///
/// An implementation derives the owner of the rules from the run. It must distinguish by agent, since
/// two agents may use the same name for different tools, and by user, since one person's decision
/// is not another's.
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

/// A JSON file with rules, separate for each agent and each [user](agent_core::RunIds::user) of its
/// runs. Rules of runs without a user are stored under the agent's name alone. Other processes may
/// read the file concurrently; only one should write it.
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

/// Key of the rules that apply to a run: the agent's name, with the user of the run.
fn owner(cx: &RunCx) -> String {
    let ids = cx.ids();
    match &ids.user {
        None => ids.agent.to_string(),
        // JSON keeps the parts apart, whatever they contain.
        Some(user) => json!([ids.agent, user]).to_string(),
    }
}

type ByOwner = BTreeMap<String, Vec<Rule>>;

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
    fn read(&self) -> Result<ByOwner> {
        match fs::read(&self.path) {
            Ok(bytes) => serde_json::from_slice(&bytes).map_err(|e| self.failed("holds no rules", e)),
            Err(e) if e.kind() == Io::NotFound => Ok(ByOwner::new()),
            Err(e) => Err(self.failed("cannot be read", e)),
        }
    }

    fn add(&self, owner: String, rule: Rule) -> Result<()> {
        let _one = self.writing.lock().unwrap_or_else(PoisonError::into_inner);
        let mut rules = self.read()?;
        let of_owner = rules.entry(owner).or_default();
        if of_owner.contains(&rule) {
            return Ok(());
        }
        of_owner.push(rule);
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
        let owner = owner(cx);
        self.with(move |kept| Ok(kept.read()?.remove(&owner).unwrap_or_default())).await
    }

    async fn add(&self, cx: &RunCx, rule: Rule) -> Result<()> {
        let owner = owner(cx);
        self.with(move |kept| kept.add(owner, rule)).await
    }
}
