//! Where the model has its words from.

use agent_core::{Block, Text, message::Citation};
use serde::Deserialize;

use super::rest::Rest;

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Grounding {
    grounding_chunks: Vec<Source>,
    grounding_supports: Vec<Support>,
}

/// One of its fields says what it is.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Source {
    web: Option<Page>,
    retrieved_context: Option<Page>,
    maps: Option<Page>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Page {
    uri: Option<String>,
    title: Option<String>,
    text: Option<String>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Support {
    segment: Segment,
    grounding_chunk_indices: Vec<usize>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Segment {
    text: String,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Recitations {
    #[serde(alias = "citationSources")]
    citations: Vec<Page>,
}

/// The texts that have sources, with their citations, each with its place among the blocks.
///
/// The search names the words that a source supports: its sources belong to the text that holds these words. What was
/// recited is named by its place, of which it is only certain in an answer of one text. Sources that belong to no text for
/// certain are in the details alone.
pub(super) fn cited<'a>(blocks: impl Iterator<Item = &'a Block>, rest: &Rest) -> Vec<(usize, Block)> {
    let grounding: Grounding = read(rest, "groundingMetadata");
    let recited: Recitations = read(rest, "citationMetadata");
    if grounding.grounding_supports.is_empty() && recited.citations.is_empty() {
        return Vec::new();
    }
    let texts = blocks.enumerate().filter_map(|(at, block)| match block {
        Block::Text(text) => Some((at, text.clone())),
        _ => None,
    });
    let mut texts: Vec<(usize, Text)> = texts.collect();
    for support in grounding.grounding_supports.iter().filter(|support| !support.segment.text.is_empty()) {
        let words = &support.segment.text;
        if let Some((at, text)) = texts.iter_mut().find_map(|(_, text)| Some((text.text.find(words)?, text))) {
            let sources = support.grounding_chunk_indices.iter().filter_map(|n| grounding.grounding_chunks.get(*n));
            let bytes = at..at + words.len();
            cite(
                text,
                sources.filter_map(Source::citation).map(|mut citation| {
                    citation.bytes = Some(bytes.clone());
                    citation
                }),
            );
        }
    }
    if let [(_, only)] = &mut *texts {
        cite(only, recited.citations.iter().filter_map(Page::citation));
    }
    texts.into_iter().map(|(at, text)| (at, Block::Text(text))).collect()
}

fn cite(text: &mut Text, sources: impl Iterator<Item = Citation>) {
    for source in sources {
        if !text.citations.contains(&source) {
            text.citations.push(source);
        }
    }
}

fn read<T: for<'de> Deserialize<'de> + Default>(rest: &Rest, name: &str) -> T {
    rest.get(name).and_then(|json| serde_json::from_str(json).ok()).unwrap_or_default()
}

impl Source {
    fn citation(&self) -> Option<Citation> {
        [&self.web, &self.retrieved_context, &self.maps].into_iter().flatten().find_map(Page::citation)
    }
}

impl Page {
    /// None if nothing is said of the source.
    fn citation(&self) -> Option<Citation> {
        let mut citation = Citation::default();
        citation.url.clone_from(&self.uri);
        citation.title.clone_from(&self.title);
        citation.quote.clone_from(&self.text);
        Some(citation).filter(|citation| *citation != Citation::default())
    }
}
