//! Problems of a file, and their messages.

use std::{
    fmt,
    path::{Path, PathBuf},
    sync::Arc,
};

use agent_core::Error;

use super::text::{Place, Source};

/// One thing that is wrong with a file.
#[derive(Clone, Debug)]
pub struct Problem {
    place: Place,
    message: String,
    help: Option<String>,
}

impl Problem {
    pub(super) fn new(place: Place, message: impl Into<String>) -> Self {
        Self { place, message: message.into(), help: None }
    }

    pub(super) fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }

    /// The file.
    pub fn file(&self) -> PathBuf {
        PathBuf::from(&self.place.source.name)
    }

    /// The line, from 1.
    pub fn line(&self) -> usize {
        self.place.line
    }

    /// The column, from 1.
    pub fn column(&self) -> usize {
        self.place.column
    }

    /// Error message.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// Advice, if there is any.
    pub fn advice(&self) -> Option<&str> {
        self.help.as_deref()
    }
}

/// With the line of the file, and a mark below the place.
impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { place, message, help } = self;
        writeln!(f, "{place}: {message}")?;
        let line: String = place.line_text().chars().take(160).collect();
        if !line.trim().is_empty() {
            let number = place.line.to_string();
            let margin = " ".repeat(number.len());
            let before: String =
                line.chars().take(place.column - 1).map(|c| if c == '\t' { '\t' } else { ' ' }).collect();
            writeln!(f, "{number} | {line}")?;
            writeln!(f, "{margin} | {before}^")?;
        }
        match help {
            Some(help) => writeln!(f, "  = help: {help}"),
            None => Ok(()),
        }
    }
}

/// All that is wrong with a file and what it refers to; there is at least one problem.
#[derive(Clone, Debug)]
pub struct Problems {
    all: Vec<Problem>,
    files: Vec<PathBuf>,
}

impl Problems {
    /// The problems file by file in the order in which they came, those of each in the order of its lines.
    pub(super) fn new(mut problems: Vec<Problem>) -> Self {
        let mut sources: Vec<Arc<Source>> = Vec::new();
        for problem in &problems {
            if !sources.iter().any(|known| Arc::ptr_eq(known, &problem.place.source)) {
                sources.push(problem.place.source.clone());
            }
        }
        let of = |place: &Place| sources.iter().position(|known| Arc::ptr_eq(known, &place.source));
        problems.sort_by_key(|Problem { place, .. }| (of(place), place.line, place.column));
        Self { all: problems, files: Vec::new() }
    }

    /// The same, with the files that were looked for.
    pub(super) fn among(self, files: Vec<PathBuf>) -> Self {
        Self { files, ..self }
    }

    /// The files that were looked for, those that are not there too.
    pub(super) fn files(&self) -> &[PathBuf] {
        &self.files
    }

    /// A problem of a file as a whole.
    pub(super) fn of_file(path: &Path, why: &str) -> Self {
        let source = Arc::new(Source { name: path.display().to_string(), text: String::new() });
        Self::from(Problem::new(Place::start(&source), why))
    }

    /// The problems, in the order of each file.
    pub fn iter(&self) -> impl Iterator<Item = &Problem> {
        self.all.iter()
    }
}

impl From<Problem> for Problems {
    fn from(problem: Problem) -> Self {
        Self::new(vec![problem])
    }
}

impl fmt::Display for Problems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, problem) in self.all.iter().enumerate() {
            if i > 0 {
                writeln!(f)?;
            }
            problem.fmt(f)?;
        }
        Ok(())
    }
}

impl std::error::Error for Problems {}

impl From<Problems> for Error {
    fn from(problems: Problems) -> Self {
        Self::config(problems.to_string()).with_source(problems)
    }
}
