//! Recording.

use std::{
    fs::File,
    io::{self, Write},
    path::{Path, PathBuf},
    pin::Pin,
    sync::{Arc, Mutex, PoisonError},
    task::{Context, Poll, ready},
};

use agent_core::Result;
use bytes::Bytes;
use futures::{Stream, StreamExt};
use http::{Request, Response, response};

use super::{
    exchange::{Answered, Asked, Exchange},
    failed,
};
use crate::{Body, Transport, redact::Redactor};

pub(super) struct Recorder {
    path: PathBuf,
    file: Mutex<File>,
    inner: Box<dyn Transport>,
    redactor: Mutex<Redactor>,
}

impl Recorder {
    pub(super) fn create(path: &Path, inner: Box<dyn Transport>) -> io::Result<Self> {
        let file = Mutex::new(File::create(path)?);
        Ok(Self { path: path.to_owned(), file, inner, redactor: Mutex::default() })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) async fn send(self: Arc<Self>, request: Request<Bytes>) -> Result<Response<Body>> {
        let asked = {
            let mut redactor = self.redactor.lock().unwrap_or_else(PoisonError::into_inner);
            redactor.learn_headers(request.headers());
            Asked::of(&request, &redactor)
        };
        let (head, body) = self.inner.send(request).await?.into_parts();
        let heard = Heard { head: head.clone(), asked, bytes: Vec::new() };
        Ok(Response::from_parts(head, Body::new(Tee { body, recorder: self, heard: Some(heard) })))
    }

    fn write(&self, heard: &Heard, cut: bool) -> Result<()> {
        let redactor = self.redactor.lock().unwrap_or_else(PoisonError::into_inner);
        let response = Answered::new(&heard.head, &heard.bytes, cut, &redactor);
        let exchange = Exchange { request: heard.asked.clone(), response };
        let mut line = serde_json::to_vec(&exchange).map_err(|e| failed(&self.path, e.into()))?;
        line.push(b'\n');
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        file.write_all(&line).map_err(|e| failed(&self.path, e))
    }
}

/// What an exchange has said so far.
struct Heard {
    head: response::Parts,
    asked: Asked,
    bytes: Vec<u8>,
}

/// A body that is written down as it passes.
struct Tee {
    body: Body,
    recorder: Arc<Recorder>,
    /// None once it is written.
    heard: Option<Heard>,
}

impl Stream for Tee {
    type Item = Result<Bytes>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let item = ready!(self.body.poll_next_unpin(cx));
        if let Some(Ok(bytes)) = &item {
            if let Some(heard) = &mut self.heard {
                heard.bytes.extend_from_slice(bytes);
            }
        } else if let Some(heard) = self.heard.take() {
            self.recorder.write(&heard, item.is_some())?;
        }
        Poll::Ready(item)
    }
}

impl Drop for Tee {
    fn drop(&mut self) {
        if let Some(heard) = self.heard.take() {
            // Nobody is left to be told if it fails.
            let _ = self.recorder.write(&heard, true);
        }
    }
}
