//! Where rules are kept that hold for good.

use std::{
    collections::BTreeMap,
    io::ErrorKind as Io,
    path::{Path, PathBuf},
    sync::{Mutex, PoisonError},
};

use agent_core::{Error, ErrorKind, Result, RunCx};
use async_trait::async_trait;

use super::Rule;

/// Keeps the rules that people laid down for good by their answers.
///
/// Whose rules they are, an implementation takes from the run: the agent at least, since two agents may give one name to
/// different tools.
#[async_trait]
pub trait RuleStore: Send + Sync + 'static {
    /// The rules that hold for the run.
    ///
    /// # Errors
    /// Fails the run: without its rules nothing may be decided.
    async fn load(&self, cx: &RunCx) -> Result<Vec<Rule>>;

    /// Keeps one more.
    ///
    /// # Errors
    /// Fails the run; the call that it was about does not run.
    async fn add(&self, cx: &RunCx, rule: Rule) -> Result<()>;
}

/// A JSON file with rules by the agent's name. Other processes may read it meanwhile; only one should write it.
///
/// ```
/// use agent_middleware::{Approval, permissions::RuleFile};
///
/// let approval = Approval::new().ask("deploy").keep_rules(RuleFile::new("rules.json"));
/// # drop(approval);
/// ```
#[derive(Debug)]
pub struct RuleFile {
    path: PathBuf,
    writing: Mutex<()>,
}

type ByAgent = BTreeMap<String, Vec<Rule>>;

impl RuleFile {
    /// The file at `path`; it is made with its first rule.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into(), writing: Mutex::new(()) }
    }

    fn read(&self) -> Result<ByAgent> {
        match std::fs::read(&self.path) {
            Ok(bytes) => serde_json::from_slice(&bytes).map_err(|e| self.failed("holds no rules", e)),
            Err(e) if e.kind() == Io::NotFound => Ok(ByAgent::new()),
            Err(e) => Err(self.failed("cannot be read", e)),
        }
    }

    fn failed(&self, what: &str, e: impl std::error::Error + Send + Sync + 'static) -> Error {
        Error::new(ErrorKind::Store, format!("the rule file {} {what}", self.path.display())).with_source(e)
    }

    fn write(&self, rules: &ByAgent) -> Result<()> {
        let text = serde_json::to_vec_pretty(rules).map_err(|e| self.failed("cannot be written", e))?;
        let aside = aside(&self.path);
        let written = std::fs::write(&aside, text).and_then(|()| std::fs::rename(&aside, &self.path));
        written.map_err(|e| self.failed("cannot be written", e))
    }
}

/// The name under which the next version is written before it takes the place of this one.
fn aside(path: &Path) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".new");
    path.with_file_name(name)
}

#[async_trait]
impl RuleStore for RuleFile {
    async fn load(&self, cx: &RunCx) -> Result<Vec<Rule>> {
        Ok(self.read()?.remove(&*cx.ids().agent).unwrap_or_default())
    }

    async fn add(&self, cx: &RunCx, rule: Rule) -> Result<()> {
        let _one = self.writing.lock().unwrap_or_else(PoisonError::into_inner);
        let mut rules = self.read()?;
        let of_agent = rules.entry(cx.ids().agent.to_string()).or_default();
        if !of_agent.contains(&rule) {
            of_agent.push(rule);
            self.write(&rules)?;
        }
        Ok(())
    }
}
