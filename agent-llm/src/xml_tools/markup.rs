//! XML as written by models: a sequence of elements, often malformed.

use std::borrow::Cow;

/// Maximum length of a tag, in bytes.
pub(super) const LONGEST_TAG: usize = 256;

pub(super) const CDATA: &str = "<![CDATA[";
pub(super) const CDATA_END: &str = "]]>";

/// A tag.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Tag<'a> {
    pub(super) name: &'a str,
    pub(super) closes: bool,
    /// Raw value of the attribute `name`.
    pub(super) label: Option<&'a str>,
    /// Length in bytes.
    pub(super) length: usize,
}

impl Tag<'_> {
    pub(super) fn opens(&self, name: &str) -> bool {
        !self.closes && self.name.eq_ignore_ascii_case(name)
    }
}

/// Parses the complete tag at the beginning of `text`.
pub(super) fn tag(text: &str) -> Option<Tag<'_>> {
    let end = text.bytes().take(LONGEST_TAG).position(|b| b == b'>')?;
    let inside = text[..end].strip_prefix('<')?;
    let (closes, inside) = inside.strip_prefix('/').map_or((false, inside), |inside| (true, inside));
    let name = &inside[..inside.find(|c| !is_name(c)).unwrap_or(inside.len())];
    let attributes = &inside[name.len()..];
    let is_tag = !name.is_empty() && (attributes.is_empty() || attributes.starts_with([' ', '\n', '\t', '/']));
    let label = attributes.split_once("name=").and_then(|(_, quoted)| {
        let quote = quoted.chars().next().filter(|quote| matches!(quote, '"' | '\''))?;
        quoted[1..].split(quote).next()
    });
    (is_tag && !attributes.contains('<')).then_some(Tag { name, closes, label, length: end + 1 })
}

pub(super) fn is_name(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | ':')
}

/// Returns true if `name` is valid for an element.
pub(super) fn is_element_name(name: &str) -> bool {
    !name.is_empty() && name.len() < LONGEST_TAG / 2 && name.chars().all(is_name)
}

/// Finds the next tag in `text` outside of CDATA sections, with its position.
pub(super) fn next_tag(text: &str) -> Option<(usize, Tag<'_>)> {
    let mut at = 0;
    loop {
        at += text[at..].find('<')?;
        let rest = &text[at..];
        if rest.starts_with(CDATA) {
            at += rest.find(CDATA_END)? + CDATA_END.len();
        } else if let Some(tag) = tag(rest) {
            return Some((at, tag));
        } else {
            at += 1;
        }
    }
}

/// Finds the end tag of the element `name`, which was opened before `text`; returns its start and
/// end. Nested elements of the same name are skipped.
pub(super) fn close(text: &str, name: &str) -> Option<(usize, usize)> {
    let (mut at, mut depth) = (0, 0);
    loop {
        let (start, tag) = next_tag(&text[at..])?;
        let end = at + start + tag.length;
        match (tag.name == name, tag.closes) {
            (true, true) if depth == 0 => return Some((at + start, end)),
            (true, true) => depth -= 1,
            (true, false) => depth += 1,
            _ => {}
        }
        at = end;
    }
}

/// Decodes the text of an element without child markup. The flag is true for a CDATA section, which
/// is always plain text.
pub(super) fn read_text(raw: &str) -> (String, bool) {
    if let Some(verbatim) = sections(raw.trim()) {
        return (verbatim, true);
    }
    let text = without_frame(raw);
    // Unescaped markup suggests that the model did not escape anything.
    (if text.contains('<') { text.to_owned() } else { unescape(text).into_owned() }, false)
}

/// Returns the content of CDATA sections, if there is nothing else.
fn sections(mut text: &str) -> Option<String> {
    let mut verbatim = String::new();
    loop {
        let (inside, rest) = text.strip_prefix(CDATA)?.split_once(CDATA_END)?;
        verbatim.push_str(inside);
        text = rest;
        if text.is_empty() {
            return Some(verbatim);
        }
    }
}

