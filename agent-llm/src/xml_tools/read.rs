//! Tells calls from text while both are being written.

use std::sync::Arc;

use agent_core::ToolSpecs;

use super::{
    call::{self, CALLS, name_of},
    code::Code,
    markup::{CDATA, CDATA_END, LONGEST_TAG, Tag, is_name, tag},
};

/// The tag around several calls.
pub(super) const SEVERAL: &str = "use_parallel_tool_calls";
/// So much of a call is searched for its name before it is whole, in bytes.
const HEAD: usize = 512;

/// A piece of what was said.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Piece {
    /// Text for the user.
    Text(String),
    /// A call of this tool has begun.
    Begins(Arc<str>),
    /// The call that has begun is whole: its arguments.
    Called(String),
}

/// Reads a text piece by piece.
///
/// Text goes through at once, but for blanks that may stand before a call. What follows calls is dropped, as it was
/// written without their results; so is what stands between the calls of a group.
#[derive(Debug)]
pub(super) struct Reader {
    tools: ToolSpecs,
    held: String,
    /// Where in `held` begins what is not given out yet: blanks, the start of a tag, or the call under way.
    from: usize,
    /// Up to here it was looked at.
    seen: usize,
    /// Where in `held` markup began of which no call came yet: if none does, it was text.
    doubtful: Option<usize>,
    state: State,
    code: Code,
    /// Within the tag around several calls.
    several: bool,
}

#[derive(Clone, Debug, PartialEq)]
enum State {
    Text,
    /// Calls were made; only calls may follow.
    Called,
    Call(Open),
    /// Something else followed.
    Over,
}

/// A call under way.
#[derive(Clone, Debug, PartialEq)]
struct Open {
    tag: &'static str,
    name: Option<Arc<str>>,
    /// How many tags of the same name are open inside it.
    inside: usize,
    in_section: bool,
}

