//! Citations in the format of OpenAI's APIs.

use agent_core::message::Citation;
use serde_json::value::RawValue;

use super::{
    content::bytes_of,
    lenient::{Str, each, lenient, owned},
    open_struct::open_struct,
};

open_struct! {
    /// One source. Chat Completions nest it in a field named after its type.
    Annotation {
        of_page: &'a RawValue = "url_citation",
        url: Str<'a> = "url",
        title: Str<'a> = "title",
        quote: Str<'a> = "content",
        filename: Str<'a> = "filename",
        file_id: Str<'a> = "file_id",
        start: usize = "start_index",
        end: usize = "end_index",
    }
}

/// Returns the sources in the `annotations` of the text `of`: web pages, and files by name. Other
/// types are skipped; the JSON kept alongside the text contains them all.
pub(crate) fn citations(annotations: &RawValue, of: &str) -> Vec<Citation> {
    let mut citations = Vec::new();
    let read = each(annotations, |json| {
        let mut said: Annotation<'_> = lenient(json);
        if let Some(json) = said.of_page {
            said = lenient(json);
        }
        let mut citation = Citation::default();
        (citation.url, citation.file, citation.quote) = (owned(said.url), owned(said.file_id), owned(said.quote));
        citation.title = owned(said.title).or(owned(said.filename)).or_else(|| citation.file.clone());
        citation.bytes = said.start.zip(said.end).and_then(|(from, to)| bytes_of(of, from, to));
        citations.extend(Some(citation).filter(|said| said.url.is_some() || said.title.is_some()));
        Ok(())
    });
    read.map_or_else(|_| Vec::new(), |()| citations)
}
