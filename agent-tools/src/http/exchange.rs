//! One request and its answer.

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

use super::{Body, Reach, tls};

/// What is decoded.
const ENCODINGS: HeaderValue = HeaderValue::from_static("gzip, deflate, br, zstd");

/// Longest time that making a connection may take.
const CONNECT_TIME: Duration = Duration::from_secs(10);

/// How long a connection is kept for the next exchange, and how many with one host: a server that ends them sooner is rare.
const IDLE: Duration = Duration::from_secs(4);
const IDLE_EACH: usize = 4;

/// Hosts whose addresses are known at a time. Beyond that they are judged anew, as all are before each exchange.
const MOST_HOSTS: usize = 1_000;

/// Makes exchanges with addresses that may be reached. Clones share their connections.
#[derive(Clone)]
pub(crate) struct Http {
    reach: Arc<Reach>,
    tls: ClientConfig,
    agent: HeaderValue,
    /// By their ports: whoever resolves names is not told which one is meant, and an address may be allowed with one alone.
    clients: Arc<Mutex<HashMap<u16, (Client, Judged)>>>,
}

/// A request.
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

/// The answer to a request.
#[derive(Debug)]
pub(crate) struct Exchange {
    pub(crate) url: Url,
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Body,
}

impl Http {
    pub(crate) fn new(reach: Reach, agent: &str) -> Result<Self> {
        let agent = HeaderValue::from_str(agent)
            .map_err(|e| Error::config(format!("'{agent}' is not a name for a user agent")).with_source(e))?;
        Ok(Self { reach: Arc::new(reach), tls: tls::config()?, agent, clients: Arc::default() })
    }

    /// Sends a request to the URL's host, at an address that may be reached. Redirects are not followed.
    ///
    /// What is connected to are the addresses that were judged, and neither those of a second resolution, nor a proxy. A connection that is kept open
    /// is used for the same host and port alone.
    ///
    /// # Errors
    /// Of kind [`Tool`](ErrorKind::Tool): the host may not be reached, or cannot.
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
        // What the client did is looked at once more: one that connects elsewhere has a fault, and gives nothing away.
        if answer.remote_addr().is_some_and(|peer| !self.reach.allows(peer)) {
            return Err(Error::new(ErrorKind::Unexpected, "the client connected to an address that was not judged"));
        }
        Ok(Exchange::new(call.url, answer))
    }

    /// True if this port was allowed for a private address.
    #[cfg(feature = "web")]
    pub(crate) fn names_port(&self, port: u16) -> bool {
        self.reach.names_port(port)
    }

    /// The client that connects to these addresses of the URL's host.
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

    /// Whether asking again may help.
    pub(crate) fn retry(&self) -> Retry {
        match self.status.as_u16() {
            429 | 500 | 502..=504 => {
                let seconds = self.headers.get(RETRY_AFTER).and_then(|value| value.to_str().ok()?.parse().ok());
                Retry::Temporary(seconds.map(Duration::from_secs))
            }
            _ => Retry::Permanent,
        }
    }

    /// A header, if it is a text.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }
}

/// The host of a URL, and its port if that is not the usual one.
pub(crate) fn host(url: &Url) -> String {
    let host = url.host_str().unwrap_or_default();
    url.port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"))
}

/// The error without the URL, which may hold a key.
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

/// Answers names with the addresses that were judged for them last.
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
