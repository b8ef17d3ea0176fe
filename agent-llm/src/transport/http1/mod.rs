//! The transport over HTTP/1.1.

mod answer;
mod body;
mod connect;
mod connection;
mod head;
mod origin;
mod stream;

use std::{
    fmt, mem,
    sync::{Arc, Mutex, PoisonError},
};

use agent_core::{BoxFuture, Error, ErrorKind, Result, Retry, async_trait, boxed};
use bytes::Bytes;
use http::{Request, Response, Uri};

use self::{answer::Answer, connect::Connector, head::Head, origin::Origin};
use super::{Body, Transport};

/// HTTP/1.1, with TLS for `https` addresses. Keeps connections open for further requests; cheap to clone.
///
/// A connection that no request used for 90 seconds is closed. Redirects are not followed and proxies of the environment
/// not used, so that a request and its key go where they were sent and nowhere else. Root certificates are those of the
/// operating system (without any, a built-in set), and are read at the first `https` request. Use one transport per tokio
/// runtime.
#[derive(Clone)]
pub struct HttpTransport(Arc<Inner>);

struct Inner {
    connector: Connector,
    /// Mostly one: a transport is a model's.
    origins: Mutex<Vec<Arc<Origin>>>,
}

impl HttpTransport {
    /// A transport without connections.
    pub fn new() -> Self {
        Self::with_connector(Connector::new())
    }

    fn with_connector(connector: Connector) -> Self {
        Self(Arc::new(Inner { connector, origins: Mutex::default() }))
    }
}

impl Default for HttpTransport {
    fn default() -> Self {
        Self::new()
    }
}

impl Inner {
    fn origin(&self, uri: &Uri) -> Result<Arc<Origin>> {
        let mut origins = self.origins.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = origins.iter().find(|origin| origin.is_of(uri)) {
            return Ok(known.clone());
        }
        let new = Arc::new(Origin::of(uri)?);
        origins.retain(|origin| Arc::strong_count(origin) > 1 || !origin.has_none());
        origins.push(new.clone());
        Ok(new)
    }

    fn send(&self, mut request: Request<Bytes>) -> impl Future<Output = Result<Response<Body>>> + Send {
        // Written at once: a request has no place in the wait for its answer.
        let written = self.origin(request.uri()).map(|origin| {
            let head = head::write(&request, origin.host());
            (origin, head, mem::take(request.body_mut()), request.method().clone())
        });
        async move {
            let (origin, head, body, method) = written?;
            let mut connection = match origin.take() {
                Some(kept) => kept,
                // Seldom: no other call has to have room for it.
                None => boxed(|| self.connector.connect(&origin)).await?,
            };
            let Head { answer, framing, stays_open } = connection.exchange(head, body, &method).await?;
            let body = Answer::new(connection, framing, stays_open.then_some(origin));
            Ok(answer.map(|()| Body::new(body)))
        }
    }
}

#[async_trait]
impl Transport for HttpTransport {
    // As async-trait has it, but for the box, which it would fill by copying.
    fn send<'life0, 'async_trait>(
        &'life0 self,
        request: Request<Bytes>,
    ) -> BoxFuture<'async_trait, Result<Response<Body>>>
    where
        'life0: 'async_trait,
        Self: 'async_trait,
    {
        boxed(|| self.0.send(request))
    }
}

/// Why an answer cannot be read.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Malformed(&'static str);

impl From<Malformed> for Error {
    fn from(malformed: Malformed) -> Self {
        broken(malformed.0)
    }
}

/// A failure of the network, which may have passed at the next try.
fn broken(message: &'static str) -> Error {
    Error::new(ErrorKind::Transport, message).with_retry(Retry::Temporary(None))
}

impl fmt::Debug for HttpTransport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpTransport").field("tls", &self.0.connector.is_ready_for_tls()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_new_transport_has_read_no_certificates() {
        assert_eq!(format!("{:?}", HttpTransport::new()), "HttpTransport { tls: false }");
    }

    #[test]
    fn servers_that_are_not_called_any_more_are_forgotten() {
        let transport = HttpTransport::new();
        let called = transport.0.origin(&Uri::from_static("http://a.test/v1")).expect("an origin");
        for _ in 0..10 {
            transport.0.origin(&Uri::from_static("https://a.test/v1")).expect("an origin");
            transport.0.origin(&Uri::from_static("http://b.test/v1")).expect("an origin");
        }
        assert_eq!(transport.0.origins.lock().expect("a lock").len(), 2, "the one that is called, and the last");
        let again = transport.0.origin(&Uri::from_static("http://A.test/other?x=1")).expect("an origin");
        assert!(Arc::ptr_eq(&called, &again));
    }
}
