//! Citations.

use agent_core::{Block, Text, message::Citation};
use serde_json::{Map, Value};

/// Returns the texts with sources, with their citations and their index among the blocks.
///
/// Grounding metadata quotes the text that a source supports: its sources belong to the block that
/// contains this text. Recitations give offsets, which are only unambiguous in an answer of one
/// text. Sources that cannot be assigned to a text stay in the details.
pub(super) fn cited<'a>(blocks: impl Iterator<Item = &'a Block>, rest: &Map<String, Value>) -> Vec<(usize, Block)> {
    let said = |name: &str| rest.get(name).unwrap_or(&Value::Null);
    let (grounding, recited) = (said("groundingMetadata"), said("citationMetadata"));
    let (supports, pages) = (list(grounding, "groundingSupports"), list(grounding, "groundingChunks"));
    let recited = [list(recited, "citations"), list(recited, "citationSources")].concat();
    if supports.is_empty() && recited.is_empty() {
        return Vec::new();
    }
    let texts = blocks.enumerate().filter_map(|(at, block)| match block {
        Block::Text(text) => Some((at, text.clone())),
        _ => None,
    });
    let mut texts: Vec<(usize, Text)> = texts.collect();
    for support in supports {
        let Some(words) = support["segment"]["text"].as_str().filter(|words| !words.is_empty()) else { continue };
        let Some((at, text)) = texts.iter_mut().find_map(|(_, text)| Some((text.text.find(words)?, text))) else {
            continue;
        };
        for number in list(support, "groundingChunkIndices").iter().filter_map(Value::as_u64) {
            let source = usize::try_from(number).ok().and_then(|number| pages.get(number));
            // One of its fields contains the source.
            let kinds = ["web", "retrievedContext", "maps"].into_iter();
            if let Some(mut source) = source.and_then(|source| kinds.filter_map(|kind| citation(&source[kind])).next())
            {
                source.bytes = Some(at..at + words.len());
                cite(text, source);
            }
        }
    }
    if let [(_, only)] = &mut *texts {
        recited.iter().filter_map(citation).for_each(|source| cite(only, source));
    }
    texts.into_iter().map(|(at, text)| (at, Block::Text(text))).collect()
}

fn list<'a>(said: &'a Value, name: &str) -> &'a [Value] {
    said[name].as_array().map_or(&[], Vec::as_slice)
}

fn cite(text: &mut Text, source: Citation) {
    if !text.citations.contains(&source) {
        text.citations.push(source);
    }
}

/// Decodes a citation; `None` if the source is empty.
fn citation(page: &Value) -> Option<Citation> {
    let said = |name: &str| page[name].as_str().map(str::to_owned);
    let mut citation = Citation::default();
    (citation.url, citation.title, citation.quote) = (said("uri"), said("title"), said("text"));
    Some(citation).filter(|citation| *citation != Citation::default())
}
