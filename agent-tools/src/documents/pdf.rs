//! Text extraction from PDF.

use std::{cell::Cell, ops::RangeInclusive, panic::resume_unwind, time::Instant};

use agent_core::{Error, Result};
use lopdf::{Document, LoadOptions, Object, ObjectId};

use super::parser_pool::in_time;

/// Maximum of decompressed bytes of one stream of a document.
const LARGEST_STREAM: usize = 4 << 20;
/// Approximate maximum of memory for a document's objects: a cross-reference table can name one
/// large object many times.
const MOST_MEMORY: usize = 128 << 20;
/// Maximum of fonts per page: each is parsed again for each page.
const MOST_FONTS: usize = 64;
/// Maximum of pages that are read.
const MOST_PAGES: usize = 2_000;

thread_local! {
    /// Remaining limits of the document that this thread reads: bytes of memory, and the deadline.
    static LEFT: Cell<Option<(usize, Instant)>> = const { Cell::new(None) };
}

/// Extracted text of a document.
#[derive(Debug)]
pub(crate) struct Pdf {
    pub(crate) title: Option<String>,
    /// Text of the pages, each under its number.
    pub(crate) text: String,
    /// Last page in the text.
    pub(crate) last: u32,
    /// Number of pages of the document.
    pub(crate) pages: u32,
}

/// Reads the requested pages, until their text has more than `most` bytes. The caller must catch
/// panics: a document that exceeds its limits is abandoned by a panic.
///
/// # Errors
/// If `bytes` is not a PDF, is encrypted, has none of the pages, or was not read by `end`.
pub(crate) fn read(bytes: &[u8], wanted: RangeInclusive<u32>, most: usize, end: Instant) -> Result<Pdf> {
    // The filter does not see encrypted objects, so encrypted documents are rejected first.
    if is_encrypted(bytes) {
        return Err(Error::tool("the PDF is encrypted, so it is not read"));
    }
    LEFT.set(Some((MOST_MEMORY, end)));
    let filter = Some(within_limits as fn(ObjectId, &mut Object) -> Option<(ObjectId, Object)>);
    let options = LoadOptions { max_decompressed_size: Some(LARGEST_STREAM), filter, ..LoadOptions::default() };
    let unread = |e| Error::tool("the PDF is damaged, or is none").with_source(e);
    let pdf = Document::load_mem_with_options(bytes, options).map_err(unread)?;
    let all = pdf.get_pages();
    let (mut text, mut last, pages) = (String::new(), 0, u32::try_from(all.len()).unwrap_or(u32::MAX));
    for (&number, &page) in all.range(wanted.clone()).take(MOST_PAGES) {
        in_time(end, "the PDF")?;
        let few_fonts = pdf.get_page_fonts(page).is_ok_and(|fonts| fonts.len() <= MOST_FONTS);
        let read = few_fonts.then(|| pdf.extract_text_with_limit(&[number], LARGEST_STREAM).ok()).flatten();
        // An unreadable page yields a placeholder; other pages may still be readable.
        let page = read.unwrap_or_else(|| "[not readable]".to_owned());
        text.push_str(&format!("[page {number}]\n{}\n\n", page.trim()));
        last = number;
        if text.len() > most {
            break;
        }
    }
    match (text.is_empty(), pages) {
        (true, 0) => Err(Error::tool("the PDF has no pages")),
        (true, _) => Err(Error::tool(format!("the PDF has {pages} pages: page {} is after the last", wanted.start()))),
        _ => Ok(Pdf { title: title(&pdf), text: text.trim_end().to_owned(), last, pages }),
    }
}

fn title(pdf: &Document) -> Option<String> {
    let info = pdf.trailer.get(b"Info").ok()?;
    let info = pdf.dereference(info).ok()?.1.as_dict().ok()?;
    let title = lopdf::decode_text_string(info.get(b"Title").ok()?).ok()?;
    Some(title.trim().to_owned()).filter(|title| !title.is_empty())
}

