//! Normalisation of program output for a model: removes cursor control and repetitions.

use anstream::adapter::strip_str;

/// Number of identical lines beyond which they are collapsed into one.
const REPEATS: usize = 4;

/// Returns the text without escape sequences; of an overwritten line, only the last state; of many
/// identical lines, one and their number.
pub(super) fn clean(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    let mut out = String::with_capacity(text.len());
    let mut run: Option<(String, usize)> = None;
    for line in text.split('\n') {
        // Each line separately: an unterminated sequence must not swallow the following lines.
        let plain = strip_str(line).to_string();
        let line = written_over(&plain);
        match &mut run {
            Some((same, times)) if *same == line && !line.is_empty() => *times += 1,
            _ => flush(&mut out, run.replace((line.to_owned(), 1))),
        }
    }
    flush(&mut out, run);
    out.pop(); // the line feed of an omitted line
    out
}

/// Returns the final state of a line.
fn written_over(line: &str) -> &str {
    line.trim_end_matches('\r').rsplit('\r').next().unwrap_or_default()
}

fn flush(out: &mut String, run: Option<(String, usize)>) {
    let Some((line, times)) = run else { return };
    if times < REPEATS {
        (0..times).for_each(|_| out.extend([line.as_str(), "\n"]));
    } else {
        out.push_str(&format!("{line}\n[the line above {} more times]\n", times - 1));
    }
}

#[cfg(test)]
mod tests {
    use super::clean;

    #[test]
    fn colours_progress_and_repetitions_are_cleaned() {
        for (said, expected) in [
            ("", ""),
            ("plain\n", "plain\n"),
            ("no end", "no end"),
            ("\u{1b}[1;31merror\u{1b}[0m: x\n", "error: x\n"),
            ("\u{1b}]0;title\u{7}text", "text"),
            ("10%\r50%\r100%\ndone\r\n", "100%\ndone\n"),
            ("a\na\na\n", "a\na\na\n"),
            ("a\na\na\na\nb", "a\n[the line above 3 more times]\nb"),
            ("\n\n\n\n\nx", "\n\n\n\n\nx"),
            ("ä\u{1b}[Kö\n", "äö\n"),
            ("tab\there\n", "tab\there\n"),
            ("\u{1b}]lost\nkept\n", "\nkept\n"),
        ] {
            assert_eq!(clean(said.as_bytes()), expected, "{said:?}");
        }
        assert_eq!(clean(b"\xff\xfe"), "\u{fffd}\u{fffd}");
    }
}
