//! Where a text is from.

use agent_core::message::Citation;
use serde_json::value::RawValue;

use crate::wire::{lenient::Str, open_struct::open_struct};

open_struct! {
    Annotation {
        url: Str<'a> = "url",
        title: Str<'a> = "title",
        filename: Str<'a> = "filename",
        file_id: Str<'a> = "file_id",
    }
}

/// Reads the annotations of a text: pages, and files by their names. Of other forms there is none; the text keeps them all
/// in its JSON.
pub(super) fn citations(annotations: &RawValue) -> Vec<Citation> {
    let annotations: Vec<Annotation<'_>> = serde_json::from_str(annotations.get()).unwrap_or_default();
    let text = |said: Option<Str<'_>>| said.filter(|said| !said.is_empty()).map(|said| said.0.into_owned());
    let citations = annotations.into_iter().map(|annotation| {
        let mut citation = Citation::default();
        citation.url = text(annotation.url);
        citation.title = text(annotation.title).or(text(annotation.filename)).or(text(annotation.file_id));
        citation
    });
    citations.filter(|citation| *citation != Citation::default()).collect()
}
