//! Answers: quotations with their sources, and statements of what the model cannot do.

use std::{collections::HashSet, fmt::Write};

use super::{evidence::Evidence, parse::Line, passages::Passage, terms::Terms};

/// Usual number of quotations in an answer; more, up to the maximum, only if their score is close
/// to the best.
const PASSAGES: usize = 3;
const MOST_PASSAGES: usize = 5;
/// Fraction of the best passage's score that counts as close.
const WORTH: f64 = 0.5;
/// Maximum characters of a quoted line, and maximum lines of a sub-agent's answer.
const WIDTH: usize = 160;
const SAID: usize = 40;

const NOTICE: &str = "_I am the built-in offline model: I find and quote passages, I do not think about them. To connect a \
    real model, name it with its provider: `--model openai:gpt-5` with the key in `OPENAI_API_KEY`, or \
    `--model ollama:llama3.2` for one on this machine._";

pub(super) const CANNOT_CALCULATE: &str =
    "I cannot calculate. I can only look things up with tools and quote what they return.";
pub(super) const CANNOT_MAKE: &str = "I cannot write or change anything. I can only look things up and quote them: ask me \
    where something stands, or what is said about it.";
pub(super) const HAS_NO_TOOLS: &str = "I have no tool here that I could look this up with, and I know nothing by myself. \
    Offer me a tool that searches or reads, or connect a real model.";
pub(super) const HAS_NO_TERMS: &str =
    "Tell me what to look for: a name, a file or a few words that stand near the answer.";

/// Adds the origin to an answer for a user; an answer for a parent agent stays plain.
pub(super) fn signed(text: &str, is_sub_agent: bool) -> String {
    if is_sub_agent { text.to_owned() } else { format!("{text}\n\n{NOTICE}") }
}

/// Returns the names of the terms as Markdown code, separated by commas.
pub(super) fn quoted_names(terms: &Terms) -> String {
    let names = terms.names().into_iter().chain(terms.files().iter().map(String::as_str));
    names.map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
}

/// An answer built from the tools' results.
pub(super) struct Answer<'a> {
    pub(super) terms: &'a Terms,
    pub(super) evidence: &'a Evidence,
    pub(super) is_sub_agent: bool,
}

impl Answer<'_> {
    pub(super) fn write(&self) -> String {
        let said = self.evidence.said.iter().map(|(agent, text)| said(agent, text));
        let sections: Vec<_> = self.quotations().into_iter().chain(said).collect();
        if sections.is_empty() { self.nothing() } else { sections.join("\n\n") }
    }

    /// Quotes the best passages.
    fn quotations(&self) -> Option<String> {
        let most = if self.is_sub_agent { PASSAGES } else { MOST_PASSAGES };
        let ranked = self.evidence.passages(self.terms);
        let best = ranked.first()?.1;
        let worth = ranked.iter().enumerate().filter(|(at, (_, score))| *at < PASSAGES || *score >= best * WORTH);
        let quotes =
            worth.take(most).zip(1..).map(|((_, (passage, _)), number)| format!("{number}. {}", quote(passage)));
        let quotes = quotes.collect::<Vec<_>>().join("\n\n");
        Some(format!("This is what I found on {}:\n\n{quotes}", quoted_names(self.terms)))
    }

    fn nothing(&self) -> String {
        let openings = self.openings();
        if self.terms.strong().next().is_none() && !openings.is_empty() {
            return format!("Nothing to search for is named, so this is how the first files begin:\n\n{openings}");
        }
        format!("I found nothing on {}.{}", quoted_names(self.terms), self.failures())
    }

    /// Quotes the beginning of each file that was read.
    fn openings(&self) -> String {
        let mut seen = HashSet::new();
        let openings = self.evidence.read.iter().filter(|passage| seen.insert(&passage.source));
        openings.map(quote).collect::<Vec<_>>().join("\n\n")
    }

    /// Lists failed tools: only used if nothing was found, since a failure may be the reason.
    fn failures(&self) -> String {
        self.evidence.failed.iter().fold(String::new(), |mut text, (tool, message)| {
            let message = message.lines().next().unwrap_or_default();
            // Writing to a string cannot fail.
            let _ = write!(text, " The tool `{tool}` failed: {}", shortened(message));
            text
        })
    }
}

fn said(agent: &str, text: &str) -> String {
    let lines: Vec<_> = text.trim().lines().take(SAID).map(|line| format!("> {line}").trim_end().to_owned()).collect();
    format!("The sub-agent `{agent}` says:\n\n{}", lines.join("\n"))
}

fn quote(passage: &Passage) -> String {
    let place = match passage.range() {
        Some((first, last)) if first == last => format!("`{}:{first}`", passage.source),
        Some((first, last)) => format!("`{}:{first}-{last}`", passage.source),
        None => format!("`{}`", passage.source),
    };
    let lines: Vec<_> = passage.lines.iter().map(numbered).collect();
    let lines = lines.join("\n");
    let fence = fence(&lines);
    format!("{place}\n{fence}\n{lines}\n{fence}")
}

fn numbered(line: &Line) -> String {
    match line.number {
        Some(number) => format!("{number:>5} | {}", shortened(&line.text)).trim_end().to_owned(),
        None => shortened(&line.text),
    }
}

fn shortened(text: &str) -> String {
    match text.char_indices().nth(WIDTH) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// Returns a code fence longer than any in the text.
fn fence(text: &str) -> String {
    let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    "`".repeat((longest + 1).max(3))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::offline::parse::lines;

    #[test]
    fn a_quotation_names_its_lines_and_survives_fences_inside() {
        let passage = Passage { source: "a.md".into(), lines: lines("```rust\nfn a() {}\n```", 7) };
        assert_eq!(quote(&passage), "`a.md:7-9`\n````\n    7 | ```rust\n    8 | fn a() {}\n    9 | ```\n````");
    }

    #[test]
    fn a_long_line_is_shortened_at_a_character() {
        let long = shortened(&"ä".repeat(500));
        assert_eq!(long.chars().count(), WIDTH + 1);
    }
}
