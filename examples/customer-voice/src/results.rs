//! The results: a file of JSON lines, to which each result is appended.

use std::{
    collections::HashSet,
    fs::{self, File, OpenOptions},
    io::Write,
    path::{Path, PathBuf},
};

use agent::prelude::*;
use serde::{Deserialize, Serialize};

use crate::classifier::Voice;

/// Result of one document.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Row {
    pub(crate) id: String,
    /// In millionths of a dollar.
    pub(crate) cost: u64,
    #[serde(flatten)]
    pub(crate) voice: Voice,
}

/// All results, of this run and of earlier ones.
#[derive(Debug)]
pub(crate) struct Results {
    path: PathBuf,
    file: File,
    rows: Vec<Row>,
    ids: HashSet<String>,
}

impl Results {
    /// Opens the file, or creates it. A last line that a killed run left incomplete is removed.
    pub(crate) fn open(path: &Path) -> Result<Self> {
        let failed = |e: std::io::Error| Error::config(format!("{} cannot be opened", path.display())).with_source(e);
        let text = if path.exists() { fs::read_to_string(path).map_err(failed)? } else { String::new() };
        let whole = text.rfind('\n').map_or("", |end| &text[..=end]);
        let mut rows = Vec::new();
        for (number, line) in (1..).zip(whole.lines()) {
            rows.push(serde_json::from_str::<Row>(line).map_err(|e| {
                let message = format!("{}:{number}: not a result: {e}", path.display());
                Error::config(message + "; remove the line, or name another folder with --out")
            })?);
        }
        let file = OpenOptions::new().create(true).append(true).open(path).map_err(failed)?;
        file.set_len(whole.len() as u64).map_err(failed)?;
        let ids = rows.iter().map(|row| row.id.clone()).collect();
        Ok(Self { path: path.to_owned(), file, rows, ids })
    }

    /// True if the document has a result.
    pub(crate) fn has(&self, id: &str) -> bool {
        self.ids.contains(id)
    }

    /// Cost of all results, in millionths of a dollar.
    pub(crate) fn spent(&self) -> u64 {
        self.rows.iter().map(|row| row.cost).sum()
    }

    pub(crate) fn rows(&self) -> &[Row] {
        &self.rows
    }

    /// Appends a result to the file.
    pub(crate) fn append(&mut self, row: Row) -> Result<()> {
        let line = serde_json::to_string(&row).expect("a row is JSON") + "\n";
        self.file.write_all(line.as_bytes()).map_err(|e| {
            Error::config(format!("{} cannot be written: is the disk full?", self.path.display())).with_source(e)
        })?;
        self.ids.insert(row.id.clone());
        self.rows.push(row);
        Ok(())
    }
}
