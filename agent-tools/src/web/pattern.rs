//! Texts with `*`, which stands for anything.

/// True if `text` fits the pattern. The time is at most that of the one's length times the other's, whatever the pattern.
pub(super) fn fits(pattern: &[u8], text: &[u8]) -> bool {
    let (mut p, mut t) = (0, 0);
    // Where to go on if what follows the last `*` does not fit: after it, with one more byte of the text given to it.
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
