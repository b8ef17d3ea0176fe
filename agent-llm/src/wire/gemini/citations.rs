//! Where the model has its words from.

use agent_core::{Block, message::Citation};
use serde::Deserialize;

use super::{fold::Heard, rest::Rest};

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

/// Puts citations to the texts that they speak of, and tells listeners.
///
/// The search names the words that a source supports: its sources belong to the text that holds these words. What was
/// recited is named by its place, of which it is only certain in an answer of one text. Sources that belong to no text for
/// certain are in the details alone.
pub(super) fn cite(blocks: &mut [Block], rest: &Rest, heard: &mut Heard<'_>) {
    let grounding: Grounding = read(rest, "groundingMetadata");
    let mut cited = vec![Vec::new(); blocks.len()];
    for support in grounding.grounding_supports.iter().filter(|support| !support.segment.text.is_empty()) {
        let holds = |block: &Block| matches!(block, Block::Text(text) if text.text.contains(&support.segment.text));
        if let Some(at) = blocks.iter().position(holds) {
            let sources = support.grounding_chunk_indices.iter().filter_map(|n| grounding.grounding_chunks.get(*n));
            cited[at].extend(sources.filter_map(Source::citation));
        }
    }
    let recited: Recitations = read(rest, "citationMetadata");
    let mut texts = (0..).zip(&*blocks).filter(|(_, block)| matches!(block, Block::Text(_)));
    if let (Some((at, _)), None) = (texts.next(), texts.next()) {
        let at: usize = at;
        cited[at].extend(recited.citations.iter().filter_map(Page::citation));
    }
    for ((index, block), cited) in (0..).zip(blocks).zip(cited) {
        let Block::Text(text) = block else { continue };
        for citation in cited {
            if !text.citations.contains(&citation) {
                text.citations.push(citation);
            }
        }
        if !text.citations.is_empty() {
            heard.retell(index, block);
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
