//! Progress of one call through the models.

use agent_core::{Error, ErrorKind, Retry};

use super::{Candidate, rules::Rules};
use crate::error::bounded;

/// Maximum number of characters of each model's error in the final error.
const LONGEST: usize = 200;

/// Order in which one call tries the models: its first model, then the others in their configured
/// order.
pub(super) struct Course<'a> {
    candidates: &'a [Candidate],
    at: usize,
    tried: Vec<bool>,
    /// Error of each model that failed.
    answers: Vec<String>,
    retry: Retry,
    /// Context window that was too small.
    too_small: Option<u64>,
    overflowed: bool,
}

impl<'a> Course<'a> {
    pub(super) fn new(candidates: &'a [Candidate], first: usize) -> Self {
        let tried = vec![false; candidates.len()];
        let (answers, retry) = (Vec::new(), Retry::Unknown);
        Self { candidates, at: first, tried, answers, retry, too_small: None, overflowed: false }
    }

    /// Returns the model to call now.
    pub(super) fn now(&self) -> &'a Candidate {
        &self.candidates[self.at]
    }

    /// Returns the index of the model to call now.
    pub(super) fn place(&self) -> usize {
        self.at
    }

    /// Returns true if another model failed before.
    pub(super) fn has_moved(&self) -> bool {
        !self.answers.is_empty()
    }

    /// Returns true if the conversation was too long for a model.
    pub(super) fn has_overflowed(&self) -> bool {
        self.overflowed
    }

    /// Advances to the next model after `error`, if there is one and the rules allow it.
    pub(super) fn advance(&mut self, error: &Error, rules: &Rules) -> Option<&'a Candidate> {
        let failed = self.now();
        self.tried[self.at] = true;
        self.answers.push(format!("{}: {}: {}", failed.label, error.kind(), bounded(error.message(), LONGEST)));
        self.retry = either(self.retry, error.retry());
        if error.kind() == ErrorKind::ContextOverflow {
            self.overflowed = true;
            self.too_small = self.too_small.max(failed.window);
        }
        if !rules.moves_on(error) {
            return None;
        }
        let fits = |c: &Candidate| !(self.overflowed && c.window.is_some_and(|window| Some(window) <= self.too_small));
        let next = (0..self.candidates.len()).find(|at| !self.tried[*at] && fits(&self.candidates[*at]))?;
        self.at = next;
        Some(&self.candidates[next])
    }

    /// Builds the error of the whole call, whose last model failed with `last`. The error of a call
    /// that tried only one model is returned unchanged.
    pub(super) fn explain(self, last: Error) -> Error {
        if self.answers.len() < 2 {
            return last;
        }
        last.with_retry(self.retry).with_context("attempts", self.answers.join("; "))
    }
}

/// Combines two retry hints: retryable if either is, and not before the longer delay.
fn either(a: Retry, b: Retry) -> Retry {
    match (a, b) {
        (Retry::Temporary(a), Retry::Temporary(b)) => Retry::Temporary(a.max(b)),
        (temporary @ Retry::Temporary(_), _) | (_, temporary) => temporary,
    }
}
