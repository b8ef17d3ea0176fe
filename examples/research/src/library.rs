//! A collection of documents: indexed for searches, and kept as text for citations.

use std::{
    collections::BTreeMap,
    fs, io,
    path::{Path, PathBuf},
    sync::Arc,
};

use agent::{
    llm::embed::HashedEmbedder,
    prelude::*,
    store::InMemoryVectorStore,
    tools::retrieval::{Document, Passage, Retriever},
};

/// Collections of this repository.
const OWN: [(&str, &str); 2] = [("guide", "../../docs/guide"), ("decisions", "../../docs/rfcs")];

/// A collection of documents. Cheap to clone.
#[derive(Clone, Debug)]
pub(crate) struct Library {
    name: Arc<str>,
    retriever: Retriever,
    documents: Arc<BTreeMap<String, String>>,
}

impl Library {
    /// Indexes documents, given by id and text. Ids are unique among all collections.
    pub(crate) async fn new(name: &str, documents: BTreeMap<String, String>) -> Result<Self> {
        // `HashedEmbedder` needs no key and compares words; a provider's embedder finds more.
        let retriever = Retriever::new(InMemoryVectorStore::default(), name).embedder(HashedEmbedder::new()).top_k(4);
        retriever.index(documents.iter().map(|(id, text)| Document::new(id, text)).collect()).await?;
        Ok(Self { name: name.into(), retriever, documents: Arc::new(documents) })
    }

    /// Reads the Markdown files below a directory. Their ids are `name/path`.
    async fn read(name: &str, directory: &Path) -> Result<Self> {
        let mut documents = BTreeMap::new();
        let failed = |e: io::Error| {
            let message = format!("the collection '{name}' cannot be read from {}: {e}", directory.display());
            Error::config(message + "; name a directory: --collection NAME=DIR")
        };
        for path in markdown_below(directory).map_err(failed)? {
            let inside = path.strip_prefix(directory).unwrap_or(&path).display();
            documents.insert(format!("{name}/{inside}"), fs::read_to_string(&path).map_err(failed)?);
        }
        if documents.is_empty() {
            let message = format!("the collection '{name}' has no Markdown files in {}", directory.display());
            return Err(Error::config(message + "; name another directory: --collection NAME=DIR"));
        }
        Self::new(name, documents).await
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Number of documents.
    pub(crate) fn len(&self) -> usize {
        self.documents.len()
    }

    /// Tool with which a researcher searches this collection.
    pub(crate) fn search_tool(&self) -> impl Tool {
        self.retriever.tool().about(format!("the collection '{}'", self.name))
    }

    pub(crate) async fn search(&self, question: &str) -> Result<Vec<Passage>> {
        self.retriever.search(question).await
    }

    /// Text of a document of this collection.
    pub(crate) fn text(&self, document: &str) -> Option<&str> {
        self.documents.get(document).map(String::as_str)
    }
}

/// Opens the collections given as `NAME=DIR`. Default: those of this repository.
pub(crate) async fn open_all(named: &[String]) -> Result<Vec<Library>> {
    let mut wanted: BTreeMap<String, PathBuf> = BTreeMap::new();
    for one in named {
        let (name, directory) = one
            .split_once('=')
            .filter(|(name, directory)| !name.is_empty() && !directory.is_empty())
            .ok_or_else(|| Error::config(format!("'{one}' is not a collection; write --collection NAME=DIR")))?;
        wanted.insert(name.to_owned(), directory.into());
    }
    if wanted.is_empty() {
        let here = Path::new(env!("CARGO_MANIFEST_DIR"));
        wanted.extend(OWN.map(|(name, directory)| (name.to_owned(), here.join(directory))));
    }
    let mut libraries = Vec::new();
    for (name, directory) in wanted {
        libraries.push(Library::read(&name, &directory).await?);
    }
    Ok(libraries)
}

/// Paths of the Markdown files below a directory.
fn markdown_below(directory: &Path) -> io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(directory)? {
        let path = entry?.path();
        if path.is_dir() {
            found.extend(markdown_below(&path)?);
        } else if path.extension().is_some_and(|extension| extension == "md") {
            found.push(path);
        }
    }
    Ok(found)
}
