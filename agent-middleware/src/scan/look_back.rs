//! [`LookBack`]: a streaming buffer.

use std::sync::Arc;

use agent_core::Result;

use super::{Detector, Rewrite};

/// Streaming buffer that withholds text which may still become part of a finding.
#[derive(Default)]
pub(super) struct LookBack {
    /// The withheld text, preceded by the last released character.
    text: String,
    /// Offset at which the withheld text begins.
    from: usize,
    /// A detector whose passage spans the whole withheld text: while it continues, nothing can be
    /// released.
    holder: Option<Arc<dyn Detector>>,
}

impl LookBack {
    /// Appends a piece, and returns the text that can be released now.
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

    /// Returns the remaining text at the end of the stream.
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
