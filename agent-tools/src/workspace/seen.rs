//! [`Seen`]: what an agent has seen of files.

use std::path::Path;

use agent_core::{Error, GlobalStorage, Result, RunCx};
use serde_json::Value;
use sha2::{Digest, Sha256};

use super::files::{Files, shown};

/// The part of the storage where it is kept: it outlives a run and a restart, as the conversation does that the files were shown in.
const SCOPE: &str = "workspace_seen";

/// Bytes of a digest that are kept.
const KEPT: usize = 12;

/// What an agent has seen of files, so that it does not write over what it has not.
pub(super) struct Seen {
    files: Files,
    storage: GlobalStorage,
    agent_id: String,
}

impl Seen {
    /// What the run's agent has seen of `files`.
    pub(super) fn of(files: &Files, cx: &RunCx) -> Self {
        Self { files: files.clone(), storage: cx.globals().scope(SCOPE), agent_id: cx.ids().agent_id.to_string() }
    }

    /// The agent knows now that this is the file's content.
    pub(super) fn note(&self, path: &Path, content: &[u8]) {
        self.storage.set_value(&self.name(path), digest(content));
    }

    /// Refuses to replace a content that the agent does not know.
    pub(super) fn check(&self, path: &Path, content: &[u8]) -> Result<()> {
        let why = match self.storage.get_value(&self.name(path)) {
            Some(known) if *known == digest(content) => return Ok(()),
            Some(_) => "has changed since you read it: read it again",
            None => "is there already: read it",
        };
        Err(Error::tool(format!(
            "'{}' {why} before you replace it, or change a part of it with edit_file",
            shown(path)
        )))
    }

    /// True if the agent knew another content than this.
    pub(super) fn is_outdated(&self, path: &Path, content: &[u8]) -> bool {
        self.storage.get_value(&self.name(path)).is_some_and(|known| *known != digest(content))
    }

    /// One for each file, whichever link leads to it.
    fn name(&self, path: &Path) -> String {
        let real = self.files.root().canonicalize(path);
        format!("{}:{}", self.agent_id, real.as_deref().unwrap_or(path).display())
    }
}

fn digest(content: &[u8]) -> Value {
    Sha256::digest(content)[..KEPT].iter().map(|byte| format!("{byte:02x}")).collect::<String>().into()
}
