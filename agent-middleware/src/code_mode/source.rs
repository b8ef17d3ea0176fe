//! What is seen of a program without running it.

/// True if a program awaits anything: its calls then are futures, and else their results.
pub(super) fn awaits(code: &str) -> bool {
    let mut rest = code;
    while let Some(first) = rest.chars().next() {
        rest = match first {
            '#' => rest.find('\n').map_or("", |end| &rest[end..]),
            '"' | '\'' => after_text(rest, first),
            c if c.is_alphanumeric() || c == '_' => {
                let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
                if &rest[..end] == "await" || &rest[..end] == "asyncio" {
                    return true;
                }
                let after = &rest[end..];
                let is_format = matches!(rest[..end].to_ascii_lowercase().as_str(), "f" | "fr" | "rf");
                match after.chars().next().filter(|quote| is_format && matches!(quote, '"' | '\'')) {
                    Some(quote) => {
                        let next = after_text(after, quote);
                        if after[..after.len() - next.len()].contains("await ") {
                            return true; // in one of its fields, or almost
                        }
                        next
                    }
                    None => after,
                }
            }
            c => &rest[c.len_utf8()..],
        };
    }
    false
}

/// What comes after the literal that `code` begins with.
fn after_text(code: &str, quote: char) -> &str {
    let triple = String::from(quote).repeat(3);
    let (end, start) = if code.starts_with(&triple) { (&*triple, 3) } else { (&triple[..1], 1) };
    let mut rest = &code[start..];
    loop {
        if let Some(after) = rest.strip_prefix(end) {
            return after;
        }
        let mut chars = rest.chars();
        match chars.next() {
            None => return "",
            // A literal of one line that is not closed: the interpreter says so.
            Some('\n') if end.len() == 1 => return rest,
            Some('\\') => drop(chars.next()),
            Some(_) => {}
        }
        rest = chars.as_str();
    }
}

#[cfg(test)]
mod tests {
    use super::awaits;

    #[test]
    fn words_in_texts_and_comments_are_no_code() {
        for code in [
            "x = await f()",
            "import asyncio",
            "'a' if await f() else ''",
            "'''\n'''\nawait f()",
            "\"\\\"\"; await f()",
            "f'{await g()}'",
        ] {
            assert!(awaits(code), "{code}");
        }
        for code in [
            "f()",
            "# await\nf()",
            "'await'",
            "\"\"\"\nawait \"x\" \n\"\"\"",
            "awaited = 1",
            "'a\\'await'",
            "'",
            "ä",
            "f'{g()}'",
        ] {
            assert!(!awaits(code), "{code}");
        }
    }
}
