//! What kinds of file there are, and which a question is best answered from.

use agent_core::search::names;

use super::terms::Terms;

/// Extensions of files that people read first.
const PROSE: [&str; 4] = ["md", "txt", "rst", "adoc"];
/// What files that say how things are done are called, or a folder above them.
const GUIDES: [&str; 8] = ["guide", "guides", "handbook", "howto", "manual", "readme", "tutorial", "tutorials"];

/// All files for people, as one glob.
pub(super) fn prose_glob() -> String {
    format!("**/*.{{{}}}", PROSE.join(","))
}

/// Globs of files for people, one for each extension.
pub(super) fn prose_globs() -> impl Iterator<Item = String> {
    PROSE.into_iter().map(|extension| format!("**/*.{extension}"))
}

pub(super) fn is_prose(path: &str) -> bool {
    path.rsplit_once('.').is_some_and(|(_, extension)| PROSE.contains(&extension.to_lowercase().as_str()))
}

fn is_guide(path: &str) -> bool {
    is_prose(path) && names(path).any(|name| GUIDES.contains(&name.to_lowercase().as_str()))
}

/// How much what a file says counts. Whoever asks what to do is told by a guide; whoever names code is shown it.
pub(super) fn weight(path: &str, terms: &Terms) -> f64 {
    match path {
        _ if !terms.wants_prose() => 1.0,
        path if is_guide(path) => 2.0,
        path if is_prose(path) => 1.4,
        _ => 1.0,
    }
}
