//! Patterns with the wildcard `*`.

/// Returns true if `text` matches the pattern. The time is bounded by the product of the two
/// lengths, whatever the pattern.
pub(super) fn fits(pattern: &[u8], text: &[u8]) -> bool {
    let (mut p, mut t) = (0, 0);
    // Backtracking point: the position after the last `*`, and the text position, which advances by
    // one byte per attempt.
    let mut again: Option<(usize, usize)> = None;
    while t < text.len() {
        if pattern.get(p) == Some(&b'*') {
            (again, p) = (Some((p + 1, t)), p + 1);
        } else if pattern.get(p) == Some(&text[t]) {
            (p, t) = (p + 1, t + 1);
        } else if let Some((after, given)) = again {
            (again, p, t) = (Some((after, given + 1)), after, given + 1);
        } else {
            return false;
        }
    }
    pattern[p..].iter().all(|byte| *byte == b'*')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_stands_for_anything() {
        let cases = [
            ("", "", true),
            ("", "a", false),
            ("*", "", true),
            ("a*c", "abbc", true),
            ("a*c", "abcd", false),
            ("*.example.org", "a.b.example.org", true),
            ("*.example.org", "example.org", false),
            ("*ab*ab", "abxabab", true),
            ("a**b", "ab", true),
        ];
        for (pattern, text, expected) in cases {
            assert_eq!(fits(pattern.as_bytes(), text.as_bytes()), expected, "{pattern} {text}");
        }
        assert!(!fits("*a".repeat(200).as_bytes(), "a".repeat(10_000).replace("aa", "ab").as_bytes()));
    }
}
