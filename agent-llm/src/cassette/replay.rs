//! Replaying.

use std::{
    fs, io,
    path::{Path, PathBuf},
    sync::{Mutex, PoisonError},
};

use agent_core::{Error, ErrorKind, Result, Retry};
use bytes::Bytes;
use http::{Request, Response};

use super::{
    diff::diff,
    exchange::{Asked, Exchange},
};
use crate::{Body, redact::Redactor};

pub(super) struct Replayer {
    path: PathBuf,
    /// Those not yet given, in the order of the file.
    left: Mutex<Vec<Exchange>>,
}

impl Replayer {
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        let text = fs::read_to_string(path)?;
        let lines = text.lines().filter(|line| !line.trim().is_empty());
        let left = lines.map(serde_json::from_str).collect::<serde_json::Result<Vec<_>>>()?;
        Ok(Self { path: path.to_owned(), left: Mutex::new(left) })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn left(&self) -> usize {
        self.left.lock().unwrap_or_else(PoisonError::into_inner).len()
    }

    pub(super) fn answer(&self, request: &Request<Bytes>) -> Result<Response<Body>> {
        let mut redactor = Redactor::default();
        redactor.learn_headers(request.headers());
        let asked = Asked::of(request, &redactor);
        let mut left = self.left.lock().unwrap_or_else(PoisonError::into_inner);
        match left.iter().position(|exchange| exchange.request == asked) {
            Some(at) => left.remove(at).response.respond(),
            None => Err(self.unexpected(&asked, &left)),
        }
    }

    /// Says how the request differs from the most similar one that is left.
    fn unexpected(&self, asked: &Asked, left: &[Exchange]) -> Error {
        let differences = left.iter().map(|exchange| diff(&exchange.request, asked)).min_by_key(Vec::len);
        let why = match differences {
            None => "nothing that was recorded is left".to_owned(),
            Some(lines) => format!("it differs from what was recorded:\n{}", lines.join("\n")),
        };
        let message =
            format!("the cassette '{}' has no answer to {} {}: {why}", self.path.display(), asked.method, asked.path);
        Error::new(ErrorKind::NonDeterminism, message).with_retry(Retry::Permanent)
    }
}
