//! Patch parser.

use agent_core::{Error, Result};

/// Change of one file.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Change {
    Add { path: String, content: String },
    Delete { path: String },
    Update { path: String, to: Option<String>, chunks: Vec<Chunk> },
}

/// Hunk: adjacent lines of an update.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Chunk {
    /// Lines that precede the hunk, in order: functions, classes.
    pub(super) anchors: Vec<String>,
    pub(super) lines: Vec<Line>,
    /// True if the hunk is at the end of the file.
    pub(super) at_end: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Line {
    Same(String),
    Old(String),
    New(String),
}

impl Chunk {
    /// Returns the inverse change.
    pub(super) fn reversed(&self) -> Self {
        let reversed = |line: &Line| match line {
            Line::Same(text) => Line::Same(text.clone()),
            Line::Old(text) => Line::New(text.clone()),
            Line::New(text) => Line::Old(text.clone()),
        };
        Self { lines: self.lines.iter().map(reversed).collect(), ..self.clone() }
    }
}

/// Parses the changes of a patch. Text around the patch (a code fence, a here-document) is ignored.
pub(super) fn parse(patch: &str) -> Result<Vec<Change>> {
    let lines = patch.lines().map(|line| line.trim_end_matches('\r'));
    let mut lines = lines.skip_while(|line| line.trim() != "*** Begin Patch").skip(1).peekable();
    let mut changes = Vec::new();
    loop {
        let Some(line) = lines.next() else {
            return Err(Error::tool("the patch must go from '*** Begin Patch' to '*** End Patch'"));
        };
        let line = line.trim();
        if line == "*** End Patch" {
            // Some models write one patch per file.
            while lines.next_if(|line| line.trim() != "*** Begin Patch").is_some() {}
            if lines.next().is_none() {
                break;
            }
        } else if let Some(path) = line.strip_prefix("*** Add File:") {
            let mut added = Vec::new();
            while let Some(line) = lines.next_if(|line| !line.starts_with("*** ")) {
                added.push(line);
            }
            let mut content = String::new();
            for added in for_the_file(&added) {
                let text =
                    added.strip_prefix('+').or_else(|| added.trim().is_empty().then_some("")).ok_or_else(|| {
                        Error::tool(format!(
                            "lines of a file that is added begin with '+', and this one does not: '{added}'"
                        ))
                    })?;
                content.extend([text, "\n"]);
            }
            changes.push(Change::Add { path: named(path)?, content });
        } else if let Some(path) = line.strip_prefix("*** Delete File:") {
            changes.push(Change::Delete { path: named(path)? });
        } else if let Some(path) = line.strip_prefix("*** Update File:") {
            let to = lines.next_if(|line| line.starts_with("*** Move to:"));
            let to = to.and_then(|line| line.strip_prefix("*** Move to:")).map(named).transpose()?;
            let mut body = Vec::new();
            while let Some(line) = lines.next_if(|line| !line.starts_with("*** ") || line.trim() == END_OF_FILE) {
                body.push(line);
            }
            let (path, chunks) = (named(path)?, chunks(&body)?);
            if chunks.is_empty() && to.is_none() {
                return Err(Error::tool(format!("the update of '{path}' changes nothing")));
            }
            changes.push(Change::Update { path, to, chunks });
        } else if !line.is_empty() {
            let known = "'*** Update File: PATH', '*** Add File: PATH', '*** Delete File: PATH' or '*** End Patch'";
            return Err(Error::tool(format!("'{line}' stands where there must be {known}")));
        }
    }
    if changes.is_empty() {
        return Err(Error::tool("the patch changes no file"));
    }
    Ok(changes)
}

const END_OF_FILE: &str = "*** End of File";

fn chunks(body: &[&str]) -> Result<Vec<Chunk>> {
    let (mut chunks, mut chunk) = (Vec::new(), Chunk::default());
    for line in for_the_file(body) {
        if let Some(anchor) = line.strip_prefix("@@") {
            if chunk.lines.iter().any(|line| *line != Line::Same(String::new())) {
                chunks.push(std::mem::take(&mut chunk));
            }
            chunk.lines.clear(); // empty lines for readability
            // Some models write `@@ -1,2 +1,2 @@ fn x()`, as in a unified diff: the numbers are
            // ignored here.
            let anchor = anchor.rsplit("@@").next().unwrap_or_default();
            let is_numbers = anchor.trim_start().starts_with('-') && anchor.contains(" +");
            if !anchor.trim().is_empty() && !is_numbers {
                chunk.anchors.push(anchor.strip_prefix(' ').unwrap_or(anchor).to_owned());
            }
        } else if line.trim() == END_OF_FILE {
            chunk.at_end = true;
            chunks.push(std::mem::take(&mut chunk));
        } else {
            let text = || line[1..].to_owned();
            chunk.lines.push(match line.chars().next() {
                Some('+') => Line::New(text()),
                Some('-') => Line::Old(text()),
                Some(' ') => Line::Same(text()),
                None => Line::Same(String::new()), // an empty line that lost its leading space
                Some(_) => {
                    return Err(Error::tool(format!(
                        "lines of an update begin with ' ', '-' or '+', and this one does not: '{line}'"
                    )));
                }
            });
        }
    }
    chunks.extend((!chunk.lines.is_empty()).then_some(chunk));
    Ok(chunks)
}

/// Removes empty trailing lines, which are there for readability.
fn for_the_file<'a>(lines: &'a [&'a str]) -> &'a [&'a str] {
    &lines[..lines.iter().rposition(|line| !line.is_empty()).map_or(0, |last| last + 1)]
}

fn named(path: &str) -> Result<String> {
    let path = path.trim();
    if path.is_empty() { Err(Error::tool("a file of the patch has no path")) } else { Ok(path.to_owned()) }
}
