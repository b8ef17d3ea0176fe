//! Packing of pieces into chunks.

use std::ops::Range;

use agent_core::TokenCounter;

use super::{cut::Cut, pieces::Pieces};

/// Divisors of the room in a chunk: the share that must be full before a new section ends the
/// chunk, and the share from which a good cut point is better than more text.
const NEW_FROM: u64 = 4;
const GOOD_FROM: u64 = 2;

/// Returns the pieces of each chunk: the start of its overlap, and the range of its new pieces.
pub(super) fn pack(
    text: &str,
    pieces: &Pieces,
    max_tokens: u64,
    overlap: u64,
    counter: &dyn TokenCounter,
) -> Vec<(usize, Range<usize>)> {
    let count =
        |range: Range<usize>| counter.text(&text[pieces[range.start].bytes.start..pieces[range.end - 1].bytes.end]);
    let (mut chunks, mut at, mut last) = (Vec::new(), 0, 0);
    while at < pieces.len() {
        let room = if at == 0 { max_tokens } else { max_tokens - overlap };
        let mut end = end_of(pieces, at, room);
        // An unbreakable piece may use the space of the overlap.
        if end < pieces.len() && pieces[end].cut == Cut::Never {
            end = end_of(pieces, at, max_tokens);
        }
        // A text may have more tokens than the sum of its lines.
        while end > at + 1 && count(at..end) > max_tokens {
            end -= 1;
        }
        let room = overlap.min(max_tokens.saturating_sub(pieces.tokens(at..end)));
        let mut from = overlap_of(pieces, last + 1..at, room);
        while from < at && count(from..end) > max_tokens {
            from += 1;
        }
        chunks.push((from, at..end));
        (last, at) = (at, end);
    }
    chunks
}

/// Returns the end of the chunk that begins at a piece.
fn end_of(pieces: &Pieces, from: usize, room: u64) -> usize {
    let (mut tokens, mut fits_whole) = (0, true);
    // Token counts of the chunk for each possible end.
    let mut ends: Vec<(usize, u64)> = Vec::new();
    for at in from..pieces.len() {
        if at > from {
            ends.push((at, tokens));
        }
        tokens += pieces[at].tokens;
        if at > from && tokens > room {
            fits_whole = false;
            break;
        }
    }
    let is = |cut: Cut| move |(at, _): &&(usize, u64)| pieces[*at].cut >= cut;
    if let Some((at, _)) = ends.iter().filter(is(Cut::Section)).find(|(_, tokens)| *tokens >= room / NEW_FROM) {
        return *at;
    }
    if fits_whole {
        return pieces.len();
    }
    let full = |(_, tokens): &&(usize, u64)| *tokens >= room / GOOD_FROM;
    let good = |cut: Cut| ends.iter().rev().filter(is(cut)).find(full);
    let any = |cut: Cut| ends.iter().rev().find(is(cut));
    let best = good(Cut::Paragraph)
        .or_else(|| good(Cut::Line))
        .or_else(|| any(Cut::Paragraph))
        .or_else(|| any(Cut::Line))
        .or_else(|| any(Cut::Poor));
    best.or(ends.last()).map_or(from + 1, |(at, _)| *at)
}

/// Returns the start of the overlap of a chunk that follows these pieces. A chunk that starts a
/// section or item has no overlap, and an overlap starts no earlier than its section or item.
fn overlap_of(pieces: &Pieces, before: Range<usize>, most: u64) -> usize {
    let (mut tokens, mut best) = (0, before.end);
    if before.is_empty() || pieces[best].cut == Cut::Section {
        return best;
    }
    for from in before.rev() {
        tokens += pieces[from].tokens;
        if tokens > most {
            break;
        }
        if pieces[from].cut > Cut::Never {
            best = from;
        }
        if pieces[from].cut == Cut::Section {
            break;
        }
    }
    best
}
