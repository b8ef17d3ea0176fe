//! Texts of files, and what stands where in them.

mod node;
mod read;
mod write;

use std::{fmt, path::Path, sync::Arc};

use serde_json::Number;

pub(super) use self::{
    node::{Entry, Node, Tree},
    read::read,
    write::to_yaml,
};

/// Format of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Format {
    /// YAML 1.2, of which JSON is a part.
    Yaml,
    /// TOML.
    Toml,
}

impl Format {
    /// The format that the name of a file says: `.toml` is TOML; `.yaml`, `.yml`, `.json` and everything else is YAML.
    pub fn of(path: impl AsRef<Path>) -> Self {
        match path.as_ref().extension().and_then(|extension| extension.to_str()) {
            Some("toml") => Self::Toml,
            _ => Self::Yaml,
        }
    }
}

/// A text with the name that people know it by.
#[derive(Debug)]
pub(super) struct Source {
    pub(super) name: String,
    pub(super) text: String,
}

fn is_of_number(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '.' | '+' | '-')
}

/// A place in a text: a line and a column, both from 1.
#[derive(Clone)]
pub(super) struct Place {
    pub(super) source: Arc<Source>,
    pub(super) line: usize,
    pub(super) column: usize,
}

impl Place {
    pub(super) fn start(source: &Arc<Source>) -> Self {
        Self { source: source.clone(), line: 1, column: 1 }
    }

    /// The place of a byte.
    pub(super) fn of_byte(source: &Arc<Source>, offset: usize) -> Self {
        let before = source.text.get(..offset).unwrap_or(&source.text);
        let line = before.matches('\n').count() + 1;
        let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
        Self { source: source.clone(), line, column }
    }

    /// Returns the number in the form of the file: a version `1.10` is not `1.1`.
    pub(super) fn number(&self, number: &Number) -> String {
        let written: String = self.line_text().chars().skip(self.column - 1).take_while(|c| is_of_number(*c)).collect();
        let is_same = written.parse::<f64>().ok().is_some_and(|value| Some(value) == number.as_f64());
        if is_same { written } else { number.to_string() }
    }

    /// The folder of the file.
    pub(super) fn dir(&self) -> &Path {
        Path::new(&self.source.name).parent().unwrap_or(Path::new(""))
    }

    /// The text of the line.
    pub(super) fn line_text(&self) -> &str {
        self.source.text.lines().nth(self.line - 1).unwrap_or_default()
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}", self.source.name, self.line, self.column)
    }
}

impl fmt::Debug for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
