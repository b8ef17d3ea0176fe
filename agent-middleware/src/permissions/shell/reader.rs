//! From the text of a line to its commands.

use super::{
    Command, Line, Word,
    inner::{Inner, is_shell},
    word::Draft,
};

/// How deep lines may lie in lines. Deeper, a line is unclear.
const DEEPEST: usize = 16;

/// Words after which another command begins, and words that end what they began.
const PASSED_OVER: &[&str] = &["!", "do", "done", "elif", "else", "fi", "if", "then", "until", "while", "{", "}"];

/// Words that begin what is not read.
const NOT_READ: &[&str] = &["[[", "case", "coproc", "for", "function", "select"];

/// Files that may be written to: nothing is kept of it.
const NOWHERE: &[&str] = &["/dev/null", "/dev/stderr", "/dev/stdout"];

pub(super) fn read(text: &str, depth: usize) -> Line {
    let mut reader = Reader::new(text, depth);
    if depth > DEEPEST {
        return reader.line;
    }
    reader.line.clear = true;
    reader.list(None);
    if !reader.heredocs.is_empty() {
        reader.line.clear = false;
    }
    reader.line
}

struct Reader {
    text: Vec<char>,
    at: usize,
    depth: usize,
    line: Line,
    /// Texts that begin with the next line.
    heredocs: Vec<Heredoc>,
}

struct Heredoc {
    end: String,
    /// Nothing takes the place of anything in it.
    literal: bool,
    strips_tabs: bool,
}

impl Reader {
    fn new(text: &str, depth: usize) -> Self {
        Self { text: text.chars().collect(), at: 0, depth, line: Line::default(), heredocs: Vec::new() }
    }

    fn peek(&self) -> Option<char> {
        self.text.get(self.at).copied()
    }

    fn next_is(&self, text: &str) -> bool {
        let mut wanted = text.chars().enumerate();
        wanted.all(|(i, c)| self.text.get(self.at + i) == Some(&c))
    }

    fn skip(&mut self, text: &str) -> bool {
        let is_next = self.next_is(text);
        self.at += if is_next { text.len() } else { 0 };
        is_next
    }

    fn unclear(&mut self) {
        self.line.clear = false;
    }

    /// Reads commands up to `close`, or to the end.
    fn list(&mut self, close: Option<char>) {
        self.depth += 1;
        if self.depth > DEEPEST {
            self.unclear();
            self.at = self.text.len();
        }
        let mut command = Command::default();
        loop {
            self.blanks();
            let Some(c) = self.peek() else {
                self.line.clear &= close.is_none();
                break;
            };
            match c {
                c if Some(c) == close => {
                    self.at += 1;
                    break;
                }
                '\n' => {
                    self.at += 1;
                    self.end(&mut command);
                    self.heredoc_bodies();
                }
                '&' if self.next_is("&>") => self.redirect(&mut command),
                ';' | '&' | '|' => {
                    self.at += 1;
                    self.end(&mut command);
                }
                '(' => {
                    // After a word it makes a function or a list; twice it makes arithmetic.
                    if !command.words.is_empty() || command.assigns || self.next_is("((") {
                        self.unclear();
                    }
                    self.at += 1;
                    self.end(&mut command);
                    self.list(Some(')'));
                }
                ')' => {
                    self.unclear();
                    self.at += 1;
                    self.end(&mut command);
                }
                '<' | '>' => self.redirect(&mut command),
                '#' => self.at += self.text[self.at..].iter().take_while(|c| **c != '\n').count(),
                _ => self.word_of(&mut command),
            }
        }
        self.end(&mut command);
        self.depth -= 1;
    }

    fn blanks(&mut self) {
        while self.skip(" ") || self.skip("\t") || self.skip("\\\n") {}
    }

    fn end(&mut self, command: &mut Command) {
        let command = std::mem::take(command);
        if command.assigns || !command.words.is_empty() {
            Inner::add(&mut self.line, command, self.depth);
        }
    }

