//! [`Transcript`]: output of a command.

use std::collections::VecDeque;

use super::clean::clean;
use crate::text::cut;

/// Maximum of output bytes kept for the file.
pub(super) const WHOLE: usize = 8 << 20;

/// Output of a command: its beginning and its end.
#[derive(Debug)]
pub(super) struct Transcript {
    /// Maximum of bytes kept of the beginning, and shown to a model.
    most_kept: usize,
    most_shown: usize,
    whole: Vec<u8>,
    /// Newest bytes, after the kept beginning.
    newest: VecDeque<u8>,
    /// Total number of bytes written.
    total: u64,
}

impl Transcript {
    /// Creates an empty transcript that shows a model about `most` bytes and keeps the first
    /// `kept`.
    pub(super) fn new(most: usize, kept: usize) -> Self {
        Self { most_kept: kept.max(most), most_shown: most, whole: Vec::new(), newest: VecDeque::new(), total: 0 }
    }

    /// Returns the output so far, and starts a new transcript.
    pub(super) fn take(&mut self) -> Self {
        let next = Self::new(self.most_shown, self.most_kept);
        std::mem::replace(self, next)
    }

    pub(super) fn push(&mut self, piece: &[u8]) {
        self.total += piece.len() as u64;
        let (fits, rest) = piece.split_at(piece.len().min(self.most_kept - self.whole.len()));
        self.whole.extend_from_slice(fits);
        self.newest.extend(rest);
        let too_many = self.newest.len().saturating_sub(self.most_shown);
        self.newest.drain(..too_many);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.total == 0
    }

    /// Returns true if the model sees only a part.
    pub(super) fn is_too_long(&self) -> bool {
        let most = self.most_shown;
        self.whole.len() > most && (self.total > self.whole.len() as u64 || clean(&self.whole).len() > most)
    }

    /// Returns the bytes kept for the file.
    pub(super) fn whole(&self) -> &[u8] {
        &self.whole
    }

    /// Returns the output for a model: all of it, or both ends, with a note on the omitted part and
    /// the file with the whole.
    pub(super) fn shown(&self, file: Option<&str>) -> String {
        let (most, all) = (self.most_shown, clean(&self.whole));
        if self.newest.is_empty() && all.len() <= most {
            return all;
        }
        let newest: Vec<u8> = self.newest.iter().copied().collect();
        let end = if newest.len() >= most / 2 { clean(&newest) } else { all.clone() + &clean(&newest) };
        let (head, tail) = (head(&all, most / 2), tail(&end, most / 2));
        let place = match file {
            Some(file) if self.newest.is_empty() => format!("the whole is in {file}"),
            Some(file) => format!("its first {} bytes are in {file}", self.whole.len()),
            None => "it is not kept".to_owned(),
        };
        format!("{head}\n[cut: the output has {} bytes; {place}]\n{tail}", self.total)
    }
}

/// Returns the first whole lines of at most `most` bytes, or a part of the first line.
fn head(text: &str, most: usize) -> &str {
    let text = cut(text, most);
    text.rfind('\n').map_or(text, |line| &text[..line])
}

/// Returns the last whole lines, likewise.
fn tail(text: &str, most: usize) -> &str {
    let from = text.len().saturating_sub(most);
    let start = (from..=text.len()).find(|at| text.is_char_boundary(*at)).unwrap_or(text.len());
    let rest = &text[start..];
    match rest.trim_end_matches('\n').find('\n') {
        Some(line) if start > 0 => &rest[line + 1..],
        _ => rest,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(pieces: &[&str], most: usize) -> Transcript {
        let mut said = Transcript::new(most, WHOLE);
        pieces.iter().for_each(|piece| said.push(piece.as_bytes()));
        said
    }

    #[test]
    fn what_fits_is_shown_whole_and_of_the_rest_both_ends() {
        let short = said(&["one\n", "two\n"], 100);
        assert!(!short.is_too_long());
        assert_eq!(short.shown(None), "one\ntwo\n");
        let lines: String = (0..100).map(|n| format!("line {n}\n")).collect();
        let long = said(&[&lines], 60);
        assert!(long.is_too_long());
        let shown = long.shown(Some("/tmp/out"));
        assert!(shown.starts_with("line 0\nline 1\n") && shown.ends_with("line 98\nline 99\n"), "{shown}");
        assert!(shown.contains("\n[cut: the output has 790 bytes; the whole is in /tmp/out]\n"), "{shown}");
    }

    #[test]
    fn of_a_flood_the_beginning_is_kept_and_the_newest_is_shown() {
        let mut flood = said(&[], 100);
        let piece = "0123456789abcde\n".repeat(1 << 16);
        (0..10).for_each(|_| flood.push(piece.as_bytes()));
        flood.push(b"the end\n");
        assert_eq!(flood.whole().len(), WHOLE);
        let shown = flood.shown(Some("f"));
        assert!(shown.ends_with("the end\n") && shown.contains("its first 8388608 bytes are in f"), "{shown}");
        assert!(shown.len() < 300);
        assert_eq!(flood.take().total, 10 * (1 << 20) + 8);
        assert_eq!((flood.total, flood.shown(None).as_str()), (0, ""), "it begins anew");
    }

    #[test]
    fn many_bytes_that_say_little_are_shown_whole() {
        let progress = said(&[&"10%\r".repeat(1000), "done\n"], 100);
        assert!(!progress.is_too_long());
        assert_eq!(progress.shown(None), "done\n");
    }

    #[test]
    fn a_character_is_never_cut() {
        let long = "ä".repeat(1000);
        let shown = said(&[&long], 101).shown(None);
        assert!(shown.starts_with("ä") && shown.ends_with("ä") && !shown.contains('\u{fffd}'));
    }
}
