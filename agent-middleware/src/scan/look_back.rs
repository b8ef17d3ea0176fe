//! [`LookBack`]: a text that comes in pieces.

use std::sync::Arc;

use agent_core::Result;

use super::{Detector, Rewrite};

/// A text that comes in pieces, of which nothing is let out that may still be part of a finding.
#[derive(Default)]
pub(super) struct LookBack {
    /// What is held back, and before it the last character that was let out.
    text: String,
    /// Where what is held back begins.
    from: usize,
    /// A detector whose passage is all that is held back: while that goes on, nothing can be let out.
    holder: Option<Arc<dyn Detector>>,
}

impl LookBack {
    /// Takes a piece, and gives what can be let out now.
    pub(super) fn push(&mut self, rewrite: &dyn Rewrite, piece: &str) -> Result<String> {
        self.text.push_str(piece);
        if self.holder.as_ref().is_some_and(|holder| piece.chars().all(|c| holder.may_contain(c))) {
            return Ok(String::new());
        }
        let cut = rewrite.scanner().cut(&self.text, self.from);
        let out = self.let_out(rewrite, cut)?;
        let held = &self.text[self.from..];
        self.holder = rewrite.scanner().holder(held).filter(|_| !held.is_empty()).cloned();
        Ok(out)
    }

    /// Gives what is left: no more follows.
    pub(super) fn finish(mut self, rewrite: &dyn Rewrite) -> Result<String> {
        self.let_out(rewrite, self.text.len())
    }

    fn let_out(&mut self, rewrite: &dyn Rewrite, cut: usize) -> Result<String> {
        let out = rewrite.part(&self.text, self.from..cut)?.into_owned();
        self.from = self.text[..cut].chars().next_back().map_or(0, char::len_utf8);
        self.text.drain(..cut - self.from);
        Ok(out)
    }
}
