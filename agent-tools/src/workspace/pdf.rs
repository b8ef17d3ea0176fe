//! Pages of a PDF, for `read_file`.

use std::{
    fmt::Write,
    ops::RangeInclusive,
    sync::Arc,
    time::{Duration, Instant},
};

use agent_core::{Error, Result};

use crate::{
    documents::{parser_pool::ParserPool, pdf},
    text::cut,
};

/// Timeout for reading a PDF.
const LONGEST: Duration = Duration::from_secs(20);

/// PDF reader. Cheap to clone.
#[derive(Clone, Debug)]
pub(super) struct Pdfs(ParserPool);

/// Text of a PDF for a model.
pub(super) struct Shown {
    pub(super) text: String,
    /// True if the text covers the whole document.
    pub(super) are_all: bool,
}

pub(super) fn is_pdf(bytes: &[u8]) -> bool {
    bytes.starts_with(b"%PDF-")
}

impl Pdfs {
    pub(super) fn new() -> Self {
        Self(ParserPool::new(LONGEST))
    }

    /// Returns the text of the requested pages, about `most` bytes, with a note on omitted pages.
    pub(super) async fn read(
        &self,
        name: String,
        bytes: Arc<[u8]>,
        wanted: Option<&str>,
        most: usize,
    ) -> Result<Shown> {
        let wanted = wanted.map_or(Ok(1..=u32::MAX), pages)?;
        self.0.run("the PDF", move |end| show(&name, &bytes, wanted, most, end)).await
    }
}

fn show(name: &str, bytes: &[u8], wanted: RangeInclusive<u32>, most: usize, end: Instant) -> Result<Shown> {
    let read = pdf::read(bytes, wanted.clone(), most, end)?;
    let (first, last) = (*wanted.start(), read.last);
    let mut text = format!("{name} (pages {first}-{last} of {})\n", read.pages);
    if let Some(title) = &read.title {
        writeln!(text, "Title: {}", cut(title, 200)).expect("a string takes everything");
    }
    // An overlong page cannot be requested in parts.
    let shown = cut(&read.text, most.max(1));
    write!(text, "\n{shown}").expect("a string takes everything");
    let is_cut = shown.len() < read.text.len();
    if is_cut {
        text.push_str("\n[cut: the last page is longer than what is shown]");
    }
    let has_more = last < (*wanted.end()).min(read.pages);
    if has_more {
        write!(text, "\n[cut: go on with pages = \"{}-\"]", last + 1).expect("a string takes everything");
    }
    Ok(Shown { text, are_all: first == 1 && last == read.pages && !is_cut })
}

/// Parses a page range: `3` is one page, `2-5` is four, and `6-` is every page from the sixth.
fn pages(wanted: &str) -> Result<RangeInclusive<u32>> {
    let number = |text: &str| text.trim().parse().ok().filter(|number| *number > 0);
    let range = match wanted.split_once('-') {
        None => number(wanted).map(|page| page..=page),
        Some((first, last)) if last.trim().is_empty() => number(first).map(|first| first..=u32::MAX),
        Some((first, last)) => number(first).zip(number(last)).map(|(first, last)| first..=last),
    };
    let wrong = || Error::tool(format!("'{}' are no pages: write \"3\", \"2-5\" or \"6-\"", cut(wanted, 40)));
    range.filter(|range| !range.is_empty()).ok_or_else(wrong)
}
