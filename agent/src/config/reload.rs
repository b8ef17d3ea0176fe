//! Agents that follow their files.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::{Mutex, PoisonError},
    time::SystemTime,
};

use agent_core::{Error, Result};
use agent_exec::Agent;

use super::{Loader, Problems};

/// An agent that is read again when its files change.
///
/// Runs that are under way keep the agent that they began with. A file that became wrong changes nothing: the last right agent stays,
/// and [`problems`](Self::problems) says what is wrong. There is no thread behind it: the files are looked at when the agent is asked
/// for.
///
/// ```
/// use agent::config::{Loader, Registry, Reloading};
/// use agent::testing::ScriptedModel;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> agent::Result<()> {
/// let folder = tempfile::tempdir().unwrap();
/// let file = folder.path().join("clerk.yaml");
/// std::fs::write(&file, "{name: clerk, model: small}").unwrap();
/// let loader = Loader::new().registry(Registry::builtin().model("small", ScriptedModel::new([])));
/// let clerk = Reloading::open(loader, &file).await?;
/// assert_eq!(clerk.agent().await.name(), "clerk");
///
/// std::fs::write(&file, "{name: head clerk, model: small}").unwrap();
/// assert_eq!(clerk.agent().await.name(), "head clerk");
/// std::fs::write(&file, "{name: nobody, model: none}").unwrap();
/// assert_eq!(clerk.agent().await.name(), "head clerk");
/// assert!(clerk.problems().is_some());
/// # Ok(()) }
/// ```
#[derive(Debug)]
pub struct Reloading {
    loader: Loader,
    path: PathBuf,
    last: Mutex<Last>,
}

#[derive(Debug)]
struct Last {
    agent: Agent,
    seen: Vec<(PathBuf, Stamp)>,
    problems: Option<Problems>,
}

/// What changes when a file does.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Stamp(Option<(SystemTime, u64)>);

impl Reloading {
    /// Reads the file, and opens its store.
    ///
    /// # Errors
    /// As [`Loader::load`] and [`Loaded::into_agent`](super::Loaded::into_agent).
    pub async fn open(loader: Loader, path: impl Into<PathBuf>) -> Result<Self> {
        let path = path.into();
        let loaded = loader.load(&path)?;
        let seen = stamps(loaded.files());
        let agent = loaded.into_agent().await?;
        Ok(Self { loader, path, last: Mutex::new(Last { agent, seen, problems: None }) })
    }

    /// The agent, as its files are now.
    pub async fn agent(&self) -> Agent {
        let (agent, seen) = {
            let last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
            (last.agent.clone(), last.seen.clone())
        };
        let now: Vec<_> = seen.iter().map(|(path, _)| (path.clone(), Stamp::of(path))).collect();
        if now == seen {
            return agent;
        }
        let (next, seen) = match self.loader.load(&self.path) {
            Ok(loaded) => {
                let seen = stamps(loaded.files());
                (loaded.into_agent().await.map_err(Whole::Built), seen)
            }
            Err(problems) => {
                // What is wrong may be mended by a file that was not read before.
                let more = problems.files().iter().filter(|file| !now.iter().any(|(path, _)| path == *file));
                let seen = more.map(|file| (file.clone(), Stamp::of(file))).chain(now.iter().cloned()).collect();
                (Err(Whole::Read(problems)), seen)
            }
        };
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        last.seen = seen;
        match next {
            Ok(next) => {
                last.agent = next;
                last.problems = None;
            }
            Err(Whole::Read(problems)) => last.problems = Some(problems),
            Err(Whole::Built(error)) => last.problems = Some(Problems::of_file(&self.path, error.message())),
        }
        last.agent.clone()
    }

    /// What is wrong with the files since they changed; none if the agent is as they say.
    pub fn problems(&self) -> Option<Problems> {
        self.last.lock().unwrap_or_else(PoisonError::into_inner).problems.clone()
    }
}

/// Where a change failed.
enum Whole {
    Read(Problems),
    Built(Error),
}

fn stamps(files: &[PathBuf]) -> Vec<(PathBuf, Stamp)> {
    files.iter().map(|path| (path.clone(), Stamp::of(path))).collect()
}

impl Stamp {
    fn of(path: &Path) -> Self {
        Self(fs::metadata(path).ok().and_then(|about| Some((about.modified().ok()?, about.len()))))
    }
}
