//! Application of an update to a file's text.

use agent_core::{Error, Result};

use super::parse::{Chunk, Line};

/// Form in which lines are compared.
type Form = fn(&str) -> &str;

/// Forms from the most exact to the least exact: models copy white space badly.
const FORMS: [Form; 3] = [|line| line, str::trim_end, str::trim];

/// Maximum number of places that are looked for: more are not shown.
const PLACES: usize = 6;

/// Applies the chunks in order; returns the new text, and the lines at which the chunks were found,
/// counted from 1. Unchanged lines keep their line endings; new ones get that of the first line.
pub(super) fn apply(text: &str, chunks: &[Chunk], shown: &str) -> Result<(String, Vec<usize>)> {
    let whole: Vec<&str> = text.split_inclusive('\n').collect();
    let lines: Vec<&str> = whole.iter().map(|line| line.trim_end_matches(['\r', '\n'])).collect();
    let end = if whole.first().is_some_and(|line| line.ends_with("\r\n")) { "\r\n" } else { "\n" };
    let mut out = Out { text: String::with_capacity(text.len()), end };
    let (mut at, mut places) = (0, Vec::new());
    for chunk in chunks {
        let (start, changes) = place(&lines, at, chunk, shown)?;
        places.push(start + 1);
        out.kept(&whole[at..start]);
        at = start;
        for line in changes {
            match line {
                // Uses the file's spelling, not the patch's.
                Line::Same(_) => {
                    out.kept(&whole[at..=at]);
                    at += 1;
                }
                Line::Old(_) => at += 1,
                Line::New(text) => out.new_line(text),
            }
        }
    }
    out.kept(&whole[at..]);
    if !text.is_empty() && !text.ends_with('\n') && out.text.ends_with(end) {
        out.text.truncate(out.text.len() - end.len());
    }
    Ok((out.text, places))
}

struct Out<'a> {
    text: String,
    end: &'a str,
}

impl Out<'_> {
    fn kept(&mut self, lines: &[&str]) {
        lines.iter().for_each(|line| self.push(line));
    }

    fn new_line(&mut self, line: &str) {
        self.push(line);
        self.text.push_str(self.end);
    }

    /// Adds a line. The last line of the file may have had no line ending, and may no longer be the
    /// last.
    fn push(&mut self, line: &str) {
        if !self.text.is_empty() && !self.text.ends_with('\n') {
            self.text.push_str(self.end);
        }
        self.text.push_str(line);
    }
}

/// Returns the first line of a chunk's match at or after `from`, and the chunk, without the empty
/// lines at its edges if it matches only without them: those are for readability.
fn place<'a>(lines: &[&str], from: usize, chunk: &'a Chunk, shown: &str) -> Result<(usize, &'a [Line])> {
    let whole = find(lines, from, chunk, &chunk.lines, shown);
    let bare = |line: &Line| *line != Line::Same(String::new());
    let first = chunk.lines.iter().position(bare).unwrap_or(0);
    let last = chunk.lines.iter().rposition(bare).map_or(0, |last| last + 1);
    let inner = &chunk.lines[first.min(last)..last];
    match whole {
        Err(_) if inner.len() < chunk.lines.len() && !inner.is_empty() => {
            find(lines, from, chunk, inner, shown).or(whole).map(|at| (at, inner))
        }
        found => found.map(|at| (at, &chunk.lines[..])),
    }
}

fn find(lines: &[&str], from: usize, chunk: &Chunk, wanted: &[Line], shown: &str) -> Result<usize> {
    let (from, anchors) = anchored(lines, from, &chunk.anchors);
    let old: Vec<&str> = wanted.iter().filter_map(Line::old).collect();
    if old.is_empty() {
        if anchors == Anchors::Missing {
            let wanted = chunk.anchors.join("', '");
            return Err(Error::tool(format!("'{shown}' has no line '{wanted}'")));
        }
        return Ok(if chunk.anchors.is_empty() || chunk.at_end { lines.len() } else { from });
    }
    let last = lines.len().checked_sub(old.len()).filter(|last| *last >= from);
    let fits = |start: usize, form: Form| lines[start..].iter().zip(&old).all(|(line, old)| form(line) == form(old));
    if chunk.at_end
        && let Some(last) = last
        && FORMS.iter().any(|form| fits(last, *form))
    {
        return Ok(last);
    }
    let found = last.and_then(|_| FORMS.iter().map(|form| places(lines, from, &old, *form)).find(|at| !at.is_empty()));
    match found.as_deref() {
        // The first match after an anchor, or after the previous change, is the intended one.
        Some([at]) => Ok(*at),
        Some([at, ..]) if anchors == Anchors::Found || from > 0 => Ok(*at),
        Some(places) => {
            let numbers: Vec<_> = places.iter().take(PLACES - 1).map(|at| (at + 1).to_string()).collect();
            let more = if places.len() < PLACES { "" } else { "more than " };
            let wanted = old.join("\n");
            Err(Error::tool(format!(
                "these lines are in '{shown}' {more}{} times, at lines {}: add lines around those that are meant, or name the function in a line that begins with @@:\n{wanted}",
                numbers.len(),
                numbers.join(", ")
            )))
        }
        None => {
            let wanted = old.join("\n");
            Err(Error::tool(format!(
                "these lines are not in '{shown}' after line {from}; read it again and copy them exactly:\n{wanted}"
            )))
        }
    }
}

