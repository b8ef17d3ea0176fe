//! Truncation of texts at character boundaries.

/// Returns the first `most` characters.
pub(crate) fn head(text: &str, most: usize) -> &str {
    text.char_indices().nth(most).map_or(text, |(at, _)| &text[..at])
}

/// Returns the last `most` characters.
pub(crate) fn tail(text: &str, most: usize) -> &str {
    match most.checked_sub(1) {
        None => "",
        Some(before) => text.char_indices().rev().nth(before).map_or(text, |(at, _)| &text[at..]),
    }
}

/// Replaces the middle of the text by a note; returns `None` if that would not be shorter. Cuts at
/// a nearby end of a line.
pub(crate) fn middle(text: &str, head_chars: usize, tail_chars: usize) -> Option<String> {
    let (head, tail) = ends(text, head_chars, tail_chars)?;
    let cut = text.len() - head.len() - tail.len();
    let cut = text[head.len()..head.len() + cut].chars().count();
    let short = format!("{head}\n[... {cut} characters left out ...]\n{tail}");
    (short.chars().count() < text.chars().count()).then_some(short)
}

/// Returns the beginning and the end of a text that is longer than both.
pub(crate) fn ends(text: &str, head_chars: usize, tail_chars: usize) -> Option<(&str, &str)> {
    let total = text.chars().count();
    if total <= head_chars + tail_chars {
        return None;
    }
    let (head, tail) = (head(text, head_chars), tail(text, tail_chars));
    // Drops up to a quarter of the shown part to end at a whole line.
    let head = match head.rfind('\n') {
        Some(at) if at >= head.len() - head.len() / 4 => &head[..at],
        _ => head,
    };
    let tail = match tail.find('\n') {
        Some(at) if at < tail.len() / 4 => &tail[at + 1..],
        _ => tail,
    };
    Some((head, tail))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_middle_is_cut_at_lines_and_counted() {
        let text = format!("{}\nxx{}zz\n{}", "a".repeat(90), "-".repeat(500), "b".repeat(90));
        let short = middle(&text, 93, 93).expect("longer");
        assert_eq!(short, format!("{}\n[... 506 characters left out ...]\n{}", "a".repeat(90), "b".repeat(90)));
        assert_eq!(middle("short", 3, 2), None);
    }

    proptest! {
        #[test]
        fn what_is_left_is_the_beginning_and_the_end(text in "\\PC{0,80}", a in 0usize..40, b in 0usize..40) {
            prop_assert!(text.starts_with(head(&text, a)) && head(&text, a).chars().count() <= a);
            prop_assert!(text.ends_with(tail(&text, b)) && tail(&text, b).chars().count() <= b);
            if let Some(short) = middle(&text, a, b) {
                prop_assert!(short.chars().count() < text.chars().count());
            }
        }
    }
}
