//! Citations.

use agent_core::{Block, message::Citation};
use serde_json::{Value, value::RawValue};

use crate::wire::{
    content::bytes_of,
    lenient::{Str, lenient},
    open_struct::open_struct,
};

open_struct! {
    Turn { citations: Vec<&'a RawValue> = "citations", }
}

open_struct! {
    Cited {
        kind: Str<'a> = "type",
        sources: Vec<&'a RawValue> = "sources",
        start: usize = "start",
        end: usize = "end",
    }
}

open_struct! {
    Source { id: Str<'a> = "id", document: Value = "document", tool_output: Value = "tool_output", }
}

/// Adds the citations in `turn` to its text. Citations of plans and of reasoning stay in the raw
/// turn.
pub(super) fn cite(turn: &RawValue, blocks: &mut [Block]) {
    let Some(text) = blocks.iter_mut().find_map(|block| if let Block::Text(text) = block { Some(text) } else { None })
    else {
        return;
    };
    for json in lenient::<Turn<'_>>(turn).citations.unwrap_or_default() {
        let cited: Cited<'_> = lenient(json);
        if cited.kind.is_none_or(|kind| kind.0 == "TEXT_CONTENT") {
            let bytes = cited.start.zip(cited.end).and_then(|(from, to)| bytes_of(&text.text, from, to));
            let sources = cited.sources.unwrap_or_default().into_iter();
            text.citations.extend(sources.map(|source| {
                let mut citation = citation(lenient(source));
                citation.bytes.clone_from(&bytes);
                citation
            }));
        }
    }
}

/// Decodes a citation. Its source is a document of the request, or a tool result.
fn citation(source: Source<'_>) -> Citation {
    let said = source.document.or(source.tool_output).unwrap_or_default();
    let field = |names: &[&str]| names.iter().find_map(|name| Some(said.get(name)?.as_str()?.to_owned()));
    let mut citation = Citation::default();
    citation.url = field(&["url"]);
    citation.title = field(&["title"]).or(source.id.map(|id| id.0.into_owned()));
    citation.quote = field(&["text", "snippet", "content"]);
    citation
}
