//! Progress of a connection attempt.

use std::{
    io,
    sync::{Arc, Mutex, PoisonError},
    task::{Context, Poll},
};

use agent_core::BoxFuture;
use hyper_util::client::legacy::connect::dns::{GaiAddrs, GaiResolver, Name};
use tower::Service;

use super::failure::Part;

/// Current step of a connection attempt. Cheap to clone.
#[derive(Clone)]
pub(super) struct Progress(Arc<Mutex<Part>>);

impl Progress {
    /// Creates the progress of an attempt that begins with `part`.
    pub(super) fn new(part: Part) -> Self {
        Self(Arc::new(Mutex::new(part)))
    }

    pub(super) fn enter(&self, part: Part) {
        *self.lock() = part;
    }

    pub(super) fn part(&self) -> Part {
        *self.lock()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Part> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Resolves names, and records the completion.
#[derive(Clone)]
pub(super) struct Resolver {
    names: GaiResolver,
    progress: Progress,
}

impl Resolver {
    pub(super) fn new(progress: Progress) -> Self {
        Self { names: GaiResolver::new(), progress }
    }
}

impl Service<Name> for Resolver {
    type Error = NoSuchName;
    type Future = BoxFuture<'static, Result<GaiAddrs, NoSuchName>>;
    type Response = GaiAddrs;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), NoSuchName>> {
        self.names.poll_ready(cx).map_err(NoSuchName)
    }

    fn call(&mut self, name: Name) -> Self::Future {
        let (found, progress) = (self.names.call(name), self.progress.clone());
        Box::pin(async move {
            let before = progress.part();
            progress.enter(Part::Name);
            let found = found.await.map_err(NoSuchName)?;
            progress.enter(before);
            Ok(found)
        })
    }
}

/// Error: the name has no address.
#[derive(Debug)]
pub(super) struct NoSuchName(io::Error);

impl std::fmt::Display for NoSuchName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

impl std::error::Error for NoSuchName {}
