//! The agent that answers, and the one that it may ask: `examples/agents/repository-guide.yaml`, with the model and the directory that
//! were asked for.

use std::{path::Path, sync::Arc};

use agent::{
    Agent, Model, Result, SqliteJournal,
    config::{Loader, Registry},
    llm::RetryLayer,
};

const GUIDE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/agents/repository-guide.yaml");

/// The guide, with the librarian below it. Both only read; the librarian sees the `docs` folder alone, if there is one.
pub(crate) fn build(model: Arc<dyn Model>, dir: &Path, journal: SqliteJournal) -> Result<Agent> {
    let dir = std::path::absolute(dir).unwrap_or_else(|_| dir.to_owned());
    let docs = dir.join("docs");
    let docs = if docs.is_dir() { &docs } else { &dir };
    let loader = Loader::new()
        .registry(Registry::builtin().model("asked", model))
        .every_model("asked")
        .variable("folder", dir.to_string_lossy())
        .variable("docs", docs.to_string_lossy());
    loader.load(GUIDE)?.into_builder().model_layer(RetryLayer::default()).store(journal).streaming(true).build()
}
