//! Agents that follow their files.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::{Mutex, MutexGuard, PoisonError},
    time::SystemTime,
};

use agent_core::Result;
use agent_exec::Agent;

use super::{Loaded, Loader, Problems};

/// An agent that is read again when its files change.
///
/// Active runs keep the agent that they started with. An invalid file changes nothing: the last valid agent stays,
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
    last: Mutex<Last>,
}

#[derive(Debug)]
struct Last {
    agent: Agent,
    files: Watched,
    problems: Option<Problems>,
}

impl Reloading {
    /// Reads the file, and opens its store.
    ///
    /// # Errors
    /// As [`Loader::load`] and [`Loaded::into_agent`].
    pub async fn open(loader: Loader, path: impl Into<PathBuf>) -> Result<Self> {
        let (loaded, files) = Watched::open(loader, path)?;
        let agent = loaded.into_agent().await?;
        Ok(Self { last: Mutex::new(Last { agent, files, problems: None }) })
    }

    /// The agent, as its files are now.
    pub async fn agent(&self) -> Agent {
        let (changed, path) = {
            let mut last = self.last();
            let Some(changed) = last.files.changed() else { return last.agent.clone() };
            (changed, last.files.path.clone())
        };
        let next = match changed {
            Ok(loaded) => loaded.into_agent().await.map_err(|error| Problems::of_file(&path, error.message())),
            Err(problems) => Err(problems),
        };
        let mut last = self.last();
        match next {
            Ok(next) => {
                last.agent = next;
                last.problems = None;
            }
            Err(problems) => last.problems = Some(problems),
        }
        last.agent.clone()
    }

    /// Problems of the changed files; `None` if the agent is up to date.
    pub fn problems(&self) -> Option<Problems> {
        self.last().problems.clone()
    }

    fn last(&self) -> MutexGuard<'_, Last> {
        self.last.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The files that an agent is made of, which are read again when one of them changes or comes to be.
///
/// For those who need more than [`Reloading`] gives: the [`Loaded`] file, to build the agent from it in their own way.
///
/// ```
/// use agent::config::{Loader, Watched};
///
/// let folder = tempfile::tempdir().unwrap();
/// let file = folder.path().join("clerk.yaml");
/// std::fs::write(&file, "{name: clerk, model: 'offline:any'}").unwrap();
/// let (loaded, mut files) = Watched::open(Loader::new(), &file)?;
/// assert_eq!(loaded.definition().name, "clerk");
/// assert!(files.changed().is_none());
///
/// std::fs::write(&file, "{name: clerk, modle: 'offline:any'}").unwrap();
/// let problems = files.changed().expect("it changed").expect_err("it is wrong");
/// assert!(problems.to_string().contains("clerk.yaml:1:15"), "{problems}");
/// assert!(files.changed().is_none(), "each change is returned once");
/// # Ok::<(), agent::Error>(())
/// ```
#[derive(Debug)]
pub struct Watched {
    loader: Loader,
    path: PathBuf,
    seen: Vec<(PathBuf, Stamp)>,
}

impl Watched {
    /// Reads the file.
    ///
    /// # Errors
    /// As [`Loader::load`].
    pub fn open(loader: Loader, path: impl Into<PathBuf>) -> Result<(Loaded, Self), Problems> {
        let path = path.into();
        let loaded = loader.load(&path)?;
        let seen = stamps(loaded.files());
        Ok((loaded, Self { loader, path, seen }))
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the changed agent, or the problems of its files; `None` unless one of them changed since the last call.
    pub fn changed(&mut self) -> Option<Result<Loaded, Problems>> {
        let now: Vec<_> = self.seen.iter().map(|(path, _)| (path.clone(), Stamp::of(path))).collect();
        if now == self.seen {
            return None;
        }
        let read = self.loader.load(&self.path);
        // A file that changes while it is read is found changed the next time.
        let before = |path: &PathBuf| {
            let known = now.iter().find(|(known, _)| known == path);
            known.cloned().unwrap_or_else(|| (path.clone(), Stamp::of(path)))
        };
        self.seen = match &read {
            Ok(loaded) => loaded.files().iter().map(before).collect(),
            // A file that was not read before may fix the problem.
            Err(problems) => {
                let more = problems.files().iter().filter(|file| !now.iter().any(|(path, _)| path == *file));
                more.map(before).chain(now.iter().cloned()).collect()
            }
        };
        Some(read)
    }
}

/// State that determines whether a file changed.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Stamp(Option<(SystemTime, u64)>);

fn stamps(files: &[PathBuf]) -> Vec<(PathBuf, Stamp)> {
    files.iter().map(|path| (path.clone(), Stamp::of(path))).collect()
}

impl Stamp {
    fn of(path: &Path) -> Self {
        Self(fs::metadata(path).ok().and_then(|about| Some((about.modified().ok()?, about.len()))))
    }
}
