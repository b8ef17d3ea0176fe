//! The batch: documents that have no result yet, many at the same time.

use std::{
    future::ready,
    sync::atomic::{AtomicBool, Ordering},
};

use agent::prelude::*;
use futures::{StreamExt, stream};

use crate::{
    classifier::classify,
    documents::Document,
    results::{Results, Row},
};

/// Numbers of documents.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Outcome {
    pub(crate) classified: usize,
    /// Documents with a result of an earlier run.
    pub(crate) known: usize,
    pub(crate) failed: usize,
    /// Documents that the budget did not allow.
    pub(crate) left: usize,
}

/// Classifies all documents without a result, and stores each result at once.
pub(crate) async fn run(
    agent: &Agent,
    documents: Vec<Document>,
    results: &mut Results,
    concurrency: usize,
) -> Result<Outcome> {
    let all = documents.len();
    let open: Vec<_> = documents.into_iter().filter(|document| !results.has(&document.id)).collect();
    let mut outcome = Outcome { known: all - open.len(), ..Outcome::default() };
    // Calls in flight finish: their results are paid for.
    let is_stopped = AtomicBool::new(false);
    let mut answers = stream::iter(open)
        .take_while(|_| ready(!is_stopped.load(Ordering::Relaxed)))
        .map(|document| async move { (classify(agent, &document).await, document) })
        .buffer_unordered(concurrency.max(1));
    while let Some((answer, document)) = answers.next().await {
        match answer {
            Ok(Some((voice, cost))) => {
                results.append(Row { id: document.id, cost, voice })?;
                outcome.classified += 1;
            }
            Ok(None) => is_stopped.store(true, Ordering::Relaxed),
            Err(e) if ends_the_batch(e.kind()) => return Err(e),
            Err(e) => {
                eprintln!("{}: {e}", document.id);
                outcome.failed += 1;
            }
        }
    }
    outcome.left = all - outcome.known - outcome.classified - outcome.failed;
    Ok(outcome)
}

/// True for errors that the next document would have too.
fn ends_the_batch(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::Authentication | ErrorKind::Config | ErrorKind::Quota | ErrorKind::Store)
}
