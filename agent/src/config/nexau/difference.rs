//! [`Difference`]: what is not in this framework as it was in NexAU.

use std::fmt;

/// A key of NexAU's whose meaning here is not quite the same.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Difference {
    /// Where it stands in NexAU's file: a JSON pointer, of a key that is left out too.
    pub path: String,
    /// What became of it.
    pub kind: DifferenceKind,
    /// What NexAU does.
    pub nexau: String,
    /// What is done here, or what there is to do about it.
    pub here: String,
}

/// What became of a key of NexAU's.
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
        let Self { path, kind, nexau, here } = self;
        let path = if path.is_empty() { "/" } else { path };
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
        self.0.push(Difference { path: path.into(), kind, nexau: nexau.into(), here: here.into() });
    }
}