    fn word_of(&mut self, command: &mut Command) {
        let word = self.word();
        if word.plain && word.text.bytes().all(|c| c.is_ascii_digit()) && matches!(self.peek(), Some('<' | '>')) {
            return self.redirect(command); // the number of what is redirected
        }
        if command.words.is_empty() {
            if word.plain && PASSED_OVER.contains(&word.text.as_str()) {
                return;
            }
            if word.plain && NOT_READ.contains(&word.text.as_str()) {
                self.unclear();
            }
            let name = word.text.split_once('=').map(|(name, _)| name.trim_end_matches('+'));
            if name.is_some_and(|name| !name.is_empty() && name.chars().all(is_name)) {
                command.assigns = true;
                return;
            }
        }
        command.words.push(word);
    }

    fn word(&mut self) -> Word {
        let mut draft = Draft::default();
        while let Some(c) = self.peek() {
            match c {
                ' ' | '\t' | '\n' | ';' | '&' | '|' | '<' | '>' | '(' | ')' => break,
                '\\' => {
                    self.at += 1;
                    draft.quoted = true;
                    match self.peek() {
                        None => self.unclear(),
                        Some('\n') => self.at += 1,
                        Some(c) => self.take(&mut draft, c),
                    }
                }
                '\'' => {
                    self.at += 1;
                    self.single_quoted(&mut draft, false);
                }
                '"' => {
                    self.at += 1;
                    self.double_quoted(&mut draft);
                }
                '$' | '`' => self.expansion(&mut draft, false),
                '*' | '?' | '[' => {
                    draft.glob = true;
                    self.take(&mut draft, c);
                }
                '{' => {
                    let next = self.text.get(self.at + 1).copied();
                    draft.split |= next.is_some_and(|c| c != '}' && !c.is_whitespace());
                    self.take(&mut draft, c);
                }
                c => {
                    self.line.clear &= !c.is_control();
                    self.take(&mut draft, c);
                }
            }
        }
        draft.finish()
    }

    fn take(&mut self, draft: &mut Draft, c: char) {
        draft.text.push(c);
        self.at += 1;
    }

    /// Reads up to the closing quote. With `escapes` it is the form in which a backslash means something.
    fn single_quoted(&mut self, draft: &mut Draft, escapes: bool) {
        draft.quoted = true;
        while let Some(c) = self.peek() {
            self.at += 1;
            match c {
                '\'' => return,
                '\\' if escapes => self.at += 1,
                c => draft.text.push(c),
            }
        }
        self.unclear();
    }

    fn double_quoted(&mut self, draft: &mut Draft) {
        draft.quoted = true;
        while let Some(c) = self.peek() {
            match c {
                '"' => {
                    self.at += 1;
                    return;
                }
                '\\' => {
                    self.at += 1;
                    match self.peek() {
                        Some('\n') => self.at += 1,
                        Some(c @ ('$' | '`' | '"' | '\\')) => self.take(draft, c),
                        _ => draft.text.push('\\'),
                    }
                }
                '$' | '`' => self.expansion(draft, true),
                c => self.take(draft, c),
            }
        }
        self.unclear();
    }

    /// Reads what something else takes the place of: a variable, the output of a command.
    fn expansion(&mut self, draft: &mut Draft, quoted: bool) {
        if self.skip("`") {
            self.backticks();
        } else if self.next_is("$(") {
            if self.next_is("$((") {
                self.unclear();
            }
            self.at += 2;
            self.list(Some(')'));
        } else if !quoted && self.skip("$'") {
            self.unclear();
            return self.single_quoted(draft, true);
        } else if !quoted && self.next_is("$\"") {
            self.at += 1;
            return;
        } else {
            self.at += 1;
            let braced = self.skip("{");
            let before = self.at;
            while self.peek().is_some_and(is_name) {
                self.at += 1;
            }
            if braced {
                if !self.skip("}") {
                    self.unclear(); // what follows is read as part of the word
                }
            } else if before == self.at {
                if self.peek().is_some_and(|c| "?$!@*#-".contains(c)) {
                    self.at += 1;
                } else {
                    draft.text.push('$');
                    return;
                }
            }
        }
        if quoted {
            draft.filled = true;
        } else {
            draft.split = true;
        }
        if draft.text.is_empty() {
            draft.text.push('$'); // so that it does not seem to begin with what follows
        }
    }

