//! Token usage.

use agent_core::Usage;
use serde_json::Value;

use crate::wire::lenient::count;

/// Decodes `usageMetadata`; invalid counts are ignored.
///
/// Thoughts are counted separately from the candidates, and tool-use prompts separately from the
/// prompt. A server that counts differently is recognised by its total, which is kept.
pub(super) fn usage(said: &Value) -> Usage {
    if !said.is_object() {
        return Usage::default();
    }
    let count = |place| count(said, place);
    let prompt = count("/promptTokenCount") + count("/toolUsePromptTokenCount");
    let (candidates, thoughts) = (count("/candidatesTokenCount"), count("/thoughtsTokenCount"));
    let total = count("/totalTokenCount");
    let output = if total == prompt + candidates {
        candidates // includes the thoughts
    } else {
        (candidates + thoughts).max(total.saturating_sub(prompt))
    };
    let cached = count("/cachedContentTokenCount").min(prompt);
    let mut usage = Usage::new(prompt - cached, output);
    (usage.cached, usage.reasoning) = (cached, thoughts.min(output));
    usage
}

#[cfg(test)]
mod tests {
    use super::*;

    fn usage(json: &str) -> Usage {
        super::usage(&serde_json::from_str(json).expect("valid JSON"))
    }

    #[test]
    fn no_token_is_counted_twice_and_the_total_is_kept() {
        let usage = usage(
            r#"{"promptTokenCount": 10, "cachedContentTokenCount": 4, "candidatesTokenCount": 3, "thoughtsTokenCount": 6,
                "toolUsePromptTokenCount": 5, "totalTokenCount": 24}"#,
        );
        assert_eq!((usage.input, usage.cached, usage.output, usage.reasoning), (11, 4, 9, 6));
        assert_eq!((usage.total(), usage.calls), (24, 1));
    }

    #[test]
    fn the_total_says_what_the_parts_leave_out() {
        let among = usage(
            r#"{"promptTokenCount": 10, "candidatesTokenCount": 4, "thoughtsTokenCount": 3, "totalTokenCount": 14}"#,
        );
        assert_eq!((among.output, among.reasoning, among.total()), (4, 3, 14));
        let unsaid = usage(r#"{"promptTokenCount": 10, "totalTokenCount": 14}"#);
        assert_eq!((unsaid.output, unsaid.total()), (4, 14));
        let no_total = usage(r#"{"promptTokenCount": 10, "candidatesTokenCount": 2, "thoughtsTokenCount": 2}"#);
        assert_eq!(no_total.total(), 14);
    }

    #[test]
    fn nonsense_counts_as_nothing() {
        assert_eq!(usage(r#"{"promptTokenCount": -3, "candidatesTokenCount": "NaN"}"#), Usage::new(0, 0));
        assert_eq!(usage(r#"{"promptTokenCount": 2, "cachedContentTokenCount": 9}"#).prompt(), 2);
        assert_eq!(usage("7"), Usage::default());
    }
}
