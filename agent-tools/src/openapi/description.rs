//! Description of an operation for the model.

use super::{
    document::{is_set, text},
    operation::{Parameter, Site},
    place::Place,
};
use crate::text::cut;

/// Maximum length of a text from the document, in bytes.
const LONGEST: usize = 1_000;
/// Pagination parameters, in lower case.
const PAGES: &[&str] = &[
    "after",
    "continuation",
    "continuation_token",
    "cursor",
    "marker",
    "next_token",
    "nexttoken",
    "offset",
    "page",
    "page[number]",
    "page_number",
    "page_token",
    "pagetoken",
    "skip",
    "start",
    "starting_after",
    "startindex",
];

/// Returns the document's description, the request, and a hint about pagination.
pub(super) fn description(site: &Site<'_>, parameters: &[Parameter]) -> String {
    let (summary, more) = (text(site.operation, "summary").trim(), text(site.operation, "description").trim());
    let said = match (summary, more) {
        (summary, "") => summary.to_owned(),
        ("", more) => more.to_owned(),
        (summary, more) if more.starts_with(summary) => more.to_owned(),
        (summary, more) => format!("{}. {more}", summary.trim_end_matches('.')),
    };
    let mut said = if said.len() > LONGEST { format!("{}..", cut(&said, LONGEST)) } else { said };
    if !said.is_empty() {
        said.push('\n');
    }
    said.push_str(&format!("Request: {} {}", site.method, site.path));
    if is_set(site.operation, "deprecated") {
        said.push_str("\nDeprecated: use another tool if one does the same.");
    }
    let pages = |parameter: &&Parameter| {
        parameter.place == Place::Query && PAGES.contains(&parameter.name.to_ascii_lowercase().as_str())
    };
    let pages: Vec<_> = parameters.iter().filter(pages).map(|parameter| format!("`{}`", parameter.argument)).collect();
    if !pages.is_empty() {
        said.push_str(&format!("\nResults come in pages: call again with {} to go on.", pages.join(" or ")));
    }
    said
}
