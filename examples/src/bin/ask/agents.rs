//! The agent that answers, and the one that it may ask.

use std::{path::Path, sync::Arc, time::Duration};

use agent::{
    Agent, Model, Result, SqliteJournal,
    llm::RetryLayer,
    middleware::{Delegation, Limits},
    tools::Workspace,
};

const LIBRARIAN: &str = "You answer questions from a project's documentation (its Markdown files). Search them with the \
    tools, read the places you found, and answer in a few sentences with file and line.";

const GUIDE: &str = "You answer questions about the files in a directory. Search with the tools and read what you found \
    before you answer; ask the librarian about what only the documentation says. Quote the decisive lines with file and \
    line. If the files do not say, say so.";

/// The guide, with the librarian below it. Both only read; the librarian sees the `docs` folder alone, if there is one.
pub(crate) fn build(model: Arc<dyn Model>, dir: &Path, journal: SqliteJournal) -> Result<Agent> {
    let workspace = Workspace::open(dir)?.read_only();
    let docs = dir.join("docs");
    let shelf = if docs.is_dir() { Workspace::open(docs)?.read_only() } else { workspace.clone() };
    let librarian = Agent::builder("librarian", model.clone())
        .system(LIBRARIAN)
        .model_layer(RetryLayer::default())
        .tools(shelf.tools())
        .max_steps(12)
        .final_answer(true)
        .build()?;
    Agent::builder("guide", model)
        .system(GUIDE)
        .tools(workspace.tools())
        .model_layer(RetryLayer::default())
        .middleware(Limits::new().wall_time(Duration::from_secs(600)))
        .middleware(Delegation::new().to(
            "librarian",
            "Answers questions about the documentation: README, guides, design decisions.",
            librarian,
        ))
        .store(journal)
        .streaming(true)
        .max_steps(24)
        .final_answer(true)
        .build()
}
