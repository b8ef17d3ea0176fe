//! Where sessions are kept.

use std::{path::PathBuf, sync::Arc, time::Duration};

use agent::{Error, PostgresJournal, Result, SqliteJournal, core::Journal, core::MemoryJournal};

use crate::{cli::Global, output::cannot};

/// Where sessions are kept: what `--store` and `AGENT_STORE` name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    File(PathBuf),
    Postgres(String),
    Memory,
}

impl Place {
    /// What the options name; without one, a file in the user's data directory.
    ///
    /// # Errors
    /// If nothing is named and the user has no such directory.
    pub(crate) fn of(global: &Global) -> Result<Self> {
        let Some(url) = &global.store else { return default_file().map(Self::File) };
        Ok(match url.split_once(':') {
            _ if url == "memory" => Self::Memory,
            Some(("postgres" | "postgresql", _)) => Self::Postgres(url.clone()),
            Some(("sqlite", path)) => Self::File(path.trim_start_matches("//").into()),
            Some((scheme, rest)) if rest.starts_with("//") => {
                let known = "a path, sqlite:PATH, postgres://.. or memory";
                return Err(Error::config(format!("no store is known for '{scheme}://': --store takes {known}")));
            }
            _ => Self::File(url.into()),
        })
    }

    /// Opens it; a file is made if there is none.
    ///
    /// # Errors
    /// Those of the store.
    pub(crate) async fn open(&self) -> Result<Arc<dyn Journal>> {
        self.open_leased(Duration::from_secs(30)).await
    }

    /// As [`open`](Self::open); a process that dies keeps its sessions from others for so long.
    ///
    /// # Errors
    /// Those of the store.
    pub(crate) async fn open_leased(&self, lease: Duration) -> Result<Arc<dyn Journal>> {
        Ok(match self {
            Self::Memory => Arc::new(MemoryJournal::default()),
            Self::Postgres(url) => Arc::new(PostgresJournal::builder(url).lease_ttl(lease).connect().await?),
            Self::File(path) => {
                if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
                    std::fs::create_dir_all(folder).map_err(|e| cannot(folder.display(), e))?;
                }
                Arc::new(SqliteJournal::builder(path).lease_ttl(lease).open()?)
            }
        })
    }

    /// As the user would write it, without a password.
    pub(crate) fn shown(&self) -> String {
        match self {
            Self::File(path) => path.display().to_string(),
            Self::Memory => "memory".into(),
            Self::Postgres(url) => {
                let shown = url.split(['?', '#']).next().unwrap_or_default();
                match (shown.split_once("//"), shown.rsplit_once('@')) {
                    (Some((scheme, _)), Some((_, host))) => format!("{scheme}//{host}"),
                    _ => shown.to_owned(),
                }
            }
        }
    }
}

fn default_file() -> Result<PathBuf> {
    let set = |name| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let data = set("XDG_DATA_HOME").or_else(|| set("HOME").map(|home| home.join(".local/share")));
    let file = data.map(|data| data.join("agent/sessions.db"));
    file.ok_or_else(|| Error::config("there is no HOME to keep sessions in: name a store with --store or AGENT_STORE"))
}

/// A store that is only read: one that is not there is not made.
///
/// # Errors
/// Those of the store, and if there is none.
pub(crate) async fn existing(global: &Global) -> Result<Arc<dyn Journal>> {
    let place = Place::of(global)?;
    match &place {
        Place::File(path) if !path.exists() => {
            Err(Error::config(format!("there is no store '{}': name one with --store", path.display())))
        }
        _ => place.open().await,
    }
}

/// The agent whose side of a session is meant: the one that was named, or the first that came.
///
/// # Errors
/// If there is no such session, with how to list them.
pub(crate) async fn agent_of(journal: &dyn Journal, session: &str, named: Option<&str>) -> Result<Arc<str>> {
    let Some(info) = journal.info(session).await? else {
        return Err(Error::config(format!("there is no session '{session}': `agent sessions` lists those there are")));
    };
    match named {
        Some(name) => Ok(name.into()),
        None => info.agents.first().cloned().ok_or_else(|| Error::config(format!("session '{session}' holds no run"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(url: &str) -> Result<Place> {
        Place::of(&Global { store: Some(url.into()), ..Global::default() })
    }

    #[test]
    fn a_store_is_a_path_or_a_url_and_its_password_is_not_shown() {
        assert_eq!(place("a/b.db").expect("a store"), Place::File("a/b.db".into()));
        assert_eq!(place("sqlite:///tmp/b.db").expect("a store"), Place::File("/tmp/b.db".into()));
        assert_eq!(place("memory").expect("a store"), Place::Memory);
        let postgres = place("postgres://ada:secret@db:5432/agent?password=secret").expect("a store");
        assert_eq!(postgres.shown(), "postgres://db:5432/agent");
        assert!(place("mysql://x").expect_err("it is none").message().contains("postgres://"));
    }
}
