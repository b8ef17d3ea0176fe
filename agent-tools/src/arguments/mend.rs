//! Mends slips that models make in JSON, where there is one obvious reading.

use std::{collections::BTreeSet, iter::Peekable, str::Chars};

/// Rewrites an object or a list that is nearly JSON, and names the slips. The result may still not be JSON.
pub(super) fn mend(text: &str) -> Option<(String, BTreeSet<&'static str>)> {
    if !text.starts_with(['{', '[']) {
        return None;
    }
    let mut mender = Mender {
        rest: text.chars().peekable(),
        out: String::with_capacity(text.len() + 8),
        open: Vec::new(),
        slips: BTreeSet::new(),
    };
    while let Some(c) = mender.rest.next() {
        mender.token(c)?;
    }
    mender.close_all();
    Some((mender.out, mender.slips))
}

struct Mender<'a> {
    rest: Peekable<Chars<'a>>,
    out: String,
    /// The closing bracket of everything that is open.
    open: Vec<char>,
    slips: BTreeSet<&'static str>,
}

impl Mender<'_> {
    fn token(&mut self, c: char) -> Option<()> {
        match c {
            '"' => self.string(),
            '\'' => self.single_quoted()?,
            '{' | '[' => {
                self.open.push(if c == '{' { '}' } else { ']' });
                self.out.push(c);
            }
            '}' | ']' => self.close(c)?,
            c if c.is_alphanumeric() => self.literal(c),
            c => self.out.push(c),
        }
        Some(())
    }

    /// Closes up to the bracket that `c` belongs to.
    fn close(&mut self, c: char) -> Option<()> {
        if self.open.is_empty() {
            self.slips.insert("removed surplus brackets");
            return Some(());
        }
        let level = self.open.iter().rposition(|open| *open == c)?;
        if level + 1 < self.open.len() {
            self.slips.insert("closed brackets");
        }
        self.close_down_to(level);
        Some(())
    }

    fn close_all(&mut self) {
        if !self.open.is_empty() {
            self.slips.insert("closed brackets");
            self.close_down_to(0);
        }
    }

    fn close_down_to(&mut self, level: usize) {
        let written = self.out.trim_end();
        if let Some(before) = written.strip_suffix(',') {
            self.out.truncate(before.len());
            self.slips.insert("removed trailing commas");
        }
        self.out.extend(self.open.drain(level..).rev());
    }

    /// Everything that is neither a string nor punctuation; words of Python are translated.
    fn literal(&mut self, first: char) {
        let start = self.out.len();
        self.out.push(first);
        while let Some(c) = self.rest.next_if(|c| c.is_alphanumeric() || matches!(c, '.' | '+' | '-' | '_')) {
            self.out.push(c);
        }
        let word = match &self.out[start..] {
            "True" => "true",
            "False" => "false",
            "None" => "null",
            _ => return,
        };
        self.out.truncate(start);
        self.out.push_str(word);
        self.slips.insert("translated Python words");
    }

    fn string(&mut self) {
        self.out.push('"');
        loop {
            match self.rest.next() {
                Some('"') => break self.out.push('"'),
                Some('\\') => self.escape(),
                Some(c) => self.character(c),
                None => break self.close_string(),
            }
        }
    }

    /// A string in single quotes. It must end where a value can end: an apostrophe inside leaves more than one reading.
    fn single_quoted(&mut self) -> Option<()> {
        self.slips.insert("replaced single quotes");
        self.out.push('"');
        loop {
            match self.rest.next() {
                Some('\'') => break,
                Some('"') => self.out.push_str("\\\""),
                Some('\\') => self.escape(),
                Some(c) => self.character(c),
                None => {
                    self.close_string();
                    return Some(());
                }
            }
        }
        self.out.push('"');
        let next = self.rest.clone().find(|c| !c.is_whitespace());
        matches!(next, None | Some(',' | ':' | '}' | ']')).then_some(())
    }

    fn close_string(&mut self) {
        self.out.push('"');
        self.slips.insert("closed a string");
    }

    fn character(&mut self, c: char) {
        if c < ' ' {
            self.out.push_str(&format!("\\u{:04x}", u32::from(c)));
            self.slips.insert("escaped control characters");
        } else {
            self.out.push(c);
        }
    }

    /// What follows a backslash. One that begins no escape of JSON is itself, as in a regular expression or a path.
    fn escape(&mut self) {
        let Some(&c) = self.rest.peek() else { return };
        let is_unicode = || self.rest.clone().skip(1).take(4).filter(char::is_ascii_hexdigit).count() == 4;
        match c {
            '"' | '\\' | '/' | 'b' | 'f' | 'n' | 'r' | 't' => self.out.extend(['\\', c]),
            'u' if is_unicode() => self.out.push_str("\\u"),
            '\'' => self.out.push('\''),
            _ => {
                self.out.push_str("\\\\");
                self.slips.insert("escaped backslashes");
                return;
            }
        }
        self.rest.next();
    }
}
