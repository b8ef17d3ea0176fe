//! White space between the tokens of JSON: files are indented for people, the wire format is mostly
//! compact.

/// Returns the JSON with one line per value. Tokens and their order are unchanged.
pub(super) fn indented(json: &str) -> String {
    lay_out(json, true)
}

/// Returns the JSON without white space between tokens.
pub(super) fn compact(json: &str) -> String {
    lay_out(json, false)
}

fn lay_out(json: &str, lines: bool) -> String {
    let mut out = String::with_capacity(json.len());
    let (mut depth, mut in_text, mut escaped) = (0_usize, false, false);
    let line = |out: &mut String, depth: usize| {
        if lines {
            out.push('\n');
            out.extend(std::iter::repeat_n("  ", depth));
        }
    };
    for c in json.chars() {
        if in_text {
            out.push(c);
            in_text = escaped || c != '"';
            escaped = c == '\\' && !escaped;
            continue;
        }
        let is_empty = out.ends_with(['{', '[']);
        match c {
            ' ' | '\n' | '\r' | '\t' => continue,
            '}' | ']' => {
                depth = depth.saturating_sub(1);
                if !is_empty {
                    line(&mut out, depth);
                }
            }
            _ if is_empty => line(&mut out, depth),
            _ => {}
        }
        out.push(c);
        match c {
            '"' => in_text = true,
            '{' | '[' => depth += 1,
            ',' => line(&mut out, depth),
            ':' if lines => out.push(' '),
            _ => {}
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_blanks_between_tokens_change() {
        let json = r#"{"b":1.50,"a":[],"c":[{"x":"a, \"b\": {\\"},null],"d":{}}"#;
        let lines = "{\n  \"b\": 1.50,\n  \"a\": [],\n  \"c\": [\n    {\n      \"x\": \"a, \\\"b\\\": {\\\\\"\n    },\n    null\n  ],\n  \
                     \"d\": {}\n}";
        assert_eq!(indented(json), lines);
        assert_eq!((indented(lines), compact(lines)), (lines.to_owned(), json.to_owned()));
        assert_eq!((compact(" 1 "), indented("[ ]")), ("1".to_owned(), "[]".to_owned()));
    }
}
