//! What the machine tells: its environment, its files, and the servers around it.

use std::{fs, io, path::Path, sync::Arc, time::Duration};

use agent_core::{Error, ErrorKind, Result, Retry};
use bytes::{Bytes, BytesMut};
use futures::StreamExt;
use http::{Request, StatusCode};
use tokio::time::timeout;

use crate::{Transport, model::default_transport};

/// The most bytes of an answer: keys and tokens are a few thousand.
const MOST: usize = 256 << 10;

/// How long a server is waited for that is there.
const PATIENCE: Duration = Duration::from_secs(10);

type ReadEnv = dyn Fn(&str) -> Option<String> + Send + Sync;

#[derive(Clone)]
pub(super) struct Machine {
    pub(super) env: Arc<ReadEnv>,
    /// How servers are asked, if somebody said.
    pub(super) transport: Option<Arc<dyn Transport>>,
}

impl Default for Machine {
    fn default() -> Self {
        Self { env: Arc::new(|name: &str| std::env::var(name).ok()), transport: None }
    }
}

impl Machine {
    /// A variable of the environment that says something.
    pub(super) fn variable(&self, name: &str) -> Option<String> {
        (self.env)(name).map(|value| value.trim().to_owned()).filter(|value| !value.is_empty())
    }

    /// A small file, such as a token, without blanks around it.
    ///
    /// # Errors
    /// [`Config`](ErrorKind::Config) if it cannot be read; the error does not say what is in it.
    pub(super) fn file(&self, path: &str) -> Result<String> {
        let text = read(Path::new(path))?;
        text.map(|text| text.trim().to_owned()).ok_or_else(|| Error::config(format!("there is no file {path}")))
    }

    /// Asks one of AWS's servers.
    pub(super) async fn ask(&self, request: Request<Bytes>) -> Result<(StatusCode, Bytes)> {
        let transport = self.transport.clone().map_or_else(default_transport, Ok)?;
        asked(&*transport, request, PATIENCE).await
    }

    /// Asks a server of the machine itself, which no proxy leads to. It answers at once, or is not there.
    pub(super) async fn ask_near(&self, request: Request<Bytes>, patience: Duration) -> Result<(StatusCode, Bytes)> {
        let transport = self.transport.clone().map_or_else(direct, Ok)?;
        asked(&*transport, request, patience).await
    }
}

/// What a file says; none if it is not there.
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
    // A connection belongs to the runtime in which it was made, and keys are fetched once an hour.
    Ok(Arc::new(crate::HttpTransport::builder().no_proxy().build()?))
}

#[cfg(not(feature = "http"))]
fn direct() -> Result<Arc<dyn Transport>> {
    default_transport()
}
