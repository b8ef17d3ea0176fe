//! How well a tool fits what is looked for.

use agent_core::{
    ToolSpec,
    search::{names, parts},
};

/// What is looked for.
pub(super) struct Query(Vec<Term>);

struct Term {
    word: String,
    required: bool,
}

impl Query {
    /// Reads words; those with a `+` before them are required.
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

    /// The best `most` of the tools, best first; of two that fit alike, the one that comes first among `tools`.
    pub(super) fn best<'a>(
        &self,
        tools: &[&'a ToolSpec],
        hint: impl Fn(&str) -> Option<&'a String>,
        most: usize,
    ) -> Vec<&'a str> {
        let mut found: Vec<_> = tools
            .iter()
            .map(|tool| (self.score(tool, hint(&tool.name).map_or("", String::as_str)), &*tool.name))
            .filter(|(score, _)| *score > 0)
            .collect();
        found.sort_by_key(|(score, _)| std::cmp::Reverse(*score));
        found.into_iter().take(most).map(|(_, name)| name).collect()
    }

    /// A word of the name counts most, then a part of it, then a word of the hint, then one of the description. A required
    /// word must be in the name or the hint.
    fn score(&self, tool: &ToolSpec, hint: &str) -> u32 {
        let (name, lower) = (words(&tool.name), tool.name.to_lowercase());
        let (hint, description) = (words(hint), words(&tool.description));
        let mut total = 0;
        for Term { word, required } in &self.0 {
            let in_name = match name.contains(word) {
                true => 10,
                false if lower.contains(word) => 5,
                false => 0,
            };
            let in_hint = if begins(&hint, word) { 4 } else { 0 };
            if *required && in_name + in_hint == 0 {
                return 0;
            }
            total += in_name + in_hint + if begins(&description, word) { 2 } else { 0 };
        }
        total
    }
}

/// True if one of the words begins with `word`; in scripts that put no spaces between words, if one holds it.
fn begins(words: &[String], word: &str) -> bool {
    words.iter().any(|other| other.starts_with(word) || !word.is_ascii() && other.contains(word))
}

/// The words of a text in small letters; `HTTPClient` has two, as has `http_client`.
fn words(text: &str) -> Vec<String> {
    names(text).flat_map(parts).map(str::to_lowercase).collect()
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
        let tools = [tool("c", "Sends mail."), tool("b", ""), tool("resend", ""), tool("mail_send", "")];
        let hint = String::from("send post");
        let found = Query::read("send").best(&tools.each_ref(), |name| (name == "b").then_some(&hint), 9);
        assert_eq!(found, ["mail_send", "resend", "b", "c"]);
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
