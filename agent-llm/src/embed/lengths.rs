//! Lengths of texts, and handling of texts that are too long.

use agent_core::{Error, ErrorKind, Result, Retry, TokenCounter};

use super::EmbedLimits;

/// Counts the tokens of texts, and knows the maximum.
pub(super) struct Lengths {
    counter: Box<dyn TokenCounter>,
    /// True if the counter is the model's own tokenizer.
    is_exact: bool,
    /// Maximum number of tokens of one text.
    longest: Option<u64>,
}

impl Lengths {
    pub(super) fn new(model: &str, longest: Option<u64>) -> Self {
        let (counter, is_exact) = counter(model);
        Self { counter, is_exact, longest }
    }

    /// Rejects texts that are empty or too long, or truncates the latter if requested and the
    /// provider does not; returns the number of tokens of each, or an upper bound.
    ///
    /// # Errors
    /// [`InvalidRequest`](ErrorKind::InvalidRequest) for an empty text,
    /// [`ContextOverflow`](ErrorKind::ContextOverflow) for one that is too long; both name the
    /// text.
    pub(super) fn prepare(&self, texts: &mut [String], truncate: bool, provider_cuts: bool) -> Result<Vec<u64>> {
        let mut tokens = Vec::with_capacity(texts.len());
        // A text has at most as many tokens as bytes: few short texts need no exact count.
        let bytes: u64 = texts.iter().map(|text| text.len() as u64).sum();
        let is_little = self.longest.is_some_and(|longest| bytes <= longest);
        for (at, text) in texts.iter_mut().enumerate() {
            if text.trim().is_empty() {
                let why = format!("text {at} is empty: there is nothing to make a vector of");
                return Err(Error::new(ErrorKind::InvalidRequest, why).with_retry(Retry::Permanent));
            }
            let mut count = if is_little { text.len() as u64 } else { self.counter.text(text) };
            if let Some(longest) = self.longest.filter(|longest| count > *longest) {
                if truncate && !provider_cuts {
                    *text = self.cut(text, longest).to_owned();
                } else if !truncate && self.is_certain(count, longest) {
                    return Err(too_long(at, count, self.is_exact, longest));
                }
                count = count.min(longest);
            }
            tokens.push(count);
        }
        Ok(tokens)
    }

    /// Returns the limits of a call, reduced by the possible error of an estimate.
    pub(super) fn with_margin(&self, mut limits: EmbedLimits) -> EmbedLimits {
        if !self.is_exact {
            limits.tokens = limits.tokens.map(|most| most / 4 * 3);
        }
        limits
    }

    /// Adds the longest text to the provider's refusal of texts that are too long.
    pub(super) fn explained(&self, refused: Error, texts: &[String], first: usize) -> Error {
        if refused.kind() != ErrorKind::ContextOverflow || texts.len() < 2 {
            return refused;
        }
        let longest = texts.iter().enumerate().max_by_key(|(_, text)| text.len());
        let Some((at, text)) = longest else { return refused };
        let said = format!("; the longest text is {} with about {} tokens", first + at, self.counter.text(text));
        refused.map_message(|message| format!("{message}{said}"))
    }

    /// Returns true if `count` is certainly too long. An estimate may be twice the actual count; in
    /// doubt the provider decides.
    fn is_certain(&self, count: u64, longest: u64) -> bool {
        self.is_exact || count > longest.saturating_mul(2)
    }

    /// Returns the longest prefix of at most `most` tokens; of three quarters of them if counts are
    /// estimates.
    fn cut<'a>(&self, text: &'a str, most: u64) -> &'a str {
        let most = if self.is_exact { most } else { most / 4 * 3 };
        let fits = |end: usize| self.counter.text(&text[..end]) <= most;
        let ends: Vec<usize> = text.char_indices().map(|(start, _)| start).chain([text.len()]).collect();
        let longest = ends.partition_point(|end| fits(*end));
        &text[..ends[longest.saturating_sub(1)]]
    }
}