/// Removes the line breaks next to the tags. A single line is also trimmed.
fn without_frame(raw: &str) -> &str {
    let start = raw.trim_start_matches([' ', '\t', '\r']).strip_prefix('\n').unwrap_or(raw);
    let end = start.trim_end_matches([' ', '\t']).strip_suffix('\n');
    let text = end.map_or(start, |text| text.strip_suffix('\r').unwrap_or(text));
    if text.contains('\n') { text } else { text.trim() }
}

pub(super) fn unescape(text: &str) -> Cow<'_, str> {
    let Some((plain, mut rest)) = text.split_once('&') else { return Cow::Borrowed(text) };
    let mut out = plain.to_owned();
    loop {
        let entity = rest.split_once(';').and_then(|(name, rest)| Some((entity(name)?, rest)));
        match entity {
            Some((character, after)) => {
                out.push(character);
                rest = after;
            }
            None => out.push('&'),
        }
        let Some((plain, next)) = rest.split_once('&') else {
            out.push_str(rest);
            return Cow::Owned(out);
        };
        out.push_str(plain);
        rest = next;
    }
}

fn entity(name: &str) -> Option<char> {
    Some(match name {
        "lt" => '<',
        "gt" => '>',
        "amp" => '&',
        "quot" => '"',
        "apos" => '\'',
        _ => {
            let code = name.strip_prefix('#')?;
            let code = match code.strip_prefix(['x', 'X']) {
                Some(hex) => u32::from_str_radix(hex, 16),
                None => code.parse(),
            };
            char::from_u32(code.ok()?)?
        }
    })
}

pub(super) fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

/// Wraps the text in one or more CDATA sections, so that it is read verbatim.
pub(super) fn verbatim(text: &str) -> String {
    format!("{CDATA}{}{CDATA_END}", text.replace(CDATA_END, "]]]]><![CDATA[>"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_are_told_from_what_only_looks_alike() {
        let name = |text| tag(text).map(|t| (t.name, t.closes, t.label, t.length));
        assert_eq!(name("<a>"), Some(("a", false, None, 3)));
        assert_eq!(name("</a-b.c>x"), Some(("a-b.c", true, None, 8)));
        assert_eq!(name(r#"<parameter name="city" x="1">"#), Some(("parameter", false, Some("city"), 29)));
        for none in ["<", "<a", "< a>", "<>", "a < b > c", "<a <b>", "<!-- a -->", "<?xml?>"] {
            assert_eq!(name(none), None, "{none}");
        }
    }

    #[test]
    fn an_element_ends_where_its_own_end_is() {
        assert_eq!(close("1<a>2</a>3</a>4", "a"), Some((10, 14)));
        assert_eq!(close("1<![CDATA[</a>]]></a>", "a"), Some((17, 21)));
        assert_eq!(close("1<b></a>", "b"), None);
    }

    #[test]
    fn text_is_read_as_it_was_meant() {
        let read = |raw| read_text(raw).0;
        assert_eq!(read("  one line "), "one line");
        assert_eq!(read("\n    one line\n  "), "one line");
        assert_eq!(read("\n  two\n  lines\n"), "  two\n  lines");
        assert_eq!(read("a &lt; b &amp;&amp; &#99; &#x64; &nbsp; & c"), "a < b && c d &nbsp; & c");
        assert_eq!(read("if a < b && c &amp; d"), "if a < b && c &amp; d", "markup as it is");
        assert_eq!(read_text("\n<![CDATA[ <a> &amp; ]]>\n"), (" <a> &amp; ".to_owned(), true));
    }

    #[test]
    fn what_is_written_verbatim_is_read_verbatim() {
        for text in ["", " x ", "]]>", "a]]>]]b", "<![CDATA[x]]>", "]]", "\n\n"] {
            assert_eq!(read_text(&verbatim(text)), (text.to_owned(), true), "{text:?}");
        }
    }
}
