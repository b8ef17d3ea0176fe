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
    ///
    /// A word counts as the inverse of how many tools have it: a question in whole sentences is full of words that say nothing.
    pub(super) fn best<'a>(
        &self,
        tools: &[&'a ToolSpec],
        hint: impl Fn(&str) -> Option<&'a String>,
        most: usize,
    ) -> Vec<&'a str> {
        let read: Vec<_> = tools.iter().map(|tool| Words::of(tool, hint(&tool.name))).collect();
        let mut scores = vec![Some(0.0); tools.len()];
        for term in &self.0 {
            let fits: Vec<_> = read.iter().map(|tool| term.fit(tool)).collect();
            let having = fits.iter().filter(|fit| fit.is_some_and(|fit| fit > 0)).count();
            let rarity = (1.0 + tools.len() as f64 / having.max(1) as f64).ln();
            for (score, fit) in scores.iter_mut().zip(fits) {
                *score = score.zip(fit).map(|(score, fit)| score + rarity * f64::from(fit));
            }
        }
        let scored = tools.iter().zip(scores).filter_map(|(tool, score)| Some((&*tool.name, score?)));
        let mut found: Vec<_> = scored.filter(|(_, score)| *score > 0.0).collect();
        found.sort_by(|a, b| b.1.total_cmp(&a.1));
        found.into_iter().take(most).map(|(name, _)| name).collect()
    }
}

impl Term {
    /// How well a tool fits: a word of the name counts most, then a part of it, then a word of the hint, then one of the
    /// description. None of a tool that has a required word neither in its name nor in its hint.
    fn fit(&self, tool: &Words) -> Option<u32> {
        let Self { word, required } = self;
        let in_name = match tool.name.contains(word) {
            true => 10,
            false if tool.whole_name.contains(word) => 5,
            false => 0,
        };
        let in_hint = if begins(&tool.hint, word) { 4 } else { 0 };
        let in_description = if begins(&tool.description, word) { 2 } else { 0 };
        (!required || in_name + in_hint > 0).then_some(in_name + in_hint + in_description)
    }
}

/// What is known of a tool, as words.
struct Words {
    name: Vec<String>,
    whole_name: String,
    hint: Vec<String>,
    description: Vec<String>,
}

impl Words {
    fn of(tool: &ToolSpec, hint: Option<&String>) -> Self {
        Self {
            name: words(&tool.name),
            whole_name: tool.name.to_lowercase(),
            hint: hint.map_or_else(Vec::new, |hint| words(hint)),
            description: words(&tool.description),
        }
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
