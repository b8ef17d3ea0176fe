//! Markdown as lines, as far as it has been said.

use pulldown_cmark::{Event, HeadingLevel, Options, Parser, Tag, TagEnd};
use ratatui::{
    style::{Modifier, Style},
    text::{Line, Span},
};

use super::{
    theme::Theme,
    wrap::{Prefix, wrap},
};

/// A text as lines of this width.
pub(super) fn lines(text: &str, theme: Theme, width: usize) -> Vec<Line<'static>> {
    let mut page = Page { width, ..Page::new(theme) };
    let options = Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH | Options::ENABLE_TASKLISTS;
    for event in Parser::new_ext(text, options) {
        page.event(event);
    }
    page.flush();
    while page.lines.last().is_some_and(|line| line.width() == 0) {
        page.lines.pop();
    }
    page.lines
}

struct Page {
    theme: Theme,
    width: usize,
    lines: Vec<Line<'static>>,
    /// Of the paragraph that is being read.
    pieces: Vec<(String, Style)>,
    style: Vec<Style>,
    /// Of the lists around: the number of the next item, none in a list of points.
    lists: Vec<Option<u64>>,
    /// The mark of an item whose first line is to come.
    mark: Option<String>,
    quotes: usize,
    is_code: bool,
    links: Vec<String>,
    /// Cells of a table's row.
    cells: usize,
}

impl Page {
    fn new(theme: Theme) -> Self {
        Self {
            theme,
            width: 80,
            lines: Vec::new(),
            pieces: Vec::new(),
            style: vec![theme.plain],
            lists: Vec::new(),
            mark: None,
            quotes: 0,
            is_code: false,
            links: Vec::new(),
            cells: 0,
        }
    }

    fn style(&self) -> Style {
        self.style.last().copied().unwrap_or_default()
    }

    fn push(&mut self, text: &str) {
        self.pieces.push((text.to_owned(), self.style()));
    }

    fn with(&mut self, modifier: Modifier) {
        self.style.push(self.style().add_modifier(modifier));
    }

    fn event(&mut self, event: Event<'_>) {
        match event {
            Event::Start(tag) => self.start(tag),
            Event::End(tag) => self.end(tag),
            Event::Text(text) | Event::Html(text) | Event::InlineHtml(text) => self.push(&text),
            Event::Code(code) => self.pieces.push((code.into_string(), self.theme.code)),
            Event::SoftBreak => self.push(" "),
            Event::HardBreak => self.push("\n"),
            Event::Rule => {
                self.flush();
                self.lines.push(Line::styled("─".repeat(self.width.min(40)), self.theme.dim));
            }
            Event::TaskListMarker(done) => self.push(if done { "[x] " } else { "[ ] " }),
            Event::FootnoteReference(name) => self.push(&format!("[{name}]")),
            Event::InlineMath(text) | Event::DisplayMath(text) => self.push(&text),
        }
    }

