//! Documents that are searched.

use std::{
    fs,
    path::{Path, PathBuf},
};

use agent_core::{Error, Result};
use agent_tools::{
    ToolSet,
    retrieval::{Chunker, Document, Retriever},
};
use schemars::JsonSchema;
use serde::Deserialize;

use super::{
    embedder::{EmbedderRef, RerankerRef},
    vectors::Vectors,
};
use crate::config::{StoreAddress, file::FilePath};

/// Most files of a library.
const MOST_FILES: usize = 10_000;
/// Most bytes of a file; longer ones, and those that are no text, are left out.
const MOST_BYTES: u64 = 4 << 20;

/// Documents that are searched, by their words or by their meaning, too.
#[derive(Clone, Deserialize, JsonSchema)]
#[serde(default)]
pub(in crate::config) struct LibraryConfig {
    /// Store of passages: `memory`, `sqlite:PATH` or `postgres://..`. Default: `memory`.
    store: StoreAddress,
    /// Name of the collection of documents. Default: `documents`.
    collection: String,
    /// Files, and folders of files, that the collection holds and no others: they are indexed before the first search of this process.
    /// Default: what is in the store already.
    documents: Vec<FilePath>,
    /// Embedder, to also find passages by meaning. Default: none, which searches by words.
    embedder: Option<EmbedderRef>,
    /// Reranker of the results. Default: none.
    reranker: Option<RerankerRef>,
    /// Tokens of a passage, at most. Default: 400.
    #[schemars(range(min = 16))]
    chunk_tokens: Option<u64>,
    /// The least cosine at which a passage is found that has none of the question's words. Default: any.
    #[schemars(range(min = -1.0, max = 1.0))]
    min_similarity: Option<f32>,
}

impl Default for LibraryConfig {
    fn default() -> Self {
        Self {
            store: StoreAddress::default(),
            collection: "documents".to_owned(),
            documents: Vec::new(),
            embedder: None,
            reranker: None,
            chunk_tokens: None,
            min_similarity: None,
        }
    }
}

impl LibraryConfig {
    /// # Errors
    /// An embedder or a reranker that cannot be made, and documents that are not there.
    pub(in crate::config) fn retriever(&self) -> Result<Retriever> {
        let embedder = self.embedder.as_ref().map(EmbedderRef::make).transpose()?;
        let chunker = self.chunk_tokens.map(|most| Chunker::new(most).build()).transpose()?;
        let collection = self.collection.clone();
        let over = move |store| {
            let mut retriever = Retriever::new(store, collection.as_str());
            if let Some(embedder) = embedder.clone() {
                retriever = retriever.embedder(embedder);
            }
            match chunker.clone() {
                Some(chunker) => retriever.chunker(chunker),
                None => retriever,
            }
        };
        let mut vectors = Vectors::at(self.store.clone());
        if !self.documents.is_empty() {
            vectors = vectors.filled(Documents::at(&self.documents)?, over.clone());
        }
        let mut retriever = over(std::sync::Arc::new(vectors));
        if let Some(reranker) = &self.reranker {
            retriever = retriever.reranker(reranker.make()?);
        }
        match self.min_similarity {
            Some(least) => Ok(retriever.min_similarity(least)),
            None => Ok(retriever),
        }
    }
}

/// A tool that searches documents.
#[derive(Clone, Deserialize, JsonSchema)]
pub(in crate::config) struct LibraryTool {
    /// The tool's name.
    #[serde(default)]
    name: Option<String>,
    /// Topic of the documents, for the model.
    #[serde(default)]
    about: Option<String>,
    /// Most characters of an answer.
    #[serde(default)]
    max_chars: Option<usize>,
    #[serde(flatten)]
    library: LibraryConfig,
}

pub(in crate::config) fn tools(config: LibraryTool) -> Result<ToolSet> {
    let mut tool = config.library.retriever()?.tool();
    if let Some(name) = config.name {
        tool = tool.name(name);
    }
    if let Some(about) = config.about {
        tool = tool.about(about);
    }
    if let Some(most) = config.max_chars {
        tool = tool.max_chars(most);
    }
    Ok(ToolSet::new("knowledge").tool(tool))
}

/// Files that are indexed.
pub(super) struct Documents(Vec<PathBuf>);

impl Documents {
    fn at(paths: &[FilePath]) -> Result<Self> {
        let paths: Vec<_> = paths.iter().map(|path| PathBuf::from(&path.0)).collect();
        match paths.iter().find(|path| !path.exists()) {
            Some(missing) => Err(Error::config(format!("there are no documents at '{}'", missing.display()))),
            None => Ok(Self(paths)),
        }
    }

    /// # Errors
    /// Files that cannot be read, and too many of them.
    pub(super) async fn read(&self) -> Result<Vec<Document>> {
        let paths = self.0.clone();
        let read = tokio::task::spawn_blocking(move || {
            let mut documents = Vec::new();
            for path in &paths {
                let base = if path.is_dir() { path } else { path.parent().unwrap_or(path) };
                gather(path, base, &mut documents)
                    .map_err(|e| Error::config(format!("the documents at '{}' cannot be read: {e}", path.display())))?;
            }
            Ok(documents)
        });
        read.await.map_err(|e| Error::config(format!("the documents cannot be read: {e}")))?
    }
}

/// Texts, each under its path below the base; hidden files are left out.
fn gather(path: &Path, base: &Path, documents: &mut Vec<Document>) -> std::io::Result<()> {
    if fs::symlink_metadata(path)?.is_dir() {
        let mut entries = fs::read_dir(path)?.map(|entry| Ok(entry?.path())).collect::<std::io::Result<Vec<_>>>()?;
        entries.sort_unstable();
        let is_hidden = |path: &Path| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with('.'));
        return entries.iter().filter(|path| !is_hidden(path)).try_for_each(|path| gather(path, base, documents));
    }
    if documents.len() >= MOST_FILES {
        return Err(std::io::Error::other(format!("there are more than {MOST_FILES} files")));
    }
    let about = fs::metadata(path)?;
    if !about.is_file() || about.len() > MOST_BYTES {
        return Ok(());
    }
    if let Ok(text) = String::from_utf8(fs::read(path)?) {
        let name = path.strip_prefix(base).unwrap_or(path).to_string_lossy().replace('\\', "/");
        documents.push(Document::new(name, text));
    }
    Ok(())
}
