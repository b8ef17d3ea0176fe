//! Answers from documents: the book of this project is indexed in a file, and an agent searches it
//! and cites its sources.
//!
//!     cargo run --bin knowledge

use std::{env, fs, path::Path};

use agent::{
    llm::embed::HashedEmbedder,
    prelude::*,
    store::SqliteVectorStore,
    testing::Turn,
    tools::retrieval::{Document, Passage, Retriever},
};
use agent_examples::models;
use serde_json::json;

/// Collects the pages below a directory, with their paths.
fn pages(directory: &Path, found: &mut Vec<Document>) -> std::io::Result<()> {
    for entry in fs::read_dir(directory)? {
        let path = entry?.path();
        if path.is_dir() {
            pages(&path, found)?;
        } else if path.extension().is_some_and(|extension| extension == "md") {
            found.push(Document::new(path.display().to_string(), fs::read_to_string(&path)?));
        }
    }
    Ok(())
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    let question = "What happens when a tool call is in doubt?";
    let mut book = Vec::new();
    pages(Path::new("docs"), &mut book)
        .map_err(|e| Error::config("run it from the project's directory: there must be its docs").with_source(e))?;

    // A second run embeds only changed documents. A provider's embedder finds more:
    // `HashedEmbedder` needs no key, and compares words only.
    let path = env::temp_dir().join("agent-knowledge.db");
    let retriever = Retriever::new(SqliteVectorStore::open(path)?, "book").embedder(HashedEmbedder::new()).top_k(3);
    let report = retriever.index(book).await?;
    println!(
        "{} pages: {} chunks are new, {} known, {} gone\n",
        report.documents, report.added, report.unchanged, report.removed
    );

    let passages = retriever.search(question).await?;
    println!("{question}\n\n{}\n", Passage::listed(&passages, 3_000));

    // A model searches as often as it needs. Without one, a script uses the passages found above.
    let sources: Vec<_> = passages.iter().map(Passage::source).collect();
    let model = models::or_script([
        Turn::call("c1", "search_knowledge", json!({"query": question, "top_k": 3})),
        Turn::text(format!("See {}.", sources.join(", "))),
    ]);
    let librarian = Agent::builder("librarian", model.await?)
        .system("Answer from what the search finds, in a few sentences, and name the sources with their lines.")
        .tool(retriever.tool().about("the handbook of a framework for agents"))
        .build()?;
    let end = librarian.run(question).await?;
    let end = end.finished().map_err(|_| Error::tool("the run was stopped"))?;
    println!("librarian: {}", end.answer);
    Ok(())
}
