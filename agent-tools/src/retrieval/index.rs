//! Indexing, and synchronisation of an index with its documents.

use std::collections::HashMap;

use agent_core::{Error, Result, Usage};
use agent_retrieval::{
    embed::EmbedRequest,
    memory::Filter,
    retrieval::{Record, Vector},
};
use serde::{Deserialize, Serialize};

use super::{Document, Retriever};

/// Number of chunks that are embedded and stored per batch.
const BATCH: usize = 64;

/// Result of indexing.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct IndexReport {
    /// Number of documents.
    pub documents: usize,
    /// New chunks: each was embedded, if there is an embedder.
    pub added: usize,
    /// Unchanged chunks. They were not embedded again, even if their position changed.
    pub unchanged: usize,
    /// Removed chunks.
    pub removed: usize,
    /// Usage of the embedder.
    pub usage: Usage,
}

/// Progress of indexing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct IndexProgress {
    /// Documents processed so far.
    pub documents: usize,
    /// Total number of documents.
    pub of: usize,
    /// Chunks added so far.
    pub added: usize,
}

impl Retriever {
    /// Synchronises the index with these documents. Unchanged chunks are not embedded again, and
    /// chunks that no longer exist are removed at the end. If indexing fails or is cancelled, its
    /// partial result stays, and the next attempt continues from there.
    ///
    /// # Errors
    /// Errors of the embedder and the store; [`ErrorKind::Config`](agent_core::ErrorKind::Config)
    /// if two documents have the same name, or the collection's vectors are of another embedder.
    pub async fn index(&self, documents: Vec<Document>) -> Result<IndexReport> {
        let names: Vec<String> = documents.iter().map(|document| document.id.clone()).collect();
        let mut report = self.add(documents).await?;
        report.removed += self.store.delete_where(&self.collection, &Filter::not_in("document", names)).await?;
        Ok(report)
    }

    /// Like [`index`](Self::index), but keeps documents that are not given.
    ///
    /// # Errors
    /// As [`index`](Self::index).
    pub async fn add(&self, documents: Vec<Document>) -> Result<IndexReport> {
        let mut work = Work::begin(self, &documents).await?;
        for (at, document) in documents.iter().enumerate() {
            work.take(document).await?;
            work.progress.documents = at + 1;
            if work.new.len() >= BATCH {
                work.flush().await?;
            }
        }
        work.flush().await?;
        work.sweep().await
    }

    /// Removes documents from the index; returns the number of their chunks.
    ///
    /// # Errors
    /// Errors of the store.
    pub async fn remove(&self, documents: &[String]) -> Result<usize> {
        self.store.delete_where(&self.collection, &Filter::is_in("document", documents.to_vec())).await
    }
}

struct Work<'a> {
    retriever: &'a Retriever,
    /// True if existing chunks have vectors, as far as they can.
    has_vectors: bool,
    /// Chunks to be embedded.
    new: Vec<Record>,
    /// Current chunks of each document; all others are removed.
    chunks: Vec<(String, Vec<String>)>,
    report: IndexReport,
    progress: IndexProgress,
}

impl<'a> Work<'a> {
    async fn begin(retriever: &'a Retriever, documents: &[Document]) -> Result<Self> {
        let mut seen = HashMap::new();
        for document in documents {
            if seen.insert(document.id.as_str(), ()).is_some() {
                let message = "two documents have one name: name each differently, or put them together";
                return Err(Error::config(message).with_context("document", document.id.clone()));
            }
        }
        let space = retriever.store.space(&retriever.collection).await?;
        if let Some((space, embedder)) = space.as_ref().zip(retriever.embedder.as_ref()) {
            let own = Vector::new(&embedder.info(), Vec::new()).embedder;
            if own != space.embedder {
                let message =
                    "the collection's vectors are of another embedder: use that one, or clear the collection first";
                let e = Error::config(message).with_context("collection", space.to_string());
                return Err(e.with_context("embedder", own));
            }
        }
        Ok(Self {
            retriever,
            has_vectors: space.is_some() || retriever.embedder.is_none(),
            new: Vec::new(),
            chunks: Vec::new(),
            report: IndexReport { documents: documents.len(), ..IndexReport::default() },
            progress: IndexProgress { of: documents.len(), ..IndexProgress::default() },
        })
    }

    /// Determines the new chunks of a document. Updates the position of chunks that moved.
    async fn take(&mut self, document: &Document) -> Result<()> {
        let Retriever { store, collection, chunker, .. } = self.retriever;
        let records = document.records(chunker);
        let ids: Vec<String> = records.iter().map(|record| record.id.clone()).collect();
        let known = if self.has_vectors { store.get(collection, &ids).await? } else { Vec::new() };
        let mut known: HashMap<String, Record> = known.into_iter().map(|record| (record.id.clone(), record)).collect();
        let mut moved = Vec::new();
        for mut record in records {
            match known.remove(&record.id) {
                Some(known) if known.metadata == record.metadata => self.report.unchanged += 1,
                Some(known) => {
                    record.vector = known.vector;
                    moved.push(record);
                    self.report.unchanged += 1;
                }
                None => self.new.push(record),
            }
        }
        self.chunks.push((document.id.clone(), ids));
        if moved.is_empty() { Ok(()) } else { store.upsert(collection, moved).await }
    }

    /// Embeds and stores new chunks, batch by batch.
    async fn flush(&mut self) -> Result<()> {
        let Retriever { store, collection, progress, .. } = self.retriever;
        let mut new = std::mem::take(&mut self.new).into_iter().peekable();
        while new.peek().is_some() {
            let mut batch: Vec<Record> = new.by_ref().take(BATCH).collect();
            let texts = batch.iter().map(|record| record.text.as_str());
            let (vectors, usage) = self.retriever.vectors(EmbedRequest::documents(texts)).await?;
            batch.iter_mut().zip(vectors).for_each(|(record, vector)| record.vector = vector);
            (self.report.added, self.progress.added) =
                (self.report.added + batch.len(), self.progress.added + batch.len());
            self.report.usage += usage;
            store.upsert(collection, batch).await?;
            if let Some(told) = progress {
                told(self.progress);
            }
        }
        Ok(())
    }

    /// Removes chunks that are no longer in the documents.
    async fn sweep(mut self) -> Result<IndexReport> {
        let Retriever { store, collection, .. } = self.retriever;
        for (document, chunks) in std::mem::take(&mut self.chunks) {
            let gone = Filter::eq("document", document).and(Filter::not_in("chunk", chunks));
            self.report.removed += store.delete_where(collection, &gone).await?;
        }
        Ok(self.report)
    }
}
