//! Providers of recorded exchanges, from the provider table.

use agent::llm::{Provider, Providers};

use super::Exchange;

/// Returns the provider of an exchange, with its address filled in; `None` if the table does not
/// have it.
pub(super) fn provider_of(exchange: &Exchange) -> Option<Provider> {
    let provider = Providers::builtin().get(name_of(&exchange.provider))?.clone();
    let places: Vec<_> = provider.places.keys().cloned().collect();
    Some(places.iter().fold(provider, |provider, place| provider.with(place, "recorded")))
}

/// Returns the table's name of a recorded provider.
fn name_of(recorded: &str) -> &str {
    if recorded == "llamacpp" { "llama.cpp" } else { recorded }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use agent::llm::Wire;
    use serde_json::Value;

    use super::*;

    /// Providers and APIs in the corpus: `provider api`, one per line.
    const CORPUS: &str = include_str!("corpus.txt");

    /// Returns the wire of an API name in the corpus; embeddings have none.
    fn wire_of(api: &str) -> Option<Wire> {
        Some(match api {
            "openai-chat" => Wire::Chat,
            "openai-responses" => Wire::Responses,
            "anthropic-messages" | "bedrock-invoke" => Wire::Messages,
            "gemini-generate" => Wire::Generate,
            "cohere-chat" => Wire::Cohere,
            "bedrock-converse" => Wire::Converse,
            "ollama-chat" => Wire::Ollama,
            _ => return None,
        })
    }

    #[test]
    fn what_the_table_calls_recorded_is_what_the_corpus_has_exchanges_of() {
        let pairs: Vec<_> = CORPUS.lines().filter_map(|line| line.split_once(' ')).collect();
        for provider in Providers::builtin().iter() {
            let of_it = || pairs.iter().filter(|(name, _)| name_of(name) == provider.name);
            let wires: BTreeSet<_> =
                of_it().filter_map(|(_, api)| wire_of(api)).map(|wire| format!("{wire:?}")).collect();
            let spoken = provider.wires.iter().map(|wire| format!("{wire:?}")).filter(|wire| wires.contains(wire));
            let said: BTreeSet<_> = provider.recorded.iter().map(|wire| format!("{wire:?}")).collect();
            assert_eq!(said, spoken.collect(), "{}: the wires that are recorded", provider.name);
            let embeds = provider.embed.as_ref().map(|embed| serde_json::to_value(embed).expect("is data"));
            let is_said = embeds.is_some_and(|embed| embed.get("recorded") == Some(&Value::Bool(true)));
            let has = of_it().any(|(_, api)| *api == "embeddings");
            assert_eq!(is_said, has, "{}: whether its embeddings are recorded", provider.name);
        }
    }
}
