//! Quality of the hashed embedder, measured on this project's book.

use std::{collections::HashMap, fs, path::Path};

use agent_core::ErrorKind;
use agent_llm::embed::HashedEmbedder;
use agent_retrieval::{
    embed::{EmbedRequest, Embedder},
    search::{Bm25, words},
};
use proptest::prelude::*;

/// Questions phrased independently, each with the pages that answer it.
const QUESTIONS: [(&str, &[&str]); 40] = [
    ("What must be installed before the first agent runs?", &["start"]),
    ("Which types should a newcomer know?", &["concepts"]),
    ("What does the error kind ContextOverflow mean and what to do about it?", &["errors"]),
    ("How fast is a step of the loop compared with other frameworks?", &["performance"]),
    ("Moving from LangChain: what corresponds to a chain?", &["langchain", "cookbook"]),
    ("We have Haystack pipelines and want to move", &["haystack"]),
    ("summarise old messages when the window is nearly full", &["compaction", "cookbook"]),
    ("store agents as YAML or JSON", &["definitions"]),
    ("sub-agents in parallel, and how their results come back", &["delegation", "cookbook"]),
    ("subscribe to streamed tokens in a user interface", &["events", "services", "cookbook"]),
    ("write a store for journals of my own", &["extend"]),
    ("planner and verifier roles", &["flow"]),
    ("wait for a human decision for days", &["interrupts", "cookbook"]),
    ("stop spending more than five dollars", &["limits", "cookbook"]),
    ("wrap each model call with timing", &["hooks", "middleware"]),
    ("context window and prices in the catalogue", &["models", "tools-and-models"]),
    ("corporate proxy with a password", &["network"]),
    ("own root certificates for TLS", &["network"]),
    ("forbid rm -rf and allow git status", &["permissions"]),
    ("templates in system prompts", &["prompts"]),
    ("which environment variable holds the key for Groq", &["providers"]),
    ("register our gateway as a provider in a file", &["providers"]),
    ("failover to a second provider", &["reliability", "cookbook"]),
    ("circuit breaker for a failing model", &["reliability"]),
    ("rate limits shared by all agents", &["reliability"]),
    ("resume a run from its checkpoint", &["runs", "sessions", "cookbook"]),
    ("mask credit card numbers and e-mail addresses", &["safety"]),
    ("list, fork and edit conversations", &["sessions"]),
    ("force JSON output that matches a Rust struct", &["structured", "cookbook"]),
    ("export spans with OTLP", &["telemetry", "cookbook"]),
    ("cassettes that replay recorded HTTP", &["testing"]),
    ("scripted model for unit tests", &["testing", "cookbook"]),
    ("validate and repair arguments of tool calls", &["tools"]),
    ("MCP or plug-in tools with effects", &["tools"]),
    ("implement a codec and a decoder for a new protocol", &["wires"]),
    ("why was hyper chosen in place of our own HTTP client", &["0035-http-on-hyper", "network"]),
    ("decision about anchors in long sessions", &["0037-anchors"]),
    ("engines such as Temporal or Restate behind Durable", &["0034-engines", "extend"]),
    ("dependency rules between crates", &["architecture", "0001-crates"]),
    ("which file holds the scheduling of tool batches", &["architecture"]),
];

/// Returns the sections of all pages of the book: the page's name, and the text with its heading.
fn sections() -> Vec<(String, String)> {
    let mut sections = Vec::new();
    let mut folders = vec![Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs")];
    while let Some(folder) = folders.pop() {
        let mut paths: Vec<_> =
            fs::read_dir(folder).expect("reads").map(|entry| entry.expect("reads").path()).collect();
        paths.sort();
        for path in paths {
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "md") {
                let page = path.file_stem().expect("a name").to_string_lossy().into_owned();
                let text = fs::read_to_string(&path).expect("reads");
                let parts = text.split("\n## ").filter(|part| !part.trim().is_empty());
                sections.extend(parts.map(|part| (page.clone(), part.to_owned())));
            }
        }
    }
    sections
}

