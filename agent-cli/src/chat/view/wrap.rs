//! Text in lines that are not wider than the screen.

use ratatui::{
    style::Style,
    text::{Line, Span},
};
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// Prefix of the first line, and of the following ones.
#[derive(Clone, Debug, Default)]
pub(super) struct Prefix {
    pub(super) first: Vec<Span<'static>>,
    pub(super) rest: Vec<Span<'static>>,
}

impl Prefix {
    pub(super) fn same(text: impl Into<String>, style: Style) -> Self {
        let span = Span::styled(text.into(), style);
        Self { first: vec![span.clone()], rest: vec![span] }
    }

    pub(super) fn hanging(first: impl Into<String>, style: Style) -> Self {
        let first = first.into();
        let rest = " ".repeat(first.width());
        Self { first: vec![Span::styled(first, style)], rest: vec![Span::raw(rest)] }
    }

    fn width(spans: &[Span<'static>]) -> usize {
        spans.iter().map(Span::width).sum()
    }
}

/// Breaks pieces of text between words, or within a word that is wider than a line. Line breaks in them are kept.
pub(super) fn wrap(pieces: &[(String, Style)], prefix: &Prefix, width: usize) -> Vec<Line<'static>> {
    let mut lines = Vec::new();
    let mut line = Builder::new(prefix.first.clone(), width);
    let mut next = |line: &mut Builder| {
        let full = std::mem::replace(line, Builder::new(prefix.rest.clone(), width));
        lines.push(full.done());
    };
    for (text, style) in pieces {
        for (at, part) in text.split('\n').enumerate() {
            if at > 0 {
                next(&mut line);
            }
            for word in part.split_inclusive(' ') {
                if word.trim_end().width() > line.room && !line.is_empty() {
                    next(&mut line);
                }
                if word.trim_end().width() <= line.room {
                    line.push(word, *style);
                    continue;
                }
                for c in word.chars() {
                    if c.width().unwrap_or(0) > line.room && !line.is_empty() {
                        next(&mut line);
                    }
                    line.push(c.encode_utf8(&mut [0; 4]), *style);
                }
            }
        }
    }
    lines.push(line.done());
    lines
}

struct Builder {
    spans: Vec<Span<'static>>,
    prefix: usize,
    room: usize,
}

impl Builder {
    fn new(spans: Vec<Span<'static>>, width: usize) -> Self {
        // Each line has at least one letter, also on a screen as narrow as the prefix.
        let room = width.saturating_sub(Prefix::width(&spans)).max(1);
        Self { prefix: spans.len(), spans, room }
    }

    fn is_empty(&self) -> bool {
        self.spans.len() == self.prefix
    }

    fn push(&mut self, text: &str, style: Style) {
        self.room = self.room.saturating_sub(text.width());
        let is_first = self.is_empty();
        match self.spans.last_mut() {
            Some(last) if !is_first && last.style == style => last.content.to_mut().push_str(text),
            _ => self.spans.push(Span::styled(text.to_owned(), style)),
        }
    }

    fn done(self) -> Line<'static> {
        Line::from(self.spans)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &str, width: usize) -> Vec<String> {
        let prefix = Prefix::hanging("- ", Style::new());
        wrap(&[(text.into(), Style::new())], &prefix, width).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn lines_break_between_words_and_words_only_where_they_must() {
        assert_eq!(lines("one two three", 9), ["- one two ", "  three"]);
        assert_eq!(lines("abcdefghij k", 6), ["- abcd", "  efgh", "  ij k"]);
        assert_eq!(lines("a\n\nb", 20), ["- a", "  ", "  b"]);
        assert_eq!(lines("漢字漢字", 6), ["- 漢字", "  漢字"], "wide letters take two columns");
        for width in 0..8 {
            assert!(lines("some words, and 漢字", width).len() > 2, "no width is too small: {width}");
        }
    }
}
