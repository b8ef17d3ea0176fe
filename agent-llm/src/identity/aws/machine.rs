//! Access to the machine: its environment, its files, and nearby servers.

use std::{fs, io, path::Path, sync::Arc, time::Duration};

use agent_core::{Error, ErrorKind, Result, Retry};
use bytes::{Bytes, BytesMut};
use futures::StreamExt;
use http::{Request, StatusCode};
use tokio::time::timeout;

use crate::{Transport, model::default_transport};

/// Maximum size of an answer, in bytes: credentials and tokens take a few thousand.
const MOST: usize = 256 << 10;

/// Timeout for servers that are known to exist.
const PATIENCE: Duration = Duration::from_secs(10);

type ReadEnv = dyn Fn(&str) -> Option<String> + Send + Sync;

#[derive(Clone)]
pub(super) struct Machine {
    pub(super) env: Arc<ReadEnv>,
    /// Transport for these servers, if set.
    pub(super) transport: Option<Arc<dyn Transport>>,
}

impl Default for Machine {
    fn default() -> Self {
        Self { env: Arc::new(|name: &str| std::env::var(name).ok()), transport: None }
    }
}

impl Machine {
    /// Returns a non-empty environment variable.
    pub(super) fn variable(&self, name: &str) -> Option<String> {
        (self.env)(name).map(|value| value.trim().to_owned()).filter(|value| !value.is_empty())
    }

    /// Reads a small file, such as a token, and trims white space.
    ///
    /// # Errors
    /// [`Config`](ErrorKind::Config) if the file cannot be read; the error does not quote its
    /// content.
    pub(super) fn file(&self, path: &str) -> Result<String> {
        let text = read(Path::new(path))?;
        text.map(|text| text.trim().to_owned()).ok_or_else(|| Error::config(format!("there is no file {path}")))
    }

    /// Sends a request to an AWS server.
    pub(super) async fn ask(&self, request: Request<Bytes>) -> Result<(StatusCode, Bytes)> {
        let transport = self.transport.clone().map_or_else(default_transport, Ok)?;
        asked(&*transport, request, PATIENCE).await
    }

    /// Sends a request to a server on the machine itself, bypassing any proxy. It answers at once,
    /// or does not exist.
    pub(super) async fn ask_near(&self, request: Request<Bytes>, patience: Duration) -> Result<(StatusCode, Bytes)> {
        let transport = self.transport.clone().map_or_else(direct, Ok)?;
        asked(&*transport, request, patience).await
    }
}

/// Reads a file; `None` if it does not exist.
pub(super) fn read(path: &Path) -> Result<Option<String>> {
    match fs::read_to_string(path) {
        Ok(text) => Ok(Some(text)),
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(e) => Err(Error::config(format!("{} cannot be read", path.display())).with_source(e)),
    }
}

async fn asked(transport: &dyn Transport, request: Request<Bytes>, patience: Duration) -> Result<(StatusCode, Bytes)> {
    let host = request.uri().host().unwrap_or_default().to_owned();
    let late = || {
        Error::new(ErrorKind::Timeout, format!("{host} did not answer in {patience:?}"))
            .with_retry(Retry::Temporary(None))
    };
    let all = async {
        let (head, mut body) = transport.send(request).await?.into_parts();
        let mut bytes = BytesMut::new();
        while let Some(more) = body.next().await.transpose()? {
            if bytes.len() + more.len() > MOST {
                return Err(Error::new(ErrorKind::Protocol, format!("the answer of {host} is too long")));
            }
            bytes.extend_from_slice(&more);
        }
        Ok((head.status, bytes.freeze()))
    };
    timeout(patience, all).await.map_err(|_| late())?
}

#[cfg(feature = "http")]
fn direct() -> Result<Arc<dyn Transport>> {
    // A new transport per fetch: a connection belongs to the runtime that created it, and
    // credentials are fetched once an hour.
    Ok(Arc::new(crate::HttpTransport::builder().no_proxy().build()?))
}

#[cfg(not(feature = "http"))]
fn direct() -> Result<Arc<dyn Transport>> {
    default_transport()
}
