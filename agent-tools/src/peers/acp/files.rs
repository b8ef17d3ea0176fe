//! The workspace's files, for an agent.

use agent_core::{Error, Result};
use serde_json::{Value, json};

use super::wire::{INVALID, ReadFile, WriteFile};
use crate::{Workspace, blocking::blocking};

/// What a request is answered with.
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
    let written = blocking(move || files.replace(&files.relative(&path)?, content.as_bytes()));
    written.await.map(|_| json!({})).map_err(|e| refused(&e))
}

fn refused(e: &Error) -> (i64, String) {
    (INVALID, e.message().to_owned())
}