/// What a `<` begins.
enum Begins<'a> {
    Nothing,
    /// Perhaps a tag of calls.
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

    /// True if a call is not whole yet.
    pub(super) fn is_in_call(&self) -> bool {
        matches!(self.state, State::Call(_))
    }

    /// Reads more.
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

    /// Ends the text. If it was `cut`, more would have come.
    pub(super) fn end(&mut self, cut: bool, out: &mut Vec<Piece>) {
        if cut && self.state == State::Text && self.held[self.seen..].starts_with('<') {
            self.held.truncate(self.seen); // the start of a tag
        }
        while self.step(true, out) || self.is_in_call() {
            if let State::Call(_) = self.state
                && self.seen == self.held.len()
            {
                self.finish_call(self.held.len(), cut, out); // its end is missing
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

    /// Goes on; false if more must come first.
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

    /// Gives out the text that was looked at, without the blanks at its end.
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

    /// Says which tool is called as soon as that is certain.
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

    /// Ends the call under way, whose text goes up to `end` at most; false if another call began before.
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

/// What the `<` at the start of `text` begins. At the end of all text, what is unfinished is nothing.
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
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn read(pieces: &[&str], cut: bool) -> Vec<Piece> {
        let (mut reader, mut out) = (Reader::new(ToolSpecs::default()), Vec::new());
        pieces.iter().for_each(|piece| reader.push(piece, &mut out));
        reader.end(cut, &mut out);
        joined(out)
    }

    /// Texts in a row as one.
    fn joined(pieces: Vec<Piece>) -> Vec<Piece> {
        let mut out: Vec<Piece> = Vec::new();
        for piece in pieces {
            match (out.last_mut(), piece) {
                (Some(Piece::Text(text)), Piece::Text(more)) => text.push_str(&more),
                (_, piece) => out.push(piece),
            }
        }
        out
    }

    /// The text and the calls in a text.
    fn said(text: &str) -> (String, Vec<(String, String)>) {
        let (mut said, mut calls) = (String::new(), Vec::new());
        for piece in read(&[text], false) {
            match piece {
                Piece::Text(text) => said.push_str(&text),
                Piece::Begins(name) => calls.push((name.to_string(), "unfinished".to_owned())),
                Piece::Called(arguments) => calls.last_mut().expect("it has begun").1 = arguments,
            }
        }
        (said, calls)
    }

    fn calls(text: &str) -> Vec<(String, String)> {
        said(text).1
    }

    fn call(name: &str, arguments: &str) -> (String, String) {
        (name.to_owned(), arguments.to_owned())
    }

    const A: &str = "<tool_use><tool_name>a</tool_name><parameter><x>1</x></parameter></tool_use>";

    #[test]
    fn text_before_a_call_is_text_and_what_follows_it_is_dropped() {
        let text = format!("I will look.\n\n{A}\nIt says 7. {A}");
        assert_eq!(said(&text), ("I will look.".to_owned(), vec![call("a", r#"{"x":"1"}"#)]));
        for plain in ["", "hello ", "a < b", "<tool_uses>", "<tool_use", "x </tool_use> y", "<use it>"] {
            assert_eq!(said(plain), (plain.to_owned(), vec![]), "{plain}");
        }
    }

    #[test]
    fn several_calls_are_read_one_after_the_other_and_in_a_group() {
        let two = vec![call("a", r#"{"x":"1"}"#), call("b", "{}")];
        let b = "<tool_use><tool_name>b</tool_name></tool_use>";
        assert_eq!(calls(&format!("{A}\n{b}")), two);
        let group = format!("<use_parallel_tool_calls>\n first: {A} then: {b}\n</use_parallel_tool_calls>");
        assert_eq!(calls(&group.replace("tool_use>", "parallel_tool>")), two);
        assert_eq!(calls(&group), two);
        assert_eq!(calls(&format!("{group} {A}")).len(), 3);
    }

    #[test]
    fn code_that_shows_a_call_makes_none() {
        for shown in [
            format!("```xml\n{A}\n```\nThat is how."),
            format!("  ~~~~\n{A}\n~~~\n{A}"),
            format!("Write `{A}` to call."),
            format!("Write ``a ` {A}`` to call."),
        ] {
            assert_eq!(said(&shown), (shown.clone(), vec![]), "{shown}");
        }
        assert_eq!(calls(&format!("```\ncode\n```\n{A}")).len(), 1);
        assert_eq!(calls(&format!("It`s an apostrophe.\n{A}")).len(), 1, "a span ends with its line");
    }

    #[test]
    fn broken_calls_are_read_as_far_as_they_go() {
        let open = &A[..A.len() - "</tool_use>".len()];
        assert_eq!(calls(open), [call("a", r#"{"x":"1"}"#)], "a stop sequence leaves the end out");
        assert_eq!(calls(&format!("{open}\n{A}")).len(), 2);
        assert_eq!(calls(&format!("<use_parallel_tool_calls>{open}</use_parallel_tool_calls>{A}")).len(), 2);
        assert_eq!(
            calls("<tool_use><tool_name>a</tool_name><parameter><x>1</parameter></tool_use>"),
            [call("a", r#"{"x":"1"}"#)]
        );
        assert_eq!(calls(r#"<tool_use name="a"><x>1</x></tool_use>"#), [call("a", r#"{"x":"1"}"#)]);
        assert_eq!(calls("<tool_use><x>1</x></tool_use>"), [call("unknown", r#"{"x":"1"}"#)]);
        let none = " <use_parallel_tool_calls> Be quick! </use_parallel_tool_calls> <tool_use></tool_use>";
        assert_eq!(said(none), (none.to_owned(), vec![]), "markup without a call is text");
        assert_eq!(calls(&format!("<tool_use>{A}</tool_use>")), [call("a", r#"{"x":"1"}"#)]);
    }

    #[test]
    fn a_value_may_speak_of_calls_itself() {
        let shown = format!("<tool_use><tool_name>w</tool_name><parameter><text>{A}</text></parameter></tool_use>");
        assert_eq!(calls(&shown), [call("w", &json!({"text": A}).to_string())]);
        let section = "<tool_use><tool_name>w</tool_name><text><![CDATA[</tool_use>]]></text></tool_use>";
        assert_eq!(calls(section), [call("w", r#"{"text":"</tool_use>"}"#)]);
    }

    #[test]
    fn a_call_is_announced_as_soon_as_its_name_is_certain() {
        let (mut reader, mut out) = (Reader::new(ToolSpecs::default()), Vec::new());
        reader.push("Look: <tool_use>\n<tool_name>weather</tool_name>", &mut out);
        assert_eq!(out, [Piece::Text("Look:".into()), Piece::Begins("weather".into())]);
        assert!(reader.is_in_call());
    }

    #[test]
    fn what_was_cut_is_no_call_that_could_be_run_and_no_markup_is_shown() {
        let cut = read(&["Look: <tool_use><tool_name>a</tool_name><parameter><x>half a"], true);
        assert_eq!(cut[..2], [Piece::Text("Look:".into()), Piece::Begins("a".into())]);
        let Piece::Called(arguments) = &cut[2] else { panic!("a call") };
        assert!(serde_json::from_str::<serde_json::Value>(arguments).is_err(), "{arguments}");
        assert_eq!(read(&["Look: <tool_u"], true), [Piece::Text("Look: ".into())]);
        assert_eq!(read(&["Look: <tool_u"], false), [Piece::Text("Look: <tool_u".into())]);
    }

    fn any_text() -> impl Strategy<Value = String> {
        let piece = prop::sample::select(vec![
            "text ",
            "\n",
            " ",
            "`",
            "```",
            "~~~\n",
            "<",
            ">",
            "é🦀",
            "<tool_use>",
            "</tool_use>",
            "<parallel_tool>",
            "</parallel_tool>",
            "<use_parallel_tool_calls>",
            "</use_parallel_tool_calls>",
            "<tool_name>",
            "a",
            "</tool_name>",
            "<parameter>",
            "</parameter>",
            "<x>",
            "</x>",
            "<y name=\"z\">",
            "</y>",
            "{\"k\": 1}",
            "<![CDATA[",
            "]]>",
            "]",
            "&lt;",
            "&",
        ]);
        prop_oneof![
            prop::collection::vec(piece, 0..30).prop_map(|pieces| pieces.concat()),
            (".{0,20}", ".{0,20}").prop_map(|(before, after)| format!("{before}{A}{after}")),
        ]
    }

    proptest! {
        #[test]
        fn where_the_pieces_end_does_not_matter(
            text in any_text(),
            places in prop::collection::vec(any::<prop::sample::Index>(), 0..8),
            cut in any::<bool>(),
        ) {
            let mut ends: Vec<_> = places.iter().map(|place| place.index(text.len() + 1)).collect();
            ends.retain(|end| text.is_char_boundary(*end));
            ends.sort_unstable();
            ends.push(text.len());
            let starts = [0].into_iter().chain(ends.clone());
            let pieces: Vec<_> = starts.zip(ends.clone()).map(|(start, end)| &text[start..end]).collect();
            prop_assert_eq!(read(&pieces, cut), read(&[&text], cut));
            let bytes: Vec<_> = text.split_inclusive(|_: char| true).collect();
            prop_assert_eq!(read(&bytes, cut), read(&[&text], cut));
        }
    }
}
