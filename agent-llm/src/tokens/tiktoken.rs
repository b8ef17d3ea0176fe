//! Token counter with OpenAI's tokenizers.

use std::fmt;

use agent_core::TokenCounter;
use tiktoken_rs::{
    CoreBPE, bpe_for_tokenizer,
    tokenizer::{Tokenizer, get_tokenizer},
};

/// Maximum number of bytes tokenized at once. The tokenizer splits text with a backtracking regular
/// expression, which fails, or takes quadratic time, on a long run of one kind of character.
const PIECE: usize = 4096;

/// Token counter with one of OpenAI's tokenizers. Counts of texts are exact for OpenAI's models;
/// the overhead of a message is an estimate.
///
/// The first count loads the tokenizer, which takes tens of megabytes, once for all counters.
///
/// ```
/// use agent_core::TokenCounter;
/// use agent_llm::tokens::Tiktoken;
///
/// assert_eq!(Tiktoken::default().text("Hello, world!"), 4);
/// ```
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Tiktoken(Tokenizer);

impl Tiktoken {
    /// Selects the tokenizer of `model`; `o200k_base`, the newest, if the model is unknown. The
    /// name may have a provider prefix, as in `openai/gpt-4o`.
    pub fn for_model(model: &str) -> Self {
        let name = model.rsplit('/').next().unwrap_or(model);
        get_tokenizer(name).map_or_else(Self::default, Self)
    }

    /// Returns the tokenizer's name.
    pub fn encoding(&self) -> &'static str {
        match self.0 {
            Tokenizer::O200kHarmony => "o200k_harmony",
            Tokenizer::O200kBase => "o200k_base",
            Tokenizer::Cl100kBase => "cl100k_base",
            Tokenizer::P50kBase => "p50k_base",
            Tokenizer::R50kBase => "r50k_base",
            Tokenizer::P50kEdit => "p50k_edit",
            Tokenizer::Gpt2 => "gpt2",
        }
    }

    fn tokenizer(self) -> &'static CoreBPE {
        bpe_for_tokenizer(self.0).expect("the tokenizers are part of the program")
    }
}

impl Default for Tiktoken {
    fn default() -> Self {
        Self(Tokenizer::O200kBase)
    }
}

impl TokenCounter for Tiktoken {
    fn text(&self, text: &str) -> u64 {
        let tokenizer = self.tokenizer();
        pieces(text).map(|piece| tokenizer.count_ordinary(piece) as u64).sum()
    }
}

impl fmt::Debug for Tiktoken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Tiktoken").field(&self.encoding()).finish()
    }
}

/// Splits a text into pieces of at most [`PIECE`] bytes, at token boundaries if possible.
fn pieces(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let (piece, left) = rest.split_at(end_of_piece(rest));
        rest = left;
        (!piece.is_empty()).then_some(piece)
    })
}

fn end_of_piece(text: &str) -> usize {
    if text.len() <= PIECE {
        return text.len();
    }
    let most = (0..=PIECE).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(text.len());
    let bytes = text.as_bytes();
    // In every encoding a word ends before white space, which then begins a separate token or
    // belongs to the next word.
    let between_words = |at: &usize| bytes[at - 1].is_ascii_alphanumeric() && bytes[*at].is_ascii_whitespace();
    (1..most).rev().find(between_words).unwrap_or(most)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_tokenizer_is_the_models_own_where_it_is_known() {
        let encoding = |model| Tiktoken::for_model(model).encoding();
        assert_eq!(encoding("gpt-4o-mini"), "o200k_base");
        assert_eq!(encoding("openai/gpt-4"), "cl100k_base");
        assert_eq!(encoding("a-model-of-somebody-else"), "o200k_base");
    }

    #[test]
    fn a_long_run_of_one_character_is_counted_in_bounded_pieces() {
        for run in ["a", "A", " ", "!", "\u{4e2d}", "\n", "0"] {
            let text = run.repeat(300_000 / run.len());
            assert!(pieces(&text).all(|piece| piece.len() <= PIECE));
            assert_eq!(pieces(&text).map(str::len).sum::<usize>(), text.len());
        }
        assert!(Tiktoken::default().text(&"a".repeat(100_000)) > 1_000);
    }

    #[test]
    fn text_that_looks_like_a_special_token_is_only_text() {
        assert!(Tiktoken::default().text("<|endoftext|>") > 1);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]

        #[test]
        fn cutting_between_words_changes_no_count(words in prop::collection::vec("[a-zA-Z0-9]{1,12}[ .,\n]{1,3}", 1..1500)) {
            let text = words.concat();
            let whole = Tiktoken::default().tokenizer().count_ordinary(&text) as u64;
            prop_assert_eq!(Tiktoken::default().text(&text), whole);
        }

        #[test]
        fn pieces_are_the_text(text in "\\PC{0,40}", times in 1_usize..400) {
            let text = text.repeat(times);
            prop_assert_eq!(pieces(&text).collect::<String>(), text);
        }
    }
}