    fn backticks(&mut self) {
        let mut inside = String::new();
        while let Some(c) = self.peek() {
            self.at += 1;
            match c {
                '`' => return Inner::take_in(&mut self.line, read(&inside, self.depth + 1), false),
                '\\' => match self.peek() {
                    Some(c @ ('`' | '\\' | '$')) => {
                        self.at += 1;
                        inside.push(c);
                    }
                    _ => inside.push('\\'),
                },
                c => inside.push(c),
            }
        }
        self.unclear();
    }

    /// Reads a redirection: what is written is a command of its own, what is read one more argument.
    fn redirect(&mut self, command: &mut Command) {
        if self.skip("<(") || self.skip(">(") {
            self.list(Some(')'));
            return command.words.push(Word::unknown());
        }
        if self.skip("<<<") {
            let text = self.target();
            return command.words.push(text);
        }
        if self.skip("<<") {
            let strips_tabs = self.skip("-");
            self.blanks();
            let end = self.word();
            self.line.clear &= end.exact && !end.text.is_empty();
            return self.heredocs.push(Heredoc { end: end.text, literal: !end.plain, strips_tabs });
        }
        let writes = self.next_is("<>") || !self.next_is("<");
        let signs = ["&>>", "&>", "<>", "<&", ">>", ">&", ">|", "<", ">"];
        let duplicates = self.next_is("<&") || self.next_is(">&");
        let _ = signs.iter().any(|sign| self.skip(sign));
        let file = self.target();
        let is_number = file.exact && file.text.bytes().all(|c| c.is_ascii_digit() || c == b'-');
        if duplicates && is_number {
            return;
        }
        if !writes {
            command.words.push(file);
        } else if !(file.exact && NOWHERE.contains(&file.text.as_str())) {
            let words = vec![Word::literal(">"), file];
            self.line.commands.push(Command { words, ..Command::default() });
        }
    }

    fn target(&mut self) -> Word {
        self.blanks();
        let before = self.at;
        let word = self.word();
        self.line.clear &= self.at > before;
        word
    }

    /// Reads the texts that were announced on the line before. A shell's is a program.
    fn heredoc_bodies(&mut self) {
        for heredoc in std::mem::take(&mut self.heredocs) {
            let mut body = String::new();
            loop {
                if self.at >= self.text.len() {
                    self.unclear();
                    break;
                }
                let length = self.text[self.at..].iter().take_while(|c| **c != '\n').count();
                let line: String = self.text[self.at..self.at + length].iter().collect();
                self.at = (self.at + length + 1).min(self.text.len());
                let line = if heredoc.strips_tabs { line.trim_start_matches('\t') } else { &line };
                if line == heredoc.end {
                    break;
                }
                body.push_str(line);
                body.push('\n');
            }
            if self.line.commands.iter().any(is_shell) {
                Inner::take_in(&mut self.line, read(&body, self.depth + 1), true);
            }
            if !heredoc.literal {
                let mut inside = Self::new(&body, self.depth + 1);
                inside.line.clear = true;
                inside.expansions();
                Inner::take_in(&mut self.line, inside.line, false);
            }
        }
    }

    /// Reads a text in which expansions alone mean anything.
    fn expansions(&mut self) {
        let mut draft = Draft::default();
        while let Some(c) = self.peek() {
            match c {
                '\\' => self.at += 2,
                '$' | '`' => self.expansion(&mut draft, true),
                _ => self.at += 1,
            }
        }
    }
}

fn is_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}
