//! [`Difference`]: a key with another meaning than in NexAU.

use std::fmt;

/// A key of NexAU's whose meaning here is not quite the same.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Difference {
    /// JSON pointer into NexAU's file, also of a missing key.
    pub path: String,
    /// Source location, `FILE:LINE:COLUMN`, of a difference that a [`Loader`](crate::config::Loader) found.
    pub place: Option<String>,
    /// Kind of the difference.
    pub kind: DifferenceKind,
    /// Behaviour of NexAU.
    pub nexau: String,
    /// Behaviour here, or the required action.
    pub here: String,
}

/// Result of the translation of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum DifferenceKind {
    /// It means nothing here, and nothing is missed.
    Ignored,
    /// Something else is done for the same purpose.
    Otherwise,
    /// It cannot be had from the file: the agent is not what it was until somebody does what [`here`](Difference::here) says.
    Impossible,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { path, place, kind, nexau, here } = self;
        let path = if path.is_empty() { "/" } else { path };
        let path = place.as_deref().unwrap_or(path);
        let kind = match kind {
            DifferenceKind::Ignored => "ignored",
            DifferenceKind::Otherwise => "done otherwise",
            DifferenceKind::Impossible => "not possible",
        };
        write!(f, "{path}: {kind}. NexAU: {nexau}. Here: {here}.")
    }
}

/// The differences that were found so far.
#[derive(Default)]
pub(super) struct Differences(pub(super) Vec<Difference>);

impl Differences {
    /// A key that NexAU requires.
    pub(super) fn missing(&mut self, keys: &super::keys::Keys, key: &str, here: impl Into<String>) {
        self.impossible(keys.path(key), format!("requires the key '{key}'"), here);
    }

    pub(super) fn ignored(&mut self, path: impl Into<String>, nexau: impl Into<String>, here: impl Into<String>) {
        self.add(DifferenceKind::Ignored, path, nexau, here);
    }

    pub(super) fn otherwise(&mut self, path: impl Into<String>, nexau: impl Into<String>, here: impl Into<String>) {
        self.add(DifferenceKind::Otherwise, path, nexau, here);
    }

    pub(super) fn impossible(&mut self, path: impl Into<String>, nexau: impl Into<String>, here: impl Into<String>) {
        self.add(DifferenceKind::Impossible, path, nexau, here);
    }

    fn add(
        &mut self,
        kind: DifferenceKind,
        path: impl Into<String>,
        nexau: impl Into<String>,
        here: impl Into<String>,
    ) {
        let (path, place) = (path.into(), None);
        self.0.push(Difference { path, place, kind, nexau: nexau.into(), here: here.into() });
    }
}