/// Callback for each object while a document is loaded; abandons the document when no time or
/// memory is left. Unwinding is the only means to stop the loader; the panic is not reported.
fn within_limits(id: ObjectId, object: &mut Object) -> Option<(ObjectId, Object)> {
    let (memory, end) = LEFT.get().unwrap_or((0, Instant::now()));
    let memory = memory.checked_sub(size(object));
    if memory.is_none() || Instant::now() >= end {
        resume_unwind(Box::new("the PDF takes too much memory or time"));
    }
    LEFT.set(memory.map(|memory| (memory, end)));
    // The loader uses this copy of some objects, and the returned one of others.
    Some((id, object.clone()))
}

/// Estimates the memory of an object. The parser bounds its depth.
fn size(object: &Object) -> usize {
    let own = size_of::<Object>();
    let of_fields =
        |fields: &lopdf::Dictionary| fields.iter().map(|(name, value)| name.len() + 48 + size(value)).sum::<usize>();
    own + match object {
        Object::Array(all) => all.iter().map(size).sum(),
        Object::Dictionary(fields) => of_fields(fields),
        Object::Stream(stream) => stream.content.len() + of_fields(&stream.dict),
        Object::Name(bytes) | Object::String(bytes, _) => bytes.len(),
        _ => 0,
    }
}

/// Returns true if a name is `Encrypt` in any spelling: `#79` is a letter of a name.
fn is_encrypted(bytes: &[u8]) -> bool {
    const NAME: &[u8] = b"Encrypt";
    let mut names = bytes.iter().enumerate().filter(|(_, byte)| **byte == b'/').map(|(at, _)| &bytes[at + 1..]);
    names.any(|mut name| {
        NAME.iter().all(|letter| {
            let hex =
                name.strip_prefix(b"#").and_then(|rest| rest.get(..2)).and_then(|hex| std::str::from_utf8(hex).ok());
            let escaped = hex.and_then(|hex| u8::from_str_radix(hex, 16).ok());
            let (byte, width) = escaped.map_or((name.first().copied(), 1), |byte| (Some(byte), 3));
            name = name.get(width..).unwrap_or_default();
            byte == Some(*letter)
        })
    })
}

#[cfg(test)]
mod tests {
    use std::{panic::catch_unwind, time::Duration};

    use super::*;

    fn soon() -> Instant {
        Instant::now() + Duration::from_secs(60)
    }

    #[test]
    fn what_is_encrypted_is_refused_however_it_says_so() {
        for said in ["/Encrypt 5 0 R", "/#45ncrypt 5 0 R", "/Encr#79pt<<>>"] {
            let e = read(format!("%PDF-1.4\ntrailer << {said} >>").as_bytes(), 1..=9, 100, soon()).expect_err(said);
            assert!(e.message().contains("is encrypted"), "{e}");
        }
        for other in ["/Encoding", "Encrypt", "/#4", "/Encryp"] {
            assert!(!is_encrypted(other.as_bytes()), "{other}");
        }
    }

    /// Builds a document whose cross-reference table names one object many times.
    fn repeated(times: usize) -> Vec<u8> {
        let mut file = "%PDF-1.4\n1 0 obj\n[".to_owned() + &"0 ".repeat(100_000) + "]\nendobj\n";
        let start = file.len();
        file.push_str(&format!("xref\n0 {}\n0000000000 65535 f \n", times + 1));
        file.push_str(&"0000000009 00000 n \n".repeat(times));
        file.push_str(&format!("trailer\n<< /Size {} /Root 1 0 R >>\nstartxref\n{start}\n%%EOF\n", times + 1));
        file.into_bytes()
    }

    #[test]
    fn a_document_that_would_take_all_memory_is_given_up() {
        let file = repeated(2_000);
        assert!(file.len() < 300_000);
        let ended = catch_unwind(|| read(&file, 1..=9, 100, soon()).map(drop));
        assert!(ended.is_err(), "{ended:?}");
        let late = catch_unwind(|| read(&repeated(2), 1..=9, 100, Instant::now()).map(drop));
        assert!(late.is_err(), "{late:?}");
    }
}
