//! Workspace files for an agent.

use agent_core::{Error, Result};
use serde_json::{Value, json};

use super::wire::{INVALID, ReadFile, WriteFile};
use crate::{Workspace, blocking::blocking};

/// Response to a request.
type Answer = Result<Value, (i64, String)>;

pub(super) async fn read(workspace: &Workspace, params: Value) -> Answer {
    let ReadFile { path, line, limit } = serde_json::from_value(params).map_err(|e| (INVALID, e.to_string()))?;
    let (files, _) = workspace.files();
    let text = blocking(move || {
        let bytes = files.read(&files.relative(&path)?)?;
        String::from_utf8(bytes).map_err(|_| Error::tool(format!("'{path}' is not UTF-8 text")))
    });
    let text = text.await.map_err(|e| refused(&e))?;
    let content = match (line, limit) {
        (None, None) => text,
        (line, limit) => {
            let lines = text.split_inclusive('\n').skip(line.unwrap_or(1).saturating_sub(1));
            lines.take(limit.unwrap_or(usize::MAX)).collect()
        }
    };
    Ok(json!({"content": content}))
}

pub(super) async fn write(workspace: &Workspace, params: Value) -> Answer {
    let WriteFile { path, content } = serde_json::from_value(params).map_err(|e| (INVALID, e.to_string()))?;
    let (files, _) = workspace.files();
    let written = blocking(move || {
        let path = files.relative(&path)?;
        let _changing = files.changing();
        files.replace(&path, content.as_bytes())
    });
    written.await.map(|_| json!({})).map_err(|e| refused(&e))
}

fn refused(e: &Error) -> (i64, String) {
    (INVALID, e.message().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(flavor = "multi_thread")]
    async fn a_file_that_is_being_edited_is_written_after_that() {
        let dir = tempfile::tempdir().expect("a directory");
        let workspace = Workspace::open(dir.path()).expect("opens");
        let (files, _) = workspace.files();
        let changing = files.changing();
        let written = tokio::spawn(async move { write(&workspace, json!({"path": "a", "content": "new"})).await });
        // Still not done after much more time than it takes.
        std::thread::sleep(std::time::Duration::from_millis(50));
        assert!(!dir.path().join("a").exists(), "the edit is not done");
        drop(changing);
        written.await.expect("is done").expect("writes");
        assert_eq!(std::fs::read_to_string(dir.path().join("a")).expect("is there"), "new");
    }
}
