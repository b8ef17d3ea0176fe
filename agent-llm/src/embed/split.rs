//! Splitting of texts into calls.

use std::ops::Range;

use super::EmbedLimits;

/// Returns ranges of texts, in order, each of which fits into one call: a text that is too large
/// for a call gets its own. `tokens` holds the number of tokens of each text.
pub(super) fn split(tokens: &[u64], limits: EmbedLimits) -> Vec<Range<usize>> {
    let (most_texts, most_tokens) = (limits.texts.max(1), limits.tokens.unwrap_or(u64::MAX));
    let (mut runs, mut start, mut held) = (Vec::new(), 0, 0_u64);
    for (at, tokens) in tokens.iter().enumerate() {
        let is_full = at - start >= most_texts || held.saturating_add(*tokens) > most_tokens;
        if at > start && is_full {
            runs.push(start..at);
            (start, held) = (at, 0);
        }
        held = held.saturating_add(*tokens);
    }
    if start < tokens.len() {
        runs.push(start..tokens.len());
    }
    runs
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_text_that_is_too_long_for_a_call_is_alone_in_one() {
        let limits = EmbedLimits { texts: 10, tokens: Some(100) };
        assert_eq!(split(&[40, 500, 60, 40, 1], limits), [0..1, 1..2, 2..4, 4..5]);
        assert!(split(&[], limits).is_empty());
    }

    proptest! {
        #[test]
        fn every_text_is_in_one_call_in_its_order_and_calls_are_within_their_limits(
            tokens in prop::collection::vec(0_u64..50, 0..60), texts in 0_usize..9, most in 1_u64..120,
        ) {
            let runs = split(&tokens, EmbedLimits { texts, tokens: Some(most) });
            prop_assert_eq!(runs.iter().cloned().flatten().collect::<Vec<_>>(), (0..tokens.len()).collect::<Vec<_>>());
            for (at, run) in runs.iter().enumerate() {
                let held: u64 = tokens[run.clone()].iter().sum();
                prop_assert!(!run.is_empty() && run.len() <= texts.max(1));
                prop_assert!(held <= most || run.len() == 1);
                // No call could have held one more text.
                if at + 1 < runs.len() {
                    prop_assert!(run.len() == texts.max(1) || held + tokens[run.end] > most);
                }
            }
        }
    }
}
