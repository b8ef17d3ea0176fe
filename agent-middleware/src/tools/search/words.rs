//! Ranking of tools for a search query.

use std::collections::BTreeSet;

use agent_core::ToolSpec;
use agent_retrieval::search::{Bm25, words};
use serde_json::Value;

/// Weight and length normalisation of the fields: name, hint, description, parameters.
const FIELDS: [(f64, f64); 4] = [(5.0, 0.75), (3.0, 0.75), (1.0, 0.75), (0.75, 0.75)];

/// A search query.
pub(super) struct Query(Vec<Term>);

struct Term {
    word: String,
    required: bool,
}

impl Query {
    /// Parses words; those with the prefix `+` are required.
    pub(super) fn read(text: &str) -> Self {
        let terms = text.split_whitespace().flat_map(|token| {
            let required = token.starts_with('+');
            words(token).into_iter().map(move |word| Term { word, required })
        });
        Self(terms.collect())
    }

    /// True if it has no word.
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the best `most` of the tools, best first; ties keep the order of `tools`.
    pub(super) fn best<'a>(
        &self,
        tools: &[&'a ToolSpec],
        hint: impl Fn(&str) -> Option<&'a String>,
        most: usize,
    ) -> Vec<&'a str> {
        let texts = tools.iter().map(|tool| {
            let hint = hint(&tool.name).map_or_else(Vec::new, |hint| words(hint));
            [words(&tool.name), hint, words(&tool.description), parameters(&tool.parameters)]
        });
        let texts: Vec<_> = texts.collect();
        let known: BTreeSet<&str> = texts.iter().flatten().flatten().map(String::as_str).collect();
        let meant = self.0.iter().flat_map(|term| term.meant(&known));
        let ranked = Bm25::of_fields(FIELDS, texts.iter().cloned()).rank(meant);
        let fits = ranked.iter().filter(|(at, _)| self.0.iter().all(|term| term.allows(&texts[*at])));
        fits.take(most).map(|(at, _)| &*tools[*at].name).collect()
    }
}

impl Term {
    /// Returns the words that the term matches, with their weights: itself or, if no tool contains
    /// it, the words of which it is a part, with a weight divided by their number. So `mail` finds
    /// `email`, and words are found in scripts without spaces between words. Terms of less than
    /// four bytes only match themselves.
    fn meant<'a>(&'a self, known: &BTreeSet<&'a str>) -> Vec<(&'a str, f64)> {
        let word = self.word.as_str();
        if known.contains(word) || word.len() < 4 {
            return vec![(word, 1.0)];
        }
        let around: Vec<_> = known.iter().copied().filter(|known| known.contains(word)).collect();
        let weight = 1.0 / around.len() as f64;
        around.into_iter().map(|word| (word, weight)).collect()
    }

    /// False if the term is required and in neither the tool's name nor its hint.
    fn allows(&self, [name, hint, ..]: &[Vec<String>; 4]) -> bool {
        !self.required || name.iter().chain(hint).any(|word| word.contains(&self.word))
    }
}

/// Returns the words of a schema: the names of parameters, and their descriptions.
fn parameters(schema: &Value) -> Vec<String> {
    match schema {
        Value::Object(fields) => fields
            .iter()
            .flat_map(|(key, value)| match (key.as_str(), value) {
                ("properties", Value::Object(properties)) => properties
                    .iter()
                    .flat_map(|(name, schema)| words(name).into_iter().chain(parameters(schema)))
                    .collect(),
                ("description", Value::String(text)) => words(text),
                (_, value) => parameters(value),
            })
            .collect(),
        Value::Array(values) => values.iter().flat_map(parameters).collect(),
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn tool(name: &str, description: &str) -> ToolSpec {
        ToolSpec::new(name, description, json!({}))
    }

    #[test]
    fn a_name_counts_more_than_a_hint_and_a_hint_more_than_a_description() {
        let tools = [tool("c", "Can send mail."), tool("b", ""), tool("resend", ""), tool("mail_send", "")];
        let hint = String::from("send post");
        let found = Query::read("send").best(&tools.each_ref(), |name| (name == "b").then_some(&hint), 9);
        assert_eq!(found, ["mail_send", "b", "c"]);
    }

    #[test]
    fn a_word_that_no_tool_has_stands_for_those_of_which_it_is_a_part() {
        let tools = [tool("resend", ""), tool("list", "查询天气")];
        let best = |query| Query::read(query).best(&tools.each_ref(), |_| None, 9);
        assert_eq!(best("send"), ["resend"]);
        assert_eq!(best("天气"), ["list"]);
        assert_eq!(best("resends"), [""; 0]);
    }

    #[test]
    fn a_tool_is_found_by_its_parameters_and_what_is_said_of_them() {
        let schema = json!({"type": "object", "properties": {
            "zip_code": {"type": "string"},
            "at": {"type": "array", "items": {"type": "string", "description": "A weekday."}},
        }});
        let tools = [tool("a", ""), ToolSpec::new("b", "", schema)];
        for query in ["zip", "weekday"] {
            assert_eq!(Query::read(query).best(&tools.each_ref(), |_| None, 9), ["b"], "{query}");
        }
    }

    #[test]
    fn a_word_with_a_plus_is_required() {
        let tools = [tool("mail_send", "Not for slack."), tool("slack_list", ""), tool("slack_send", "")];
        assert_eq!(Query::read("+slack send").best(&tools.each_ref(), |_| None, 9), ["slack_send", "slack_list"]);
        assert_eq!(Query::read("slack send").best(&tools.each_ref(), |_| None, 2), ["slack_send", "mail_send"]);
        assert!(Query::read("+discord send").best(&tools.each_ref(), |_| None, 9).is_empty());
    }

    proptest! {
        #[test]
        fn no_query_finds_more_than_it_may(query in "\\PC{0,40}", most in 0_usize..4) {
            let tools = [tool("aB", "c d"), tool("b_c", "a"), tool("c", "")];
            prop_assert!(Query::read(&query).best(&tools.each_ref(), |_| None, most).len() <= most);
        }
    }
}
