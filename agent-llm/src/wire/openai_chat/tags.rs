//! Thinking that a server leaves in the text, between `<think>` and `</think>`.

use agent_core::Block;

const OPEN: &str = "<think>";
const CLOSE: &str = "</think>";

/// Separates thinking from text in a streamed content.
#[derive(Debug, Default)]
pub(super) struct Tags {
    /// The original content.
    raw: String,
    /// Beginning of a possible tag.
    pending: String,
    place: Place,
}

#[derive(Debug, Default, PartialEq)]
enum Place {
    #[default]
    Start,
    Thinking,
    /// White space between thinking and text, which belongs to neither.
    Between,
    Text,
}

/// A piece of thinking or text.
#[derive(Debug, PartialEq)]
pub(super) enum Piece {
    Thinking(String),
    Text(String),
}

impl Tags {
    pub(super) fn raw(&self) -> &str {
        &self.raw
    }

    /// Adds content. Returns the pieces that are certain.
    pub(super) fn push(&mut self, more: &str) -> Vec<Piece> {
        self.raw.push_str(more);
        self.pending.push_str(more);
        let mut pieces = Vec::new();
        loop {
            match self.place {
                Place::Start => {
                    let said = self.pending.trim_start();
                    if let Some(rest) = said.strip_prefix(OPEN) {
                        (self.pending, self.place) = (rest.to_owned(), Place::Thinking);
                    } else if OPEN.starts_with(said) {
                        return pieces;
                    } else {
                        self.place = Place::Text;
                    }
                }
                Place::Thinking => match self.pending.split_once(CLOSE) {
                    Some((thinking, rest)) => {
                        push(&mut pieces, Piece::Thinking(thinking.to_owned()));
                        (self.pending, self.place) = (rest.to_owned(), Place::Between);
                    }
                    None => {
                        let kept = (1..CLOSE.len()).rev().find(|n| self.pending.ends_with(&CLOSE[..*n])).unwrap_or(0);
                        let rest = self.pending.split_off(self.pending.len() - kept);
                        push(&mut pieces, Piece::Thinking(std::mem::replace(&mut self.pending, rest)));
                        return pieces;
                    }
                },
                Place::Between => {
                    self.pending = self.pending.trim_start().to_owned();
                    if self.pending.is_empty() {
                        return pieces;
                    }
                    self.place = Place::Text;
                }
                Place::Text => {
                    push(&mut pieces, Piece::Text(std::mem::take(&mut self.pending)));
                    return pieces;
                }
            }
        }
    }
}

fn push(pieces: &mut Vec<Piece>, piece: Piece) {
    let (Piece::Thinking(said) | Piece::Text(said)) = &piece;
    if !said.is_empty() {
        pieces.push(piece);
    }
}

/// Moves thinking at the beginning of the text into a reasoning block, unless the server separates
/// it. Some templates write the opening tag into the prompt: then only the closing tag is sent.
pub(super) fn split(blocks: &mut Vec<Block>) {
    if blocks.iter().any(|block| matches!(block, Block::Reasoning(_))) {
        return;
    }
    let text = blocks.iter().enumerate().find_map(|(at, block)| match block {
        Block::Text(text) => Some((at, text.text.clone())),
        _ => None,
    });
    let Some((at, text)) = text else { return };
    let said = text.trim_start();
    let (thinking, rest) = match (said.strip_prefix(OPEN), text.split_once(CLOSE)) {
        (Some(inside), _) => inside.split_once(CLOSE).unwrap_or((inside, "")),
        (None, Some((before, rest))) => (before, rest),
        (None, None) => return,
    };
    let rest = rest.trim_start();
    // An answer that was cut off right after the tag still has a block.
    let has_thinking = !thinking.is_empty() || rest.is_empty();
    let made = [has_thinking.then(|| Block::reasoning(thinking)), (!rest.is_empty()).then(|| Block::text(rest))];
    blocks.splice(at..=at, made.into_iter().flatten());
}

#[cfg(test)]
mod tests {
    use super::*;

    fn streamed(deltas: &[&str]) -> (String, String) {
        let (mut tags, mut thinking, mut text) = (Tags::default(), String::new(), String::new());
        for piece in deltas.iter().flat_map(|delta| tags.push(delta)).collect::<Vec<_>>() {
            match piece {
                Piece::Thinking(more) => thinking += &more,
                Piece::Text(more) => text += &more,
            }
        }
        assert_eq!(tags.raw(), deltas.concat());
        (thinking, text)
    }

    #[test]
    fn thinking_is_told_from_text_wherever_the_tags_are_cut() {
        let whole = "<think>The user wants 4.</think>\n\nFour.";
        for at in 0..whole.len() {
            let (before, after) = whole.split_at(at);
            assert_eq!(streamed(&[before, after]), ("The user wants 4.".into(), "Four.".into()), "{before}|{after}");
        }
        assert_eq!(streamed(&["a <think> b"]), (String::new(), "a <think> b".into()));
        assert_eq!(streamed(&["<think>cut </thi"]).0, "cut ");
    }

    #[test]
    fn a_whole_text_is_split_with_and_without_its_opening_tag() {
        let of = |text: &str| {
            let mut blocks = vec![Block::text(text)];
            split(&mut blocks);
            blocks
        };
        let both = vec![Block::reasoning("hm"), Block::text("Four.")];
        assert_eq!(of("<think>hm</think>\n\nFour."), both);
        assert_eq!(of("hm</think>\n\nFour."), both);
        assert_eq!(of("<think>hm"), [Block::reasoning("hm")]);
        assert_eq!(of("<think>"), [Block::reasoning("")]);
        assert_eq!(of("<think></think>Four."), [Block::text("Four.")]);
        assert_eq!(of("Four."), [Block::text("Four.")]);
    }
}
