//! [`Attached`]: file attached to a message to a peer.

use std::path::PathBuf;

use agent_core::{Error, Result};
use base64::{Engine, prelude::BASE64_STANDARD};

use crate::{
    Workspace,
    blocking::blocking,
    workspace::{read::image_type, text::is_binary},
};

/// Maximum of files per message.
const MOST: usize = 20;

/// Workspace file attached to a message.
pub(super) struct Attached {
    pub(super) name: String,
    /// Path on this machine, or in the sandbox.
    #[cfg_attr(not(feature = "acp"), expect(dead_code, reason = "a peer elsewhere is not told"))]
    pub(super) path: PathBuf,
    pub(super) mime: &'static str,
    pub(super) bytes: Vec<u8>,
}

impl Attached {
    pub(super) fn base64(&self) -> String {
        BASE64_STANDARD.encode(&self.bytes)
    }
}

/// Reads the files at these paths of the workspace.
///
/// # Errors
/// If a file is missing, outside the workspace, or too large.
pub(super) async fn attached(workspace: &Workspace, paths: &[String]) -> Result<Vec<Attached>> {
    if paths.len() > MOST {
        return Err(Error::tool(format!("a message takes {MOST} files at most, not {}", paths.len())));
    }
    let ((files, _), paths) = (workspace.files(), paths.to_vec());
    let read = move |path: &String| {
        let path = files.relative(path)?;
        let bytes = files.read(&path)?;
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        Ok(Attached { name, path: files.root_path().join(&path), mime: mime(&bytes), bytes })
    };
    blocking(move || paths.iter().map(read).collect()).await
}

fn mime(bytes: &[u8]) -> &'static str {
    match bytes {
        [b'%', b'P', b'D', b'F', ..] => "application/pdf",
        bytes if is_binary(bytes) => image_type(bytes).unwrap_or("application/octet-stream"),
        bytes => image_type(bytes).unwrap_or("text/plain"),
    }
}
