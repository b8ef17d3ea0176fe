//! The transport over HTTP/1.1: hyper and rustls.

mod answer;
mod connect;
mod connection;
mod origin;

use std::{
    fmt,
    sync::{Arc, Mutex, PoisonError},
};

use agent_core::{BoxFuture, Error, ErrorKind, Result, Retry, async_trait, boxed};
use bytes::Bytes;
use http::{Request, Response, Uri};
use http_body_util::Full;

use self::{answer::Answer, connect::Connector, origin::Origin};
use super::{Body, Transport};

/// HTTP/1.1, with TLS for `https` addresses. Keeps connections open for further requests; cheap to clone.
///
/// A connection that no request used for 90 seconds is closed. Redirects are not followed and proxies of the environment
/// not used, so that a request and its key go where they were sent and nowhere else. Root certificates are those of the
/// operating system (without any, a built-in set), and are read at the first `https` request. Use one transport per tokio
/// runtime.
#[derive(Clone)]
pub struct HyperTransport(Arc<Inner>);

struct Inner {
    connector: Connector,
    /// Mostly one: a transport is a model's.
    origins: Mutex<Vec<Arc<Origin>>>,
}

impl HyperTransport {
    /// A transport without connections.
    pub fn new() -> Self {
        Self(Arc::new(Inner { connector: Connector::new(), origins: Mutex::default() }))
    }
}

impl Default for HyperTransport {
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
}

#[async_trait]
impl Transport for HyperTransport {
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

impl Inner {
    fn send(&self, request: Request<Bytes>) -> impl Future<Output = Result<Response<Body>>> + Send {
        let origin = self.origin(request.uri());
        let mut request = request.map(Full::new);
        async move {
            let origin = origin?;
            origin.address(&mut request);
            loop {
                let kept = origin.take();
                let is_kept = kept.is_some();
                let mut connection = match kept {
                    Some(kept) => kept,
                    // Seldom: no other call has to have room for it.
                    None => boxed(|| self.connector.connect(&origin)).await?,
                };
                match connection.send(request).await {
                    Ok(answer) => return Ok(answer.map(|body| Body::new(Answer::new(body, connection, origin)))),
                    Err(mut e) => match e.take_message() {
                        // The server closed it while it waited, and has seen nothing of the request.
                        Some(unsent) if is_kept => request = unsent,
                        _ => return Err(broken("the connection broke").with_source(e.into_error())),
                    },
                }
            }
        }
    }
}

/// A failure of the network, which may have passed at the next try.
fn broken(message: &'static str) -> Error {
    Error::new(ErrorKind::Transport, message).with_retry(Retry::Temporary(None))
}

impl fmt::Debug for HyperTransport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HyperTransport").field("tls", &self.0.connector.is_ready_for_tls()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_new_transport_has_read_no_certificates() {
        assert_eq!(format!("{:?}", HyperTransport::new()), "HyperTransport { tls: false }");
    }

    #[test]
    fn servers_that_are_not_called_any_more_are_forgotten() {
        let transport = HyperTransport::new();
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
