//! Input of the user.

/// A text with a cursor in it.
#[derive(Debug, Default)]
pub(in crate::chat) struct Input {
    text: String,
    /// In bytes; always at the boundary of a character.
    at: usize,
}

impl Input {
    /// A text with the cursor at its end.
    pub(in crate::chat) fn of(text: &str) -> Self {
        Self { text: text.to_owned(), at: text.len() }
    }

    pub(in crate::chat) fn text(&self) -> &str {
        &self.text
    }

    /// Position of the cursor, in bytes.
    pub(in crate::chat) fn at(&self) -> usize {
        self.at
    }

    pub(in crate::chat) fn is_empty(&self) -> bool {
        self.text.is_empty()
    }

    /// The text; nothing is left.
    pub(super) fn take(&mut self) -> String {
        self.at = 0;
        std::mem::take(&mut self.text)
    }

    pub(super) fn insert(&mut self, text: &str) {
        let text = text.replace("\r\n", "\n").replace('\r', "\n");
        self.text.insert_str(self.at, &text);
        self.at += text.len();
    }

    pub(super) fn backspace(&mut self) {
        if let Some(c) = self.text[..self.at].chars().next_back() {
            self.at -= c.len_utf8();
            self.text.remove(self.at);
        }
    }

    pub(super) fn delete(&mut self) {
        if self.at < self.text.len() {
            self.text.remove(self.at);
        }
    }

    pub(super) fn left(&mut self) {
        self.at -= self.text[..self.at].chars().next_back().map_or(0, char::len_utf8);
    }

    pub(super) fn right(&mut self) {
        self.at += self.text[self.at..].chars().next().map_or(0, char::len_utf8);
    }

    pub(super) fn home(&mut self) {
        self.at = self.text[..self.at].rfind('\n').map_or(0, |at| at + 1);
    }

    pub(super) fn end(&mut self) {
        self.at += self.text[self.at..].find('\n').unwrap_or(self.text.len() - self.at);
    }

    /// Takes the word before the cursor away.
    pub(super) fn rub_word(&mut self) {
        let before = self.text[..self.at].trim_end();
        let from = before
            .rfind(char::is_whitespace)
            .map_or(0, |at| at + before[at..].chars().next().map_or(0, char::len_utf8));
        self.text.drain(from..self.at);
        self.at = from;
    }

    /// Takes the line before the cursor away.
    pub(super) fn rub_line(&mut self) {
        let end = self.at;
        self.home();
        self.text.drain(self.at..end);
    }
}