/// The first lines at or after `from` at which the lines `old` begin, in linear time (Knuth, Morris and Pratt).
fn places(lines: &[&str], from: usize, old: &[&str], form: Form) -> Vec<usize> {
    // For each length, that of the longest proper beginning that is an end too.
    let mut borders = vec![0; old.len() + 1];
    let longer = |borders: &[usize], mut length: usize, line: &str| {
        while length > 0 && (length == old.len() || form(old[length]) != form(line)) {
            length = borders[length];
        }
        if length < old.len() && form(old[length]) == form(line) { length + 1 } else { length }
    };
    for at in 1..old.len() {
        borders[at + 1] = longer(&borders, borders[at], old[at]);
    }
    let (mut found, mut length) = (Vec::new(), 0);
    for (at, line) in lines.iter().enumerate().skip(from) {
        length = longer(&borders, length, line);
        if length == old.len() {
            found.push(at + 1 - length);
            if found.len() == PLACES {
                break;
            }
        }
    }
    found
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Anchors {
    /// No anchors are given.
    None,
    Found,
    /// An anchor is not in the file: the lines of the chunk must suffice.
    Missing,
}

/// Returns the line after the last anchor. An anchor that only occurs earlier names the current
/// position, such as a repeated class name.
fn anchored(lines: &[&str], mut from: usize, anchors: &[String]) -> (usize, Anchors) {
    let mut state = Anchors::None;
    for anchor in anchors {
        let in_lines = |from: usize| {
            let is_anchor = |at: usize, form: Form| form(lines[at]) == form(anchor);
            let exact = FORMS.iter().find_map(|form| (from..lines.len()).find(|at| is_anchor(*at, *form)));
            // A signature may be named by its beginning.
            exact.or_else(|| (from..lines.len()).find(|at| lines[*at].trim().starts_with(anchor.trim())))
        };
        match in_lines(from) {
            Some(at) => (from, state) = (at + 1, Anchors::Found),
            None if in_lines(0).is_some() => state = Anchors::Found,
            None => return (from, Anchors::Missing),
        }
    }
    (from, state)
}

impl Line {
    /// Returns the previous line, if there was one.
    fn old(&self) -> Option<&str> {
        match self {
            Self::Same(text) | Self::Old(text) => Some(text),
            Self::New(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workspace::patch::parse::{Change, parse};

    fn patched(text: &str, body: &str) -> Result<String> {
        let patch = format!("*** Begin Patch\n*** Update File: f\n{body}\n*** End Patch");
        let changes = parse(&patch)?;
        let [Change::Update { chunks, .. }] = &changes[..] else { panic!("{changes:?}") };
        apply(text, chunks, "f").map(|(text, _)| text)
    }

    #[test]
    fn an_update_changes_its_lines_and_leaves_all_others() {
        let text = "a\nb\nc\nd\n";
        for (body, expected) in [
            ("@@\n a\n-b\n+B\n c", "a\nB\nc\nd\n"),
            ("-a\n", "b\nc\nd\n"),
            ("+new", "a\nb\nc\nd\nnew\n"),
            ("@@ b\n+new", "a\nb\nnew\nc\nd\n"),
            ("@@ a\n@@ b\n-c\n+C", "a\nb\nC\nd\n"),
            ("@@\n-a\n+A\n@@\n-d\n+D\n*** End of File", "A\nb\nc\nD\n"),
            ("@@ -1,2 +1,2 @@\n a\n-b", "a\nc\nd\n"),
            ("@@ -2,1 +2,1 @@ a\n-b", "a\nc\nd\n"),
            ("@@ is nowhere\n-b", "a\nc\nd\n"),
            ("@@ a\n-b\n@@ a\n-c", "a\nd\n"),
            ("\n@@\n-a\n\n@@\n-c\n", "b\nd\n"),
        ] {
            assert_eq!(patched(text, body).expect("applies"), expected, "{body}");
        }
    }

    #[test]
    fn what_is_named_by_its_beginning_and_in_any_script_is_found() {
        let text = "class A(B):\n    x\nclass C:\n    x\n日本\n";
        assert_eq!(patched(text, "@@ class C\n-    x").expect("applies"), "class A(B):\n    x\nclass C:\n日本\n");
        assert_eq!(patched(text, "@@ class A\n-    x").expect("applies"), "class A(B):\nclass C:\n    x\n日本\n");
        assert!(patched(text, "日本\n+x").expect_err("is refused").message().contains("begin with ' '"));
    }

    #[test]
    fn white_space_may_differ_and_lines_that_stay_keep_theirs() {
        assert_eq!(
            patched("\tif x {  \n\t\ty();\n\t}\n", " if x {\n-  y();\n+\t\tz();").expect("applies"),
            "\tif x {  \n\t\tz();\n\t}\n"
        );
        assert_eq!(patched("x \nx\n", "-x\n+y").expect("applies"), "x \ny\n", "the exact line comes first");
    }

    #[test]
    fn the_ends_of_lines_stay_as_they_are() {
        assert_eq!(patched("a\r\nb\r\nc", " a\n+n\n b").expect("applies"), "a\r\nn\r\nb\r\nc");
        assert_eq!(patched("a\nb", " b\n+c").expect("applies"), "a\nb\nc");
        assert_eq!(patched("a\nb\r\nc\n", "-a\n+A").expect("applies"), "A\nb\r\nc\n");
        assert_eq!(patched("", "+a").expect("applies"), "a\n");
    }

    #[test]
    fn what_does_not_fit_is_said_with_its_lines() {
        let missing = patched("a\nb\n", " a\n-x").expect_err("is not there");
        assert!(missing.message().ends_with("copy them exactly:\na\nx"), "{missing}");
        let anchor = patched("a\nb\n", "@@ fn x()\n+b").expect_err("is not there");
        assert_eq!(anchor.message(), "'f' has no line 'fn x()'");
        let twice = patched("a\nb\na\n", "-a\n+c").expect_err("is not clear");
        assert!(twice.message().contains("2 times, at lines 1, 3: add lines"), "{twice}");
        assert!(patched("a\nb\n", "@@\n-b\n@@\n-a").is_err(), "chunks come in their order");
        assert!(patched("a\nb\na\n", "-a\n*** End of File").is_ok_and(|text| text == "a\nb\n"));
    }

    #[test]
    fn many_equal_lines_are_searched_once() {
        let text = "x\n".repeat(1_000_000);
        let body = format!("{}-y", "-x\n".repeat(2_000));
        assert!(patched(&text, &body).expect_err("is not there").message().contains("are not in 'f'"));
        let many = patched(&text, "-x\n-x").expect_err("is not clear");
        assert!(many.message().contains("more than 5 times, at lines 1, 2, 3, 4, 5: add"), "{many}");
    }

    proptest::proptest! {
        #[test]
        fn the_same_places_are_found_as_by_comparing_at_each_line(
            lines in proptest::collection::vec("[ab ]{0,2}", 0..20), old in proptest::collection::vec("[ab ]{0,2}", 1..4), from in 0_usize..5,
        ) {
            let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
            let old: Vec<&str> = old.iter().map(String::as_str).collect();
            let from = from.min(lines.len());
            for form in FORMS {
                let fits = |at: &usize| old.iter().enumerate().all(|(n, old)| lines.get(at + n).is_some_and(|line| form(line) == form(old)));
                let expected: Vec<_> = (from..lines.len()).filter(fits).take(PLACES).collect();
                proptest::prop_assert_eq!(places(&lines, from, &old, form), expected);
            }
        }

        #[test]
        fn what_a_patch_does_its_reverse_undoes(
            lines in proptest::collection::vec("[a-c]{0,2}", 1..12), at in 0_usize..12, old in 0_usize..3,
            new in proptest::collection::vec("[x-z]{1,3}", 0..3),
        ) {
            let at = at.min(lines.len() - 1);
            let old = old.min(lines.len() - at);
            let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
            let same = |lines: &[String]| lines.iter().cloned().map(Line::Same).collect::<Vec<_>>();
            let chunk = Chunk {
                lines: [
                    same(&lines[..at]),
                    lines[at..at + old].iter().cloned().map(Line::Old).collect(),
                    new.into_iter().map(Line::New).collect(),
                    same(&lines[at + old..]),
                ].concat(),
                ..Chunk::default()
            };
            let (changed, _) = apply(&text, std::slice::from_ref(&chunk), "f").expect("applies");
            let (back, _) = apply(&changed, &[chunk.reversed()], "f").expect("applies");
            proptest::prop_assert_eq!(back, text);
        }
    }
}
