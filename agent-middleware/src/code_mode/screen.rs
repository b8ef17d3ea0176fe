//! Output and result of a program, within its limit.

use std::{
    borrow::Cow,
    fmt::{self, Write},
};

use monty_types::{MontyException, PrintWriterCallback};

/// Keeps the beginning of the output.
pub(super) struct Screen {
    shown: Limited,
}

impl Screen {
    /// Keeps up to `output` bytes.
    pub(super) fn new(output: usize) -> Self {
        Self { shown: Limited::new(output) }
    }

    /// Returns the output, followed by `last` on a new line.
    pub(super) fn with(mut self, last: &dyn fmt::Display) -> String {
        let is_open_line = !self.shown.text.is_empty() && !self.shown.text.ends_with('\n');
        let room = self.shown.most.saturating_sub(self.shown.text.len());
        // The last part matters most: it gets at least half of the limit.
        let mut end = Limited::new(room.max(self.shown.most / 2));
        let _ = write!(end, "{last}");
        let keep = self.shown.most.saturating_sub(end.text.len());
        self.shown.cut(keep);
        let printed = match self.shown.left_out {
            0 if is_open_line && !end.text.is_empty() => format!("{}\n", self.shown.text),
            0 => self.shown.text,
            bytes => format!("{}\n[{bytes} bytes left out]\n", self.shown.text),
        };
        // The size of the rest is unknown, since it was not formatted.
        let rest = if end.left_out > 0 { "\n[the rest is left out]" } else { "" };
        format!("{printed}{}{rest}", end.text)
    }
}

impl PrintWriterCallback for Screen {
    fn stdout_write(&mut self, output: Cow<'_, str>) -> Result<(), MontyException> {
        let _ = self.shown.write_str(&output);
        Ok(())
    }

    fn stdout_push(&mut self, end: char) -> Result<(), MontyException> {
        let _ = self.shown.write_char(end);
        Ok(())
    }
}

/// The beginning of a text, and the number of omitted bytes.
struct Limited {
    text: String,
    most: usize,
    left_out: usize,
}

impl Limited {
    fn new(most: usize) -> Self {
        Self { text: String::new(), most, left_out: 0 }
    }

    fn cut(&mut self, most: usize) {
        let at = (0..=most.min(self.text.len())).rev().find(|at| self.text.is_char_boundary(*at)).unwrap_or(0);
        self.left_out += self.text.len() - at;
        self.text.truncate(at);
    }
}

impl Write for Limited {
    /// Fails as soon as something is omitted, so that a long text is not formatted completely.
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let room = if self.left_out > 0 { 0 } else { self.most - self.text.len() };
        let at = (0..=room.min(text.len())).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
        self.text.push_str(&text[..at]);
        self.left_out += text.len() - at;
        if self.left_out > 0 { Err(fmt::Error) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(output: usize, printed: &[&str], last: &str) -> String {
        let mut screen = Screen::new(output);
        for text in printed {
            screen.stdout_write((*text).into()).expect("writes");
        }
        screen.with(&last)
    }

    #[test]
    fn the_beginning_is_kept_and_the_rest_is_counted_and_what_comes_last_has_its_place() {
        assert_eq!(shown(10, &["ab"], "cd"), "ab\ncd");
        assert_eq!(shown(10, &["ab\n"], "cd"), "ab\ncd");
        assert_eq!(shown(10, &["ab"], ""), "ab");
        assert_eq!(shown(10, &["0123456789", "ab"], "cd"), "01234567\n[4 bytes left out]\ncd");
        assert_eq!(shown(4, &[], "äöü"), "äö\n[the rest is left out]");
    }
}
