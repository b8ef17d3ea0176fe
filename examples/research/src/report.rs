//! The report: the form of the lead's answer, its check, and its text.

use std::fmt::Write;

use agent::prelude::*;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::{citation::Citation, library::Library};

/// Lines of a quotation that the text of a report shows.
const SHOWN: usize = 3;

/// Answer to the question. (The model receives these comments with the schema.)
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct Report {
    /// The answer in one or two sentences. If the documents do not have it, say so.
    pub(crate) summary: String,
    /// Statements that support the answer, the most important first.
    pub(crate) findings: Vec<Finding>,
}

/// A statement with its sources.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct Finding {
    /// One statement.
    pub(crate) claim: String,
    /// Sources of the statement, as the researchers name them: `guide/tools.md:12-20`.
    pub(crate) sources: Vec<String>,
}

impl Report {
    /// Checks that each claim has a source and that each source exists. The model receives the
    /// problem, and answers again.
    pub(crate) fn check(&self, libraries: &[Library]) -> Result<(), String> {
        for finding in &self.findings {
            if finding.sources.is_empty() {
                return Err(format!("the claim '{}' has no source: cite one, or remove the claim", finding.claim));
            }
            for source in &finding.sources {
                Citation::parse(source)?.quote(libraries)?;
            }
        }
        Ok(())
    }

    /// Formats the report with the beginning of each cited passage.
    pub(crate) fn to_markdown(&self, libraries: &[Library]) -> Result<String> {
        let mut text = format!("{}\n", self.summary);
        for (number, finding) in (1..).zip(&self.findings) {
            let _ = write!(text, "\n{number}. {}\n", finding.claim);
            for source in &finding.sources {
                let quote = Citation::parse(source).and_then(|citation| citation.quote(libraries));
                let _ = writeln!(text, "   {source}");
                for line in quote.map_err(Error::tool)?.lines().filter(|line| !line.is_empty()).take(SHOWN) {
                    let _ = writeln!(text, "   > {line}");
                }
            }
        }
        Ok(text)
    }
}
