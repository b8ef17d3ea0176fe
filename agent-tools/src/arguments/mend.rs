//! Repair of JSON syntax errors that models make, where there is one obvious reading.

use std::{collections::BTreeSet, iter::Peekable, str::Chars};

/// Rewritten text that was nearly JSON. It may still be invalid.
pub(super) struct Mended {
    pub(super) json: String,
    /// Names of the repairs.
    pub(super) slips: BTreeSet<&'static str>,
    /// True if a string or brackets were open at the end of the text.
    pub(super) is_truncated: bool,
}

/// Rewrites an object or a list that is nearly JSON, and names the repairs. Returns `None` for
/// other text.
pub(super) fn mend(text: &str) -> Option<Mended> {
    if !text.starts_with(['{', '[']) {
        return None;
    }
    let mut mender = Mender {
        rest: text.chars().peekable(),
        out: String::with_capacity(text.len() + 8),
        open: Vec::new(),
        slips: BTreeSet::new(),
        is_truncated: false,
    };
    while let Some(c) = mender.rest.next() {
        mender.token(c)?;
    }
    mender.close_all();
    Some(Mended { json: mender.out, slips: mender.slips, is_truncated: mender.is_truncated })
}

struct Mender<'a> {
    rest: Peekable<Chars<'a>>,
    out: String,
    /// Closing brackets of everything that is open.
    open: Vec<char>,
    slips: BTreeSet<&'static str>,
    is_truncated: bool,
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

    /// Closes brackets up to the one that `c` matches.
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
            self.is_truncated = true;
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

    /// Reads everything that is neither a string nor punctuation; Python's literals are translated.
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

    /// Reads a string in single quotes. It must end where a value can end: an apostrophe inside
    /// would be ambiguous.
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
        self.is_truncated = true;
    }

    fn character(&mut self, c: char) {
        if c < ' ' {
            self.out.push_str(&format!("\\u{:04x}", u32::from(c)));
            self.slips.insert("escaped control characters");
        } else {
            self.out.push(c);
        }
    }

    /// Copies the characters after a backslash. A backslash that begins no JSON escape is kept as a
    /// character, as in a regular expression or a path.
    fn escape(&mut self) {
        let Some(&c) = self.rest.peek() else { return };
        match c {
            '"' | '\\' | '/' | 'b' | 'f' | 'n' | 'r' | 't' => self.out.extend(['\\', c]),
            'u' if self.code_unit(1).is_some() => return self.unicode(),
            '\'' => self.out.push('\''),
            _ => {
                self.out.push_str("\\\\");
                self.slips.insert("escaped backslashes");
                return;
            }
        }
        self.rest.next();
    }

    /// Reads the four hexadecimal digits after this many characters.
    fn code_unit(&self, skipped: usize) -> Option<u16> {
        let digits: String = self.rest.clone().skip(skipped).take(4).collect();
        let is_hex = digits.len() == 4 && digits.bytes().all(|digit| digit.is_ascii_hexdigit());
        is_hex.then(|| u16::from_str_radix(&digits, 16).ok()).flatten()
    }

    /// Copies an escaped UTF-16 code unit, and its second half if it is a surrogate pair. An
    /// unpaired surrogate becomes U+FFFD.
    fn unicode(&mut self) {
        let Some(first) = self.code_unit(1) else { return };
        self.rest.by_ref().take(5).for_each(drop);
        let follows_escape = || self.rest.clone().take(2).eq(['\\', 'u']);
        match first {
            0xd800..0xdc00 if follows_escape() && matches!(self.code_unit(2), Some(0xdc00..0xe000)) => {
                self.out.push_str(&format!("\\u{first:04x}"));
                self.out.extend(self.rest.by_ref().take(6));
            }
            0xd800..0xe000 => {
                self.out.push_str("\\ufffd");
                self.slips.insert("replaced half characters");
            }
            _ => self.out.push_str(&format!("\\u{first:04x}")),
        }
    }
}
