//! Where a text is from.

use agent_core::message::Citation;
use serde_json::value::RawValue;

use crate::wire::{content::bytes_of, lenient::Str, open_struct::open_struct};

open_struct! {
    Annotation {
        url: Str<'a> = "url",
        title: Str<'a> = "title",
        filename: Str<'a> = "filename",
        file_id: Str<'a> = "file_id",
        start: usize = "start_index",
        end: usize = "end_index",
    }
}

/// Reads the annotations of the text `of`: pages, and files by their names. Of other forms there is none; the text keeps them all
/// in its JSON.
pub(super) fn citations(annotations: &RawValue, of: &str) -> Vec<Citation> {
    let annotations: Vec<Annotation<'_>> = serde_json::from_str(annotations.get()).unwrap_or_default();
    let text = |said: Option<Str<'_>>| said.filter(|said| !said.is_empty()).map(|said| said.0.into_owned());
    let citations = annotations.into_iter().map(|annotation| {
        let mut citation = Citation::default();
        citation.url = text(annotation.url);
        citation.file = text(annotation.file_id);
        citation.title = text(annotation.title).or(text(annotation.filename)).or_else(|| citation.file.clone());
        citation.bytes = annotation.start.zip(annotation.end).and_then(|(from, to)| bytes_of(of, from, to));
        citation
    });
    citations.filter(|citation| citation.url.is_some() || citation.title.is_some()).collect()
}
