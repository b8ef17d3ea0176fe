//! Detection of Markdown code, in which calls are examples rather than real calls.

/// State of the Markdown scanner for code.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Code {
    /// Character and length of the open fence.
    fence: Option<(char, usize)>,
    /// Length of the marker that closes the open code span. A span ends with its line at the
    /// latest.
    span: Option<usize>,
    /// True if the current line is not empty.
    in_line: bool,
}

impl Code {
    /// Returns true if the following text is code.
    pub(super) fn is_open(self) -> bool {
        self.fence.is_some() || self.span.is_some()
    }

    /// Consumes `length` equal markers in a row.
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

    /// Consumes a line break.
    pub(super) fn line_break(&mut self) {
        self.span = None;
        self.in_line = false;
    }

    /// Consumes any other text.
    pub(super) fn text(&mut self, text: &str) {
        self.in_line |= !text.trim_start().is_empty();
    }
}
