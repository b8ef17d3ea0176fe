//! Layers for reliability: alone, combined, and over real wires.

mod breaker;
use crate::common;
mod failover;
mod hedge;
mod orders;
mod properties;
mod retry;
mod router;
mod wires;

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use agent_core::{Chunk, Error, ErrorKind, Event, EventKind, Message, ModelRequest, Retry, engine::RunDriver};
use agent_llm::Turn;

/// A temporary error.
fn error(kind: ErrorKind) -> Error {
    Error::new(kind, "why").with_retry(Retry::Temporary(None))
}

/// A turn that fails before it emits anything.
fn fails(kind: ErrorKind) -> Turn {
    Turn::error(move || error(kind))
}

fn secs(secs: u64) -> Duration {
    Duration::from_secs(secs)
}

/// A run, a request of it, and its reported events.
fn observed() -> (RunDriver, ModelRequest, Reports) {
    let run = common::run([Message::user("hi")]);
    let reports = Reports::default();
    let sink = reports.clone();
    run.cx().attach(Arc::new(move |event: &Event| sink.0.lock().expect("lock").push(event.kind.clone())));
    let req = ModelRequest::new(run.cx().clone());
    (run, req, reports)
}

#[derive(Clone, Default)]
struct Reports(Arc<Mutex<Vec<EventKind>>>);

impl Reports {
    fn seen(&self) -> Vec<EventKind> {
        self.0.lock().expect("lock").clone()
    }
}

/// Returns the texts among chunks, and `|` for a restart.
fn texts(heard: &Mutex<Vec<Chunk>>) -> Vec<String> {
    let text = |chunk: &Chunk| match chunk {
        Chunk::Text { delta, .. } => Some(delta.clone()),
        Chunk::Restart => Some("|".into()),
        _ => None,
    };
    heard.lock().expect("lock").iter().filter_map(text).collect()
}
