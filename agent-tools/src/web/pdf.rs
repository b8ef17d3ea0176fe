//! PDF to text.

use std::time::Instant;

use agent_core::{Error, Result};
use lopdf::{Document, LoadOptions};

use super::apart::in_time;

/// Most bytes that one stream of a document may have when it is decompressed.
const LARGEST_STREAM: usize = 16 << 20;
/// Most pages that are read.
const MOST_PAGES: usize = 2_000;

/// The title, and the text of the pages, each under its number.
///
/// # Errors
/// If it is no PDF, has a password, or is not read at `end`.
pub(super) fn read(bytes: &[u8], most: usize, end: Instant) -> Result<(Option<String>, String)> {
    let options = LoadOptions { max_decompressed_size: Some(LARGEST_STREAM), ..LoadOptions::default() };
    let unread = |e| Error::tool("the PDF is damaged, or is none").with_source(e);
    let pdf = Document::load_mem_with_options(bytes, options).map_err(unread)?;
    if pdf.is_encrypted() {
        return Err(Error::tool("the PDF has a password, so it cannot be read"));
    }
    let mut text = String::new();
    for number in pdf.get_pages().into_keys().take(MOST_PAGES) {
        in_time(end, "the PDF")?;
        // A page that cannot be read says so; the others may still.
        let page =
            pdf.extract_text_with_limit(&[number], LARGEST_STREAM).unwrap_or_else(|_| "[not readable]".to_owned());
        text.push_str(&format!("[page {number}]\n{}\n\n", page.trim()));
        if text.len() > most {
            text.push_str("[cut: the rest is longer than what is read]");
            break;
        }
    }
    if text.is_empty() {
        return Err(Error::tool("the PDF has no pages"));
    }
    Ok((title(&pdf), text.trim_end().to_owned()))
}

fn title(pdf: &Document) -> Option<String> {
    let info = pdf.trailer.get(b"Info").ok()?;
    let info = pdf.dereference(info).ok()?.1.as_dict().ok()?;
    let title = lopdf::decode_text_string(info.get(b"Title").ok()?).ok()?;
    Some(title.trim().to_owned()).filter(|title| !title.is_empty())
}