fn too_long(at: usize, tokens: u64, is_exact: bool, most: u64) -> Error {
    let about = if is_exact { "" } else { "about " };
    let why = format!("text {at} has {about}{tokens} tokens, and {most} are allowed: split it, or use truncate(true)");
    Error::new(ErrorKind::ContextOverflow, why).with_retry(Retry::Permanent)
}

/// Returns the tokenizer of OpenAI's models, or an estimate.
#[cfg(feature = "tokens")]
fn counter(model: &str) -> (Box<dyn TokenCounter>, bool) {
    let name = model.rsplit('/').next().unwrap_or(model);
    match name.starts_with("text-embedding-3") || name.starts_with("text-embedding-ada") {
        true => (Box::new(crate::tokens::Tiktoken::for_model(name)), true),
        false => (Box::new(agent_core::model::ApproximateCounter), false),
    }
}

#[cfg(not(feature = "tokens"))]
fn counter(_: &str) -> (Box<dyn TokenCounter>, bool) {
    (Box::new(agent_core::model::ApproximateCounter), false)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Counts one token per byte.
    struct Bytes;

    impl TokenCounter for Bytes {
        fn text(&self, text: &str) -> u64 {
            text.len() as u64
        }
    }

    fn lengths(longest: u64, is_exact: bool) -> Lengths {
        Lengths { counter: Box::new(Bytes), is_exact, longest: Some(longest) }
    }

    #[test]
    fn a_text_that_is_too_long_is_named_and_one_that_is_perhaps_too_long_is_the_providers_to_refuse() {
        let refused = |is_exact, length| {
            let mut texts = ["a".to_owned(), "x".repeat(length)];
            lengths(2_000, is_exact).prepare(&mut texts, false, false).err()
        };
        assert!(refused(true, 2_000).is_none());
        let error = refused(true, 2_001).expect("too long");
        assert_eq!(error.kind(), ErrorKind::ContextOverflow);
        assert!(error.message().starts_with("text 1 has 2001 tokens, and 2000 are allowed"), "{error}");
        assert!(refused(false, 3_999).is_none());
        assert!(refused(false, 4_001).expect("too long").message().contains("about 4001 tokens"));
    }

    #[test]
    fn an_empty_text_is_named() {
        let mut texts = ["a", "b", " \n"].map(str::to_owned);
        let error = lengths(10, true).prepare(&mut texts, true, false).expect_err("empty");
        assert_eq!((error.kind(), error.is_retryable()), (ErrorKind::InvalidRequest, false));
        assert!(error.message().starts_with("text 2 is empty"), "{error}");
    }

    #[test]
    fn a_text_is_cut_here_only_if_the_provider_does_not_cut() {
        let cut = |provider_cuts| {
            let mut texts = ["x".repeat(5_000)];
            let tokens = lengths(2_000, true).prepare(&mut texts, true, provider_cuts).expect("cut");
            (texts[0].len(), tokens)
        };
        assert_eq!((cut(false), cut(true)), ((2_000, vec![2_000]), (5_000, vec![2_000])));
    }

    #[test]
    fn a_refusal_for_its_length_says_which_text_is_the_longest() {
        let texts = ["short".to_owned(), "x".repeat(2_000)];
        let overflow = Error::new(ErrorKind::ContextOverflow, "too long");
        let explained = lengths(9, true).explained(overflow, &texts, 10);
        assert_eq!(explained.message(), "too long; the longest text is 11 with about 2000 tokens");
        let other = lengths(9, true).explained(Error::new(ErrorKind::Quota, "no money"), &texts, 10);
        assert_eq!(other.message(), "no money");
    }

    proptest! {
        #[test]
        fn what_is_cut_begins_the_text_and_fits_as_well_as_it_can(text in "\\PC{1,60}", most in 1_u64..60) {
            let cut = lengths(most, true).cut(&text, most).to_owned();
            prop_assert!(text.starts_with(&cut) && cut.len() as u64 <= most);
            let next = text[cut.len()..].chars().next().map_or(0, char::len_utf8);
            prop_assert!(cut.len() == text.len() || (cut.len() + next) as u64 > most || next == 0);
        }
    }
}
