//! [`Seen`]: records which file contents agents have read.

use std::{
    collections::HashMap,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
};

use agent_core::{Error, Result, RunCx};
use sha2::{Digest, Sha256};

use super::{Files, shown};

/// Maximum of entries, in this process. Beyond it, all entries are dropped. As after a restart,
/// agents must then read a file again before they replace it.
const MOST: usize = 10_000;

/// Known contents, by session, agent and real path.
pub(crate) type Known = Mutex<HashMap<(Arc<str>, Arc<str>, PathBuf), Content>>;

#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Content {
    digest: [u8; 32],
    /// Step whose calls showed the content: the model sees it only in the next step. `None` for
    /// content that the agent wrote.
    shown_in: Option<(Arc<str>, u32)>,
}

/// Contents known to one agent, so that it does not overwrite changes which it has not read.
pub(crate) struct Seen<'a> {
    files: &'a Files,
    cx: &'a RunCx,
}

impl<'a> Seen<'a> {
    pub(crate) fn new(files: &'a Files, cx: &'a RunCx) -> Self {
        Self { files, cx }
    }

    /// Records that the agent read all of the file.
    pub(crate) fn read(&self, path: &Path, content: &[u8]) {
        self.note(path, content, Some(self.step()));
    }

    /// Records that the agent wrote all of the file.
    pub(crate) fn wrote(&self, path: &Path, content: &[u8]) {
        self.note(path, content, None);
    }

    /// Records that the agent changed a part of the file: it knows the new content if it knew the
    /// old one.
    pub(crate) fn changed(&self, path: &Path, old: &[u8], new: &[u8]) {
        if let Some(known) = self.known(path).filter(|known| known.digest == digest(old)) {
            self.note(path, new, known.shown_in);
        }
    }

    /// Returns true if the agent knew another content.
    pub(crate) fn is_outdated(&self, path: &Path, content: &[u8]) -> bool {
        self.known(path).is_some_and(|known| known.digest != digest(content))
    }

    /// Refuses to replace or remove content that the agent does not know.
    pub(crate) fn check(&self, path: &Path, content: &[u8]) -> Result<()> {
        let why = match self.known(path) {
            Some(known) if known.digest != digest(content) => "has changed since you read it: read it again",
            Some(known) if known.shown_in == Some(self.step()) => "is only now being read: wait for what it says",
            Some(_) => return Ok(()),
            None => "is there, and you have not read all of it: read it",
        };
        Err(Error::tool(format!("'{}' {why}, before you replace it as a whole", shown(path))))
    }

    fn note(&self, path: &Path, content: &[u8], shown_in: Option<(Arc<str>, u32)>) {
        let mut all = self.files.known().lock().unwrap_or_else(PoisonError::into_inner);
        if all.len() >= MOST {
            all.clear();
        }
        all.insert(self.name(path), Content { digest: digest(content), shown_in });
    }

    fn known(&self, path: &Path) -> Option<Content> {
        self.files.known().lock().unwrap_or_else(PoisonError::into_inner).get(&self.name(path)).cloned()
    }

    /// Returns the key of a file, the same for every link to it.
    fn name(&self, path: &Path) -> (Arc<str>, Arc<str>, PathBuf) {
        let ids = self.cx.ids();
        (ids.session.clone(), ids.agent_id.clone(), self.files.real(path))
    }

    fn step(&self) -> (Arc<str>, u32) {
        (self.cx.ids().run_id.clone(), self.cx.step())
    }
}

fn digest(content: &[u8]) -> [u8; 32] {
    Sha256::digest(content).into()
}
