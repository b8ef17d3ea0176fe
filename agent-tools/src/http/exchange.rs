//! One request and its response.

use std::{
    collections::HashMap,
    fmt,
    net::SocketAddr,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use agent_core::{Error, ErrorKind, Result, Retry};
use reqwest::{
    Client, Method, Response, StatusCode,
    dns::{Addrs, Name, Resolve, Resolving},
    header::{ACCEPT_ENCODING, HeaderMap, HeaderValue, RETRY_AFTER},
    redirect::Policy,
};
use rustls::ClientConfig;
use url::Url;

use super::{AddressPolicy, Body, tls};

/// Content encodings that are decoded.
const ENCODINGS: HeaderValue = HeaderValue::from_static("gzip, deflate, br, zstd");

/// Connect timeout.
const CONNECT_TIME: Duration = Duration::from_secs(10);

/// Idle time after which a connection is closed, shorter than that of most servers, and maximum of
/// idle connections per host.
const IDLE: Duration = Duration::from_secs(4);
const IDLE_EACH: usize = 4;

/// Maximum of hosts with cached addresses. Beyond it, addresses are validated anew, as they are
/// before each exchange.
const MOST_HOSTS: usize = 1_000;

/// HTTP client that connects only to allowed addresses. Clones share their connections.
#[derive(Clone)]
pub(crate) struct Http {
    reach: Arc<AddressPolicy>,
    tls: ClientConfig,
    agent: HeaderValue,
    /// Clients by port: a resolver does not receive the port, and an address may be allowed with
    /// one port only.
    clients: Arc<Mutex<HashMap<u16, (Client, Judged)>>>,
}

/// HTTP request.
#[derive(Debug)]
pub(crate) struct Call {
    pub(crate) method: Method,
    pub(crate) url: Url,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Option<Vec<u8>>,
}

impl Call {
    #[cfg(feature = "web")]
    pub(crate) fn get(url: Url) -> Self {
        Self { method: Method::GET, url, headers: HeaderMap::new(), body: None }
    }
}

/// HTTP response.
#[derive(Debug)]
pub(crate) struct Exchange {
    pub(crate) url: Url,
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Body,
}

impl Http {
    pub(crate) fn new(reach: AddressPolicy, agent: &str) -> Result<Self> {
        let agent = HeaderValue::from_str(agent)
            .map_err(|e| Error::config(format!("'{agent}' is not a name for a user agent")).with_source(e))?;
        Ok(Self { reach: Arc::new(reach), tls: tls::config()?, agent, clients: Arc::default() })
    }

    /// Sends a request to the URL's host, at an allowed address. Redirects are not followed.
    ///
    /// Connects only to the validated addresses: there is no second resolution and no proxy. A
    /// pooled connection is reused for the same host and port only.
    ///
    /// # Errors
    /// Of kind [`Tool`](ErrorKind::Tool): the address of the host is not allowed, or the connection
    /// failed.
    pub(crate) async fn send(&self, call: Call) -> Result<Exchange> {
        let addresses = self.reach.addresses(&call.url).await?;
        let client = self.client(&call.url, addresses)?;
        let host = host(&call.url);
        let mut request = client.request(call.method, call.url.clone()).headers(call.headers);
        request = request.header(ACCEPT_ENCODING, ENCODINGS);
        if let Some(body) = call.body {
            request = request.body(body);
        }
        let answer = request.send().await.map_err(|e| unreached(&host, e))?;
        // Defence in depth: a client that connected to another address has a bug, and its response
        // must not leak.
        if answer.remote_addr().is_some_and(|peer| !self.reach.allows(peer)) {
            return Err(Error::new(ErrorKind::Unexpected, "the client connected to an address that was not judged"));
        }
        Ok(Exchange::new(call.url, answer))
    }

    /// Returns true if this port was allowed for a private address.
    #[cfg(feature = "web")]
    pub(crate) fn names_port(&self, port: u16) -> bool {
        self.reach.names_port(port)
    }

    /// Returns the client that connects to these addresses of the URL's host.
    fn client(&self, url: &Url, addresses: Vec<SocketAddr>) -> Result<Client> {
        let port = url.port_or_known_default().unwrap_or_default();
        let mut clients = self.clients.lock().unwrap_or_else(PoisonError::into_inner);
        let (client, judged) = match clients.get(&port) {
            Some(made) => made.clone(),
            None => {
                let judged = Judged::default();
                let made = (self.new_client(judged.clone())?, judged);
                clients.insert(port, made.clone());
                made
            }
        };
        judged.set(url.host_str().unwrap_or_default(), addresses);
        Ok(client)
    }

    fn new_client(&self, judged: Judged) -> Result<Client> {
        let client = Client::builder()
            .tls_backend_preconfigured(self.tls.clone())
            .dns_resolver(Arc::new(judged))
            .redirect(Policy::none())
            .user_agent(self.agent.clone())
            .connect_timeout(CONNECT_TIME)
            .pool_idle_timeout(IDLE)
            .pool_max_idle_per_host(IDLE_EACH)
            .referer(false)
            .retry(reqwest::retry::never())
            .no_proxy()
            .no_gzip()
            .no_brotli()
            .no_zstd()
            .no_deflate();
        client.build().map_err(|e| Error::config("an HTTP client cannot be made").with_source(e))
    }
}

impl fmt::Debug for Http {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Http").field("reach", &self.reach).field("agent", &self.agent).finish_non_exhaustive()
    }
}

impl Exchange {
    fn new(url: Url, answer: Response) -> Self {
        let (status, headers) = (answer.status(), answer.headers().clone());
        Self { url, status, body: Body::new(&headers, answer), headers }
    }

    /// Returns whether a retry may succeed.
    pub(crate) fn retry(&self) -> Retry {
        match self.status.as_u16() {
            429 | 500 | 502..=504 => {
                let seconds = self.headers.get(RETRY_AFTER).and_then(|value| value.to_str().ok()?.parse().ok());
                Retry::Temporary(seconds.map(Duration::from_secs))
            }
            _ => Retry::Permanent,
        }
    }

    /// Returns a header, if it is valid text.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }
}

/// Returns the host of a URL, with its port unless that is the default.
pub(crate) fn host(url: &Url) -> String {
    let host = url.host_str().unwrap_or_default();
    url.port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"))
}

/// Converts the error without the URL, which may hold a key.
pub(crate) fn unreached(host: &str, e: reqwest::Error) -> Error {
    let what = if e.is_timeout() {
        "did not answer in time"
    } else if e.is_connect() {
        "cannot be connected to"
    } else {
        "broke the connection off"
    };
    Error::tool(format!("'{host}' {what}: try it later, or use another source"))
        .with_retry(Retry::Temporary(None))
        .with_source(e.without_url())
}

/// Resolver that returns the addresses which were validated last for a name.
#[derive(Clone, Default)]
struct Judged(Arc<Mutex<HashMap<String, Vec<SocketAddr>>>>);

impl Judged {
    fn set(&self, host: &str, addresses: Vec<SocketAddr>) {
        let mut known = self.lock();
        if known.len() >= MOST_HOSTS {
            known.clear();
        }
        known.insert(host.to_owned(), addresses);
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Vec<SocketAddr>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Resolve for Judged {
    fn resolve(&self, name: Name) -> Resolving {
        let addresses = self.lock().get(name.as_str()).cloned();
        Box::pin(async move {
            let addresses = addresses.ok_or("its addresses were not judged")?;
            Ok(Box::new(addresses.into_iter()) as Addrs)
        })
    }
}
