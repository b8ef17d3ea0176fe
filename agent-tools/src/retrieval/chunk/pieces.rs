//! What chunks are made of: lines, and parts of lines that are too long.

use std::ops::{Deref, Range};

use agent_core::TokenCounter;

use super::cut::{Cut, Mark};

/// A line or a part of one.
#[derive(Clone, Debug)]
pub(super) struct Piece {
    pub(super) bytes: Range<usize>,
    /// Counted from 1.
    pub(super) line: usize,
    pub(super) tokens: u64,
    /// Of a cut before it.
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
    /// Pieces of at most so many tokens, however long the lines are.
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

/// How much of a text fits, up to the end of a sentence or a word if there is one in its second half, and its tokens; at least one letter.
fn fitting(text: &str, most: u64, counter: &dyn TokenCounter) -> (usize, u64) {
    let boundary = |at: usize| (0..=at.min(text.len())).rev().find(|at| text.is_char_boundary(*at)).unwrap_or_default();
    // A first guess, so that a line of a megabyte is not counted again and again.
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
