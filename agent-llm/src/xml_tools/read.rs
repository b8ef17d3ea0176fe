//! Incremental separation of calls and text.

use std::sync::Arc;

use agent_core::ToolSpecs;

use super::{
    call::{self, CALLS, name_of},
    code::Code,
    markup::{CDATA, CDATA_END, LONGEST_TAG, Tag, is_name, tag},
};

/// Tag around several calls.
pub(super) const SEVERAL: &str = "use_parallel_tool_calls";
/// Length of a call's beginning that is searched for its name before the call is complete, in
/// bytes.
const HEAD: usize = 512;

/// A piece of the model's output.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Piece {
    /// Text for the user.
    Text(String),
    /// A call of this tool has begun.
    Begins(Arc<str>),
    /// The call that has begun is complete, with these arguments.
    Called(String),
}

/// Incremental parser of a model's output.
///
/// Text passes through at once, except white space that may precede a call. Text after the calls,
/// and between the calls of a group, is dropped, because it was written without their results.
#[derive(Debug)]
pub(super) struct Reader {
    tools: ToolSpecs,
    held: String,
    /// Offset in `held` of the output that is not emitted yet: white space, the start of a tag, or
    /// an open call.
    from: usize,
    /// Offset up to which the text has been scanned.
    seen: usize,
    /// Offset in `held` of markup without a call so far: if none follows, it was text.
    doubtful: Option<usize>,
    state: State,
    code: Code,
    /// True inside the tag around several calls.
    several: bool,
}

#[derive(Clone, Debug, PartialEq)]
enum State {
    Text,
    /// Calls were made; only calls may follow.
    Called,
    Call(Open),
    /// Text followed the calls.
    Over,
}

/// A call in progress.
#[derive(Clone, Debug, PartialEq)]
struct Open {
    tag: &'static str,
    name: Option<Arc<str>>,
    /// Number of open nested tags of the same name.
    inside: usize,
    in_section: bool,
}

/// Meaning of a `<`.
enum Begins<'a> {
    Nothing,
    /// Possibly a tag of calls.
    Unknown,
    Tag(&'static str, Tag<'a>),
}

impl Reader {
    pub(super) fn new(tools: ToolSpecs) -> Self {
        Self {
            tools,
            held: String::new(),
            from: 0,
            seen: 0,
            doubtful: None,
            state: State::Text,
            code: Code::default(),
            several: false,
        }
    }

    /// Returns true if a call is incomplete.
    pub(super) fn is_in_call(&self) -> bool {
        matches!(self.state, State::Call(_))
    }

    /// Parses more text.
    pub(super) fn push(&mut self, text: &str, out: &mut Vec<Piece>) {
        self.held.push_str(text);
        while self.step(false, out) {}
        self.release(out);
        self.announce(out);
        let done = self.doubtful.unwrap_or(self.from);
        self.held.drain(..done);
        (self.from, self.seen) = (self.from - done, self.seen - done);
        self.doubtful = self.doubtful.map(|_| 0);
    }

    /// Ends the text. `cut` is true if it was truncated.
    pub(super) fn end(&mut self, cut: bool, out: &mut Vec<Piece>) {
        if cut && self.state == State::Text && self.held[self.seen..].starts_with('<') {
            self.held.truncate(self.seen); // the start of a tag
        }
        while self.step(true, out) || self.is_in_call() {
            if let State::Call(_) = self.state
                && self.seen == self.held.len()
            {
                self.finish_call(self.held.len(), cut, out); // its end tag is missing
            }
        }
        if let Some(start) = self.doubtful.take() {
            (self.from, self.state) = (start, State::Text);
        }
        if self.state == State::Text && self.from < self.held.len() {
            out.push(Piece::Text(self.held[self.from..].to_owned()));
        }
        self.held.clear();
        (self.from, self.seen, self.code, self.several) = (0, 0, Code::default(), false);
    }

    /// Advances by one step; returns false if more text is needed.
    fn step(&mut self, ends: bool, out: &mut Vec<Piece>) -> bool {
        match &self.state {
            State::Text => self.in_text(ends, out),
            State::Called => self.after_calls(ends, out),
            State::Call(_) => self.in_call(ends, out),
            State::Over => {
                (self.from, self.seen) = (self.held.len(), self.held.len());
                false
            }
        }
    }

    /// Emits the scanned text, without trailing white space.
    fn release(&mut self, out: &mut Vec<Piece>) {
        if self.state == State::Text {
            let text = self.held[self.from..self.seen].trim_end();
            self.from += text.len();
            if !text.is_empty() {
                out.push(Piece::Text(text.to_owned()));
            }
        }
    }

    fn in_text(&mut self, ends: bool, out: &mut Vec<Piece>) -> bool {
        let rest = &self.held[self.seen..];
        let Some(next) = rest.chars().next() else { return false };
        let passed = match next {
            '`' | '~' => {
                let marks = rest.len() - rest.trim_start_matches(next).len();
                if marks == rest.len() && !ends {
                    return false; // there may be more of them
                }
                self.code.marks(next, marks);
                marks
            }
            '\n' => {
                self.code.line_break();
                1
            }
            '<' if !self.code.is_open() => match begins(rest, ends) {
                Begins::Unknown => return false,
                Begins::Tag(_, tag) if !tag.closes => {
                    self.release(out);
                    self.doubtful = Some(self.from);
                    (self.from, self.state) = (self.seen, State::Called);
                    return true;
                }
                _ => {
                    self.code.text("<");
                    1
                }
            },
            _ => {
                let first = next.len_utf8();
                let plain = rest[first..].find(['`', '~', '\n', '<']).map_or(rest.len(), |end| first + end);
                self.code.text(&rest[..plain]);
                plain
            }
        };
        self.seen += passed;
        true
    }

