//! Citations: lines of a document, as searches name them.

use crate::library::Library;

/// Lines of a document: `guide/tools.md:12-20`.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Citation {
    document: String,
    /// First and last line, counted from 1.
    lines: (usize, usize),
}

impl Citation {
    /// Parses a source as a search result names it. Headings in parentheses after the lines are
    /// ignored.
    pub(crate) fn parse(source: &str) -> Result<Self, String> {
        let wrong = || format!("'{source}' is not a source; write it as the search shows it: guide/tools.md:12-20");
        let place = source.split(" (").next().unwrap_or_default().trim();
        let (document, lines) = place.rsplit_once(':').ok_or_else(wrong)?;
        let (first, last) = lines.split_once('-').unwrap_or((lines, lines));
        let number = |text: &str| text.parse::<usize>().map_err(|_| wrong());
        Ok(Self { document: document.to_owned(), lines: (number(first)?, number(last)?) })
    }

    /// Returns the cited lines, or the reason why they do not exist.
    pub(crate) fn quote(&self, libraries: &[Library]) -> Result<String, String> {
        let Self { document, lines: (first, last) } = self;
        let text = libraries.iter().find_map(|library| library.text(document));
        let text =
            text.ok_or_else(|| format!("there is no document '{document}'; cite only what a search returned"))?;
        let lines: Vec<&str> = text.lines().collect();
        if *first == 0 || first > last || *last > lines.len() {
            return Err(format!("'{document}' has the lines 1 to {}, not {first} to {last}", lines.len()));
        }
        Ok(lines[first - 1..*last].join("\n"))
    }
}
