//! Wildcard patterns with `*` and `?`. Every text is a valid pattern.

/// True if `text` matches `pattern`: `?` matches one character, `*` any number of them. With
/// `separator`, neither matches that character, `**` matches any number of any characters, and `**`
/// followed by a separator may also match nothing.
pub(crate) fn fits(pattern: &str, text: &str, separator: Option<char>) -> bool {
    if !pattern.contains(['*', '?']) {
        return pattern == text;
    }
    let (pattern, text): (Vec<char>, Vec<char>) = (pattern.chars().collect(), text.chars().collect());
    // `ends[i]`: the pattern so far matches the first i characters.
    let mut ends = vec![false; text.len() + 1];
    ends[0] = true;
    let mut at = 0;
    while at < pattern.len() {
        let deep = pattern[at..].starts_with(&['*', '*']);
        let is_star = pattern[at] == '*';
        let inner = |c: char| deep || Some(c) != separator;
        if deep && separator.is_some() && pattern.get(at + 2).copied() == separator {
            let before = ends.clone();
            let mut begun = false;
            for (i, c) in text.iter().enumerate() {
                begun |= before[i];
                ends[i + 1] |= begun && Some(*c) == separator;
            }
            at += 3;
            continue;
        }
        if is_star {
            for (i, c) in text.iter().enumerate() {
                ends[i + 1] |= ends[i] && inner(*c);
            }
        } else {
            for i in (0..text.len()).rev() {
                let same = if pattern[at] == '?' { inner(text[i]) } else { pattern[at] == text[i] };
                ends[i + 1] = ends[i] && same;
            }
            ends[0] = false;
        }
        at += if deep { 2 } else { 1 };
    }
    ends[text.len()]
}

/// True if a tool's name matches one of the patterns.
pub(crate) fn any_fits<'a>(patterns: impl IntoIterator<Item = &'a String>, name: &str) -> bool {
    patterns.into_iter().any(|pattern| fits(pattern, name, None))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stars_and_question_marks_stand_for_what_they_say() {
        for (pattern, text, wanted) in [
            ("", "", true),
            ("*", "", true),
            ("a*c", "abbc", true),
            ("a*c", "abbd", false),
            ("a?c", "abc", true),
            ("a?c", "ac", false),
            ("src/*", "src/a/b", false),
            ("src/**", "src/a/b", true),
            ("**/*.rs", "a/b.rs", true),
            ("**/*.rs", "b.rs", true),
            ("a/**/b", "a/b", true),
            ("a/**/b", "a/x/y/b", true),
            ("a/**/b", "a/xb", false),
            ("*.rs", "a/b.rs", false),
            ("a?b", "a/b", false),
        ] {
            assert_eq!(fits(pattern, text, Some('/')), wanted, "{pattern} {text}");
        }
        assert!(
            fits("mcp__*", "mcp__files__read", None)
                && fits("https://docs.example.org/*", "https://docs.example.org/a/b", None)
        );
    }
}
