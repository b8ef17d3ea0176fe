//! Kinds of files, and how useful each is for a question.

use agent_retrieval::search::names;

use super::terms::Terms;

/// Extensions of prose files.
const PROSE: [&str; 4] = ["md", "txt", "rst", "adoc"];
/// Names of guides, or of folders with guides.
const GUIDES: [&str; 8] = ["guide", "guides", "handbook", "howto", "manual", "readme", "tutorial", "tutorials"];

/// Returns one glob for all prose files.
pub(super) fn prose_glob() -> String {
    format!("**/*.{{{}}}", PROSE.join(","))
}

/// Returns globs for prose files, one per extension.
pub(super) fn prose_globs() -> impl Iterator<Item = String> {
    PROSE.into_iter().map(|extension| format!("**/*.{extension}"))
}

pub(super) fn is_prose(path: &str) -> bool {
    path.rsplit_once('.').is_some_and(|(_, extension)| PROSE.contains(&extension.to_lowercase().as_str()))
}

fn is_guide(path: &str) -> bool {
    is_prose(path) && names(path).any(|name| GUIDES.contains(&name.to_lowercase().as_str()))
}

/// Returns the weight of a file's content: for questions best answered by prose, guides and other
/// prose weigh more.
pub(super) fn weight(path: &str, terms: &Terms) -> f64 {
    match path {
        _ if !terms.wants_prose() => 1.0,
        path if is_guide(path) => 2.0,
        path if is_prose(path) => 1.4,
        _ => 1.0,
    }
}
