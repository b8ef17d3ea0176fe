//! Pieces of chunks: lines, and parts of overlong lines.

use std::ops::{Deref, Range};

use agent_core::TokenCounter;

use super::cut::{Cut, Mark};

/// Line or part of a line.
#[derive(Clone, Debug)]
pub(super) struct Piece {
    pub(super) bytes: Range<usize>,
    /// Line number, from 1.
    pub(super) line: usize,
    pub(super) tokens: u64,
    /// Quality of a cut before the piece.
    pub(super) cut: Cut,
    pub(super) path: usize,
}

pub(super) struct Pieces(Vec<Piece>);

impl Deref for Pieces {
    type Target = [Piece];

    fn deref(&self) -> &[Piece] {
        &self.0
    }
}

impl Pieces {
    /// Splits lines into pieces of at most `most` tokens, however long the lines are.
    pub(super) fn new(lines: &[&str], marks: &[Mark], most: u64, counter: &dyn TokenCounter) -> Self {
        let mut pieces = Vec::with_capacity(lines.len());
        let mut at = 0;
        for (number, (line, mark)) in (1..).zip(lines.iter().zip(marks)) {
            let (mut rest, mut cut) = (*line, mark.cut);
            while !rest.is_empty() {
                let (length, tokens) = fitting(rest, most, counter);
                pieces.push(Piece { bytes: at..at + length, line: number, tokens, cut, path: mark.path });
                (at, rest, cut) = (at + length, &rest[length..], mark.cut.min(Cut::Poor));
            }
        }
        Self(pieces)
    }

    pub(super) fn tokens(&self, range: Range<usize>) -> u64 {
        self.0[range].iter().map(|piece| piece.tokens).sum()
    }
}

/// Returns the length of the longest prefix that fits, and its tokens: cut after a sentence or a
/// word if one ends in the second half; at least one character.
fn fitting(text: &str, most: u64, counter: &dyn TokenCounter) -> (usize, u64) {
    let boundary = |at: usize| (0..=at.min(text.len())).rev().find(|at| text.is_char_boundary(*at)).unwrap_or_default();
    // Initial estimate, so that a line of a megabyte is not counted repeatedly.
    let mut tried = boundary(usize::try_from(most).unwrap_or(usize::MAX).saturating_mul(4)).max(first_letter(text));
    while tried < text.len() && counter.text(&text[..tried]) <= most {
        tried = boundary(tried.saturating_mul(2));
    }
    let tokens = counter.text(&text[..tried]);
    if tokens <= most {
        return (tried, tokens);
    }
    let (mut fits, mut too_long) = (0, tried);
    while let Some(middle) = Some(boundary(fits + (too_long - fits) / 2)).filter(|middle| *middle > fits) {
        match counter.text(&text[..middle]) <= most {
            true => fits = middle,
            false => too_long = middle,
        }
    }
    let fits = fits.max(first_letter(text));
    let half = boundary(fits / 2);
    let ends =
        |marks: &[&str]| marks.iter().filter_map(|mark| Some(half + text[half..fits].rfind(mark)? + mark.len())).max();
    let length = ends(&[". ", "? ", "! ", "。"]).or_else(|| ends(&[" ", "\t"])).unwrap_or(fits);
    (length, counter.text(&text[..length]))
}

fn first_letter(text: &str) -> usize {
    text.chars().next().map_or(0, char::len_utf8)
}