    fn after_calls(&mut self, ends: bool, out: &mut Vec<Piece>) -> bool {
        let rest = self.held[self.from..].trim_start();
        let start = self.held.len() - rest.len();
        (self.from, self.seen) = (start, start);
        if rest.is_empty() {
            return false;
        }
        let passed = match begins(rest, ends) {
            Begins::Unknown => return false,
            Begins::Tag(SEVERAL, tag) => {
                self.several = !tag.closes;
                tag.length
            }
            Begins::Tag(name, tag) => {
                if !tag.closes {
                    let label: Option<Arc<str>> = tag.label.map(Arc::from);
                    out.extend(label.clone().map(Piece::Begins));
                    self.state = State::Call(Open { tag: name, name: label, inside: 0, in_section: false });
                }
                tag.length
            }
            Begins::Nothing if self.several => {
                let next = rest.char_indices().skip(1).find(|(_, c)| *c == '<');
                next.map_or(rest.len(), |(at, _)| at)
            }
            Begins::Nothing => {
                self.state = State::Over;
                0
            }
        };
        (self.from, self.seen) = (start + passed, start + passed);
        true
    }

    fn in_call(&mut self, ends: bool, out: &mut Vec<Piece>) -> bool {
        let State::Call(open) = &mut self.state else { return false };
        let rest = &self.held[self.seen..];
        if open.in_section {
            let end = rest.find(CDATA_END);
            open.in_section = end.is_none() && !ends;
            let may_begin = (rest.len() - rest.trim_end_matches(']').len()).min(CDATA_END.len() - 1);
            self.seen += end.map_or(rest.len() - may_begin, |end| end + CDATA_END.len());
            return !open.in_section;
        }
        let Some(start) = rest.find('<').map(|at| self.seen + at) else {
            self.seen = self.held.len();
            return false;
        };
        self.seen = start;
        let rest = &self.held[start..];
        if rest.starts_with(CDATA) {
            open.in_section = true;
            self.seen += CDATA.len();
            return true;
        }
        if CDATA.starts_with(rest) && !ends {
            return false;
        }
        let passed = match begins(rest, ends) {
            Begins::Unknown => return false,
            Begins::Tag(name, tag) if name == open.tag => {
                match (tag.closes, open.inside) {
                    (true, 0) => {
                        let after = start + tag.length;
                        if self.finish_call(start, false, out) {
                            (self.from, self.seen) = (after, after);
                        }
                        return true;
                    }
                    (true, _) => open.inside -= 1,
                    (false, _) => open.inside += 1,
                }
                tag.length
            }
            Begins::Tag(SEVERAL, tag) if tag.closes && self.several => {
                self.finish_call(start, false, out);
                return true;
            }
            Begins::Tag(_, tag) => tag.length,
            Begins::Nothing => 1,
        };
        self.seen += passed;
        true
    }

    /// Emits the name of the called tool once it is certain.
    fn announce(&mut self, out: &mut Vec<Piece>) {
        let State::Call(open) = &mut self.state else { return };
        let body = &self.held[self.from..];
        let head = (0..=HEAD.min(body.len())).rev().find(|end| body.is_char_boundary(*end)).unwrap_or(0);
        let name = open.name.is_none().then(|| name_of(&body[..head])).flatten();
        if let Some(name) = name {
            out.push(Piece::Begins(name.into()));
            open.name = Some(name.into());
        }
    }

    /// Ends the open call, whose text extends at most to `end`; returns false if another call began
    /// before.
    fn finish_call(&mut self, end: usize, cut: bool, out: &mut Vec<Piece>) -> bool {
        self.announce(out);
        let State::Call(open) = std::mem::replace(&mut self.state, State::Called) else { return true };
        let body = &self.held[self.from..end];
        let call = call::read(body, open.name.as_deref(), &self.tools, cut);
        let is_whole = call.end == body.len();
        if open.name.is_some() {
            self.doubtful = None;
            out.push(Piece::Called(call.arguments));
        } else if !body[..call.end].trim().is_empty() {
            self.doubtful = None;
            out.extend([Piece::Begins(call.name.into()), Piece::Called(call.arguments)]);
        }
        self.from += call.end;
        self.seen = self.from;
        is_whole
    }
}

/// Classifies the `<` at the start of `text`. If `ends`, an incomplete tag is plain text.
fn begins(text: &str, ends: bool) -> Begins<'_> {
    let names = || CALLS.into_iter().chain([SEVERAL]);
    if let Some(tag) = tag(text) {
        let name = names().find(|name| name.eq_ignore_ascii_case(tag.name));
        return name.map_or(Begins::Nothing, |name| Begins::Tag(name, tag));
    }
    let Some(word) = text.strip_prefix('<') else { return Begins::Nothing };
    let word = word.strip_prefix('/').unwrap_or(word);
    let (word, rest) = word.split_at(word.find(|c| !is_name(c)).unwrap_or(word.len()));
    let is_start = |name: &str| name.get(..word.len()).is_some_and(|start| start.eq_ignore_ascii_case(word));
    let is_name = |name: &str| rest.is_empty() || name.len() == word.len();
    let may_be_tag = text.len() < LONGEST_TAG && !rest.contains(['<', '>']);
    if !ends && may_be_tag && names().any(|name| is_start(name) && is_name(name)) {
        Begins::Unknown
    } else {
        Begins::Nothing
    }
}

#[cfg(test)]
mod tests;