    fn start(&mut self, tag: Tag<'_>) {
        match tag {
            Tag::Heading { level, .. } => {
                self.flush();
                let style = if level == HeadingLevel::H1 { self.theme.accent } else { self.theme.plain };
                self.style.push(style.add_modifier(Modifier::BOLD));
            }
            Tag::Emphasis => self.with(Modifier::ITALIC),
            Tag::Strong | Tag::TableHead => self.with(Modifier::BOLD),
            Tag::Strikethrough => self.with(Modifier::CROSSED_OUT),
            Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. } => {
                self.links.push(dest_url.into_string());
                self.with(Modifier::UNDERLINED);
            }
            Tag::CodeBlock(_) => {
                self.flush();
                self.is_code = true;
                self.style.push(self.theme.code);
            }
            Tag::BlockQuote(_) => {
                self.flush();
                self.quotes += 1;
            }
            Tag::List(first) => {
                self.flush();
                self.lists.push(first);
            }
            Tag::Item => {
                self.flush();
                self.mark = Some(match self.lists.last_mut() {
                    Some(Some(number)) => {
                        *number += 1;
                        format!("{}. ", *number - 1)
                    }
                    _ => "• ".into(),
                });
            }
            Tag::TableCell => {
                if self.cells > 0 {
                    self.pieces.push((" │ ".into(), self.theme.dim));
                }
                self.cells += 1;
            }
            _ => {}
        }
    }

    fn end(&mut self, tag: TagEnd) {
        match tag {
            TagEnd::Emphasis | TagEnd::Strong | TagEnd::Strikethrough => drop(self.style.pop()),
            TagEnd::Link | TagEnd::Image => {
                self.style.pop();
                let said = self.pieces.last().map(|(text, _)| text.clone()).unwrap_or_default();
                if let Some(url) = self.links.pop().filter(|url| *url != said && !url.is_empty()) {
                    self.pieces.push((format!(" ({url})"), self.theme.dim));
                }
            }
            TagEnd::Heading(_) => {
                self.flush();
                self.style.pop();
                self.gap();
            }
            TagEnd::CodeBlock => {
                if let Some((last, _)) = self.pieces.last_mut()
                    && last.ends_with('\n')
                {
                    last.pop();
                }
                self.flush();
                (self.is_code, _) = (false, self.style.pop());
                self.gap();
            }
            TagEnd::BlockQuote(_) => {
                self.flush();
                self.quotes = self.quotes.saturating_sub(1);
            }
            TagEnd::Paragraph => {
                self.flush();
                if self.lists.is_empty() {
                    self.gap();
                }
            }
            TagEnd::Item => self.flush(),
            TagEnd::List(_) => {
                self.lists.pop();
                if self.lists.is_empty() {
                    self.gap();
                }
            }
            TagEnd::TableHead => {
                self.flush();
                (self.cells, _) = (0, self.style.pop());
            }
            TagEnd::TableRow => {
                self.flush();
                self.cells = 0;
            }
            TagEnd::Table => self.gap(),
            _ => {}
        }
    }

    fn gap(&mut self) {
        self.lines.push(Line::default());
    }

    /// The paragraph is read: its lines stand on the page.
    fn flush(&mut self) {
        if self.pieces.is_empty() && self.mark.is_none() {
            return;
        }
        let pieces = std::mem::take(&mut self.pieces);
        let prefix = self.prefix();
        self.lines.extend(wrap(&pieces, &prefix, self.width));
    }

    fn prefix(&mut self) -> Prefix {
        let quote = Span::styled("│ ".repeat(self.quotes), self.theme.dim);
        let depth = "  ".repeat(self.lists.len().saturating_sub(1));
        let mark = self.mark.take();
        let hang = match (&mark, self.lists.last()) {
            (Some(mark), _) => " ".repeat(mark.chars().count()),
            (None, Some(_)) => "  ".into(),
            (None, None) => String::new(),
        };
        let code = if self.is_code { "  " } else { "" };
        let rest = format!("{depth}{hang}{code}");
        let first = format!("{depth}{}{code}", mark.unwrap_or(hang));
        Prefix {
            first: vec![quote.clone(), Span::styled(first, self.theme.accent)],
            rest: vec![quote, Span::raw(rest)],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::ThemeName;

    fn shown(text: &str) -> Vec<String> {
        let lines = lines(text, Theme::named(ThemeName::Dark), 24);
        lines.iter().map(|line| line.to_string().trim_end().to_owned()).collect()
    }

    #[test]
    fn markdown_is_laid_out_for_a_narrow_screen() {
        assert_eq!(
            shown("# Bees\nThey *hum* and they **sting** people."),
            ["Bees", "", "They hum and they sting", "people."]
        );
        assert_eq!(shown("- one\n- two\n  1. deep\n\nend"), ["• one", "• two", "  1. deep", "", "end"]);
        assert_eq!(shown("```rust\nlet a = 1;\n\nlet b;\n```"), ["  let a = 1;", "", "  let b;"]);
        assert_eq!(shown("> said"), ["│ said"]);
        assert_eq!(shown("[a](http://b.c)"), ["a (http://b.c)"]);
        assert_eq!(shown("|a|b|\n|-|-|\n|1|2|"), ["a │ b", "1 │ 2"]);
    }

    #[test]
    fn half_of_a_text_is_shown_as_far_as_it_was_said() {
        let text = "# A\n\n- one **bold** `code`\n\n```rust\nfn main() {}\n```\n> quoted [link](http://x.y)\n\n| a | b |\n|---|---|\n| 1 |";
        for at in (0..=text.len()).filter(|at| text.is_char_boundary(*at)) {
            let _ = shown(&text[..at]);
        }
        assert_eq!(shown("so **far and"), ["so **far and"]);
        assert_eq!(shown("```\nopen"), ["  open"]);
    }
}
