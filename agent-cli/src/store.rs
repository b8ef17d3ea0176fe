//! Stores of sessions.

use std::{path::PathBuf, sync::Arc};

use agent::{Error, Message, Result, config::StoreAddress, core::Journal, journal::SessionInfo};

use crate::{cli::Global, load::loader};

/// The Restate server whose sessions `--store` and `AGENT_STORE` name, which are only read.
#[cfg(feature = "serve")]
fn restate(global: &Global) -> Option<crate::engine::RestateAddress> {
    match global.store.as_deref()?.parse() {
        Ok(crate::engine::Engine::Restate(restate)) => Some(restate),
        _ => None,
    }
}

/// The store that `--store` and `AGENT_STORE` name; without one, that of the agent's file, or a file in the user's data directory.
///
/// # Errors
/// An invalid address, or no address and no data directory of the user.
pub(crate) fn address(global: &Global, of_file: Option<&StoreAddress>) -> Result<StoreAddress> {
    #[cfg(feature = "serve")]
    if restate(global).is_some() {
        return Err(Error::config(
            "sessions of Restate are read-only here; run agents with: agent serve FILE --engine restate://..",
        ));
    }
    match (&global.store, of_file) {
        (Some(address), _) => address.parse(),
        (None, Some(of_file)) => Ok(of_file.clone()),
        (None, None) => default_file().map(StoreAddress::Sqlite),
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
/// Errors of the store, and a missing store.
pub(crate) async fn existing(global: &Global) -> Result<Arc<dyn Journal>> {
    #[cfg(feature = "serve")]
    if let Some(restate) = restate(global) {
        return Ok(Arc::new(restate.journal()?));
    }
    let of_file = match (&global.store, &global.file) {
        (None, Some(file)) => loader(global).store(file)?,
        _ => None,
    };
    let address = address(global, of_file.as_ref())?;
    match &address {
        StoreAddress::Sqlite(path) if !path.exists() => {
            Err(Error::config(format!("there is no store '{}': name one with --store", path.display())))
        }
        _ => address.open().await,
    }
}

/// Returns the address of the store, for people.
///
/// # Errors
/// An invalid address.
pub(crate) fn shown(global: &Global) -> Result<String> {
    #[cfg(feature = "serve")]
    if let Some(restate) = restate(global) {
        return Ok(format!("the Restate server {restate:?}"));
    }
    Ok(address(global, None)?.to_string())
}

/// Returns the title of a session, or else the first message of the user.
///
/// # Errors
/// Those of the store.
pub(crate) async fn title(journal: &dyn Journal, session: &str, info: &SessionInfo) -> Result<String> {
    if let Some(title) = &info.title {
        return Ok(title.clone());
    }
    let index = journal.whole_index(session).await?;
    let first = |agent: &Arc<str>| {
        index.look(|index| {
            let history = index.history(agent);
            history.iter().find(|message| matches!(message, Message::User(_))).map(Message::text)
        })
    };
    Ok(info.agents.iter().find_map(first).unwrap_or_default())
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