/// Counts the questions whose page is among the first five sections.
fn recall(order: impl Fn(&str) -> Vec<usize>, sections: &[(String, String)]) -> usize {
    let found = |(question, pages): &&(&str, &[&str])| {
        order(question).into_iter().take(5).any(|at| pages.contains(&&*sections[at].0))
    };
    QUESTIONS.iter().filter(found).count()
}

async fn vectors(embedder: HashedEmbedder, req: EmbedRequest) -> Vec<Vec<f32>> {
    embedder.embed(req).await.expect("embeds").vectors
}

fn dot(a: &[f32], b: &[f32]) -> f32 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// Counts the same questions, with vectors of this length.
async fn recall_of(dimensions: usize, sections: &[(String, String)]) -> usize {
    let embedder = HashedEmbedder::new().with_dimensions(dimensions);
    let texts = sections.iter().map(|(_, text)| text.as_str());
    let vectors_of_sections = vectors(embedder, EmbedRequest::documents(texts)).await;
    let mut asked = HashMap::new();
    for (question, _) in QUESTIONS {
        asked.insert(question, vectors(embedder, EmbedRequest::query(question)).await.remove(0));
    }
    let order = |question: &str| {
        let mut order: Vec<_> = (0..sections.len()).collect();
        let near = |at: &usize| dot(&vectors_of_sections[*at], &asked[question]);
        order.sort_by(|a, b| near(b).total_cmp(&near(a)));
        order
    };
    recall(order, sections)
}

#[tokio::test]
async fn it_finds_in_the_book_what_its_documentation_says_that_it_finds() {
    let sections = sections();
    let index = Bm25::new(sections.iter().map(|(_, text)| words(text)));
    let by_words = |question: &str| {
        let words = words(question);
        index.rank(words.iter().map(|word| (word.as_str(), 1.0))).into_iter().map(|(at, _)| at).collect()
    };
    let (bm25, usual, long) =
        (recall(by_words, &sections), recall_of(512, &sections).await, recall_of(2_048, &sections).await);
    println!("{} sections: BM25 {bm25}, 512: {usual}, 2048: {long}", sections.len());
    // The book changes; the published numbers must stay true.
    assert!(usual >= 21 && long >= 24, "of 40 questions, 512 numbers find {usual}, 2,048 {long}, and BM25 {bm25}");
}

#[tokio::test]
async fn a_text_of_nothing_and_a_vector_of_nothing_are_refused() {
    let embedder = HashedEmbedder::new();
    let error = embedder.embed(EmbedRequest::documents(["a", " \t"])).await.expect_err("an empty text");
    assert_eq!((error.kind(), error.is_retryable()), (ErrorKind::InvalidRequest, false));
    assert!(error.message().starts_with("text 1 is empty"), "{error}");
    assert!(embedder.embed(EmbedRequest::query("a").dimensions(0)).await.is_err());
    assert!(embedder.embed(EmbedRequest::documents(Vec::<String>::new())).await.expect("nothing").vectors.is_empty());
}

#[tokio::test]
async fn the_same_text_has_the_same_vector_in_every_release() {
    let vector = vectors(HashedEmbedder::new().with_dimensions(8), EmbedRequest::query("bees")).await.remove(0);
    let expected = [0.0, 0.0, 0.31623, -0.89443, 0.0, 0.31623, 0.0, 0.0];
    assert!(vector.iter().zip(expected).all(|(a, b): (&f32, f32)| (a - b).abs() < 1e-4), "{vector:?}");
}

proptest! {
    #[test]
    fn a_vector_has_the_length_that_was_asked_for_and_the_norm_1(text in "\\PC{0,40}[a-z!]", dimensions in 1_usize..300) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
        let req = EmbedRequest::documents([text]).dimensions(dimensions);
        let vector = runtime.block_on(vectors(HashedEmbedder::new(), req)).remove(0);
        prop_assert_eq!(vector.len(), dimensions);
        prop_assert!((dot(&vector, &vector) - 1.0).abs() < 1e-3);
    }
}
