//! A provider that fails.

use std::{
    collections::VecDeque,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
};

use agent_core::{Error, ErrorKind, Result, Retry};
use agent_llm::{Body, Transport, conformance::Answer, transport_fn};
use bytes::Bytes;
use futures::{StreamExt, stream};
use http::Response;

/// End of a body.
#[derive(Clone, Copy, Debug)]
pub(crate) enum End {
    /// Normal end, or too early.
    Closed,
    /// The connection breaks.
    Reset,
    /// No more data, while the connection stays open.
    Silence,
    /// The last piece repeats for ever.
    Never,
}

/// One response of the provider.
#[derive(Clone, Debug)]
pub(crate) struct Attempt {
    /// `None` if not even a head is sent.
    status: Option<u16>,
    headers: Vec<(&'static str, &'static str)>,
    pieces: Vec<Bytes>,
    end: End,
}

impl Attempt {
    /// No response at all.
    pub(crate) fn nothing() -> Self {
        Self { status: None, headers: Vec::new(), pieces: Vec::new(), end: End::Silence }
    }

    /// A response with this status.
    pub(crate) fn of(status: u16, content_type: &'static str, body: impl Into<Bytes>) -> Self {
        Self {
            status: Some(status),
            headers: vec![("content-type", content_type)],
            pieces: vec![body.into()],
            end: End::Closed,
        }
    }

    /// A stream of these pieces.
    pub(crate) fn pieces(kind: &'static str, pieces: impl IntoIterator<Item = Bytes>, end: End) -> Self {
        let pieces = pieces.into_iter().collect();
        Self { status: Some(200), headers: vec![("content-type", kind)], pieces, end }
    }

    /// The whole answer.
    pub(crate) fn whole(answer: &Answer) -> Self {
        Self::of(200, "application/json", answer.whole().to_owned())
    }

    pub(crate) fn header(mut self, name: &'static str, value: &'static str) -> Self {
        self.headers.push((name, value));
        self
    }

    pub(crate) fn ends(mut self, end: End) -> Self {
        self.end = end;
        self
    }

    async fn send(self) -> Result<Response<Body>> {
        let Some(status) = self.status else { return std::future::pending().await };
        let rest = match (self.end, self.pieces.last().cloned()) {
            (End::Reset, _) => stream::once(async { Err(reset()) }).boxed(),
            (End::Silence, _) => stream::pending().boxed(),
            (End::Never, Some(last)) => stream::repeat_with(move || Ok(last.clone())).boxed(),
            _ => stream::empty().boxed(),
        };
        let mut response = Response::builder().status(status);
        for (name, value) in self.headers {
            response = response.header(name, value);
        }
        Ok(response.body(Body::new(stream::iter(self.pieces).map(Ok).chain(rest))).expect("a response"))
    }
}

fn reset() -> Error {
    Error::new(ErrorKind::Transport, "the connection was reset").with_retry(Retry::Temporary(None))
}

/// Returns its attempts in order.
#[derive(Clone)]
pub(crate) struct Provider {
    attempts: Arc<Mutex<VecDeque<Attempt>>>,
    calls: Arc<AtomicUsize>,
}

impl Provider {
    pub(crate) fn new(attempts: impl IntoIterator<Item = Attempt>) -> Self {
        Self { attempts: Arc::new(Mutex::new(attempts.into_iter().collect())), calls: Arc::default() }
    }

    pub(crate) fn calls(&self) -> usize {
        self.calls.load(Ordering::Relaxed)
    }

    pub(crate) fn transport(&self) -> impl Transport + use<> {
        let provider = self.clone();
        transport_fn(move |_| {
            provider.calls.fetch_add(1, Ordering::Relaxed);
            let attempt = provider.attempts.lock().expect("lock").pop_front();
            async move { attempt.expect("an attempt for every request").send().await }
        })
    }
}
