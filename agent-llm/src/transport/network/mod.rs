//! Transport over HTTP/1.1 and HTTP/2, with hyper and rustls.

mod address;
mod answer;
mod builder;
mod connect;
mod encoding;
mod failure;
mod http1;
mod http2;
mod lease;
mod pool;
mod progress;
mod proxy;
mod tls;

use std::{
    fmt,
    sync::{Arc, Mutex, PoisonError},
};

use agent_core::{BoxFuture, Result, async_trait, boxed};
use bytes::Bytes;
use http::{HeaderValue, Request, Response, Uri, header};
use http_body_util::Full;

pub use self::builder::HttpTransportBuilder;
use self::{
    address::Address,
    answer::Answer,
    connect::Connector,
    encoding::{ACCEPTED, decoded},
    failure::broken_head,
    lease::Unanswered,
    pool::{Limits, Origin},
};
use super::{Body, Transport};

/// Maximum number of times a request is sent again after the server refused it unprocessed.
const MOST_REFUSALS: u32 = 2;

/// HTTP client for HTTP/1.1, and HTTP/2 if a server offers it, with TLS for `https` URLs. Pools
/// connections; cheap to clone.
///
/// Connections are closed after 90 seconds without a request. Redirects are not followed, so that a
/// request and its key go only where they were sent. Proxies come from the environment. Root
/// certificates come from the operating system (or, if it has none, from a built-in set), and are
/// read at the first `https` request. Compressed responses are decompressed.
/// [`builder`](Self::builder) changes these settings.
#[derive(Clone)]
pub struct HttpTransport(Arc<Inner>);

struct Inner {
    connector: Connector,
    user_agent: HeaderValue,
    limits: Limits,
    /// Usually one entry: most transports serve one provider.
    origins: Mutex<Vec<Arc<Origin>>>,
}

impl HttpTransport {
    /// Creates a transport with the default settings.
    pub fn new() -> Self {
        HttpTransportBuilder::default()
            .build()
            .expect("the defaults are valid, and the environment is judged when it is used")
    }

    /// Returns a builder for custom settings.
    pub fn builder() -> HttpTransportBuilder {
        HttpTransportBuilder::default()
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
        if let Some(known) = origins.iter().find(|origin| origin.address.is_of(uri)) {
            return Ok(known.clone());
        }
        let address = Address::of(uri, &self.connector.proxies)?;
        let speaks = self.connector.speaks(&address);
        let new = Arc::new(Origin::new(address, self.limits, speaks));
        origins.retain(|origin| Arc::strong_count(origin) > 1 || !origin.has_none());
        origins.push(new.clone());
        Ok(new)
    }

    fn send(&self, request: Request<Bytes>) -> impl Future<Output = Result<Response<Body>>> + Send {
        let origin = self.origin(request.uri());
        let mut request = request.map(Full::new);
        let headers = request.headers_mut();
        headers.entry(header::USER_AGENT).or_insert_with(|| self.user_agent.clone());
        headers.entry(header::ACCEPT_ENCODING).or_insert(ACCEPTED);
        async move {
            let origin = origin?;
            let mut refusals = 0;
            loop {
                let mut lease = origin.lease(&self.connector).await?;
                match lease.send(request).await {
                    Ok(answer) => return Ok(decoded(answer.map(|body| Body::new(Answer::new(body, lease))))),
                    // The server closed the idle connection before it received anything of the
                    // request.
                    Err(Unanswered::Unsent(unsent, _)) if !lease.is_new => request = unsent,
                    Err(Unanswered::Refused(refused, _)) if refusals < MOST_REFUSALS => {
                        refusals += 1;
                        request = refused;
                    }
                    Err(unanswered) => return Err(broken_head(unanswered.why())),
                }
            }
        }
    }
}

#[async_trait]
impl Transport for HttpTransport {
    // Written by hand instead of async-trait, whose box would be filled by copying.
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

impl fmt::Debug for HttpTransport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpTransport").field("tls", &self.0.connector.tls.is_ready()).finish()
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
