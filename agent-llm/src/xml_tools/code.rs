//! Where in a text code is shown: what stands there is not meant.

/// How far a text has come in Markdown, as far as code goes.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Code {
    /// The mark that closes the open fence, and its length.
    fence: Option<(char, usize)>,
    /// The length of the mark that closes the open code span. A span ends with its line at the latest.
    span: Option<usize>,
    /// Something stands on this line already.
    in_line: bool,
}

impl Code {
    /// True if what follows is code.
    pub(super) fn is_open(self) -> bool {
        self.fence.is_some() || self.span.is_some()
    }

    /// Passes `length` marks of a kind in a row.
    pub(super) fn marks(&mut self, mark: char, length: usize) {
        match self.fence {
            Some((closing, shortest)) if !self.in_line && mark == closing && length >= shortest => self.fence = None,
            Some(_) => {}
            None if !self.in_line && length >= 3 => self.fence = Some((mark, length)),
            None if mark == '`' => {
                self.span = match self.span {
                    None => Some(length),
                    open => open.filter(|open| *open != length),
                }
            }
            None => {}
        }
        self.in_line = true;
    }

    /// Passes a line break.
    pub(super) fn line_break(&mut self) {
        self.span = None;
        self.in_line = false;
    }

    /// Passes anything else.
    pub(super) fn text(&mut self, text: &str) {
        self.in_line |= !text.trim_start().is_empty();
    }
}
