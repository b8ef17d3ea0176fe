//! Settings of a transport.

use std::{sync::Arc, time::Duration};

use agent_core::{Error, Result};
use http::HeaderValue;
use rustls::crypto::CryptoProvider;
#[cfg(feature = "aws-lc-rs")]
use rustls::crypto::aws_lc_rs as crypto;
#[cfg(not(feature = "aws-lc-rs"))]
use rustls::crypto::ring as crypto;

use super::{
    HttpTransport, Inner,
    connect::{Connector, Protocol},
    pool::Limits,
    proxy::Proxies,
    tls::{Tls, Trust},
};

/// Builder of an [`HttpTransport`].
///
/// ```
/// use std::time::Duration;
///
/// use agent_llm::{HttpTransport, model};
///
/// let transport = HttpTransport::builder()
///     .proxy("http://me:secret@proxy.example.com:3128")
///     .connect_timeout(Duration::from_secs(5))
///     .max_connections(20)
///     .build()?;
/// let model = model("openai:gpt-5").api_key("sk-..").transport(transport).build()?;
/// # Ok::<(), agent_core::Error>(())
/// ```
#[derive(Clone, Debug)]
#[must_use]
pub struct HttpTransportBuilder {
    /// `None`: use the environment's proxies.
    proxy: Option<ProxyChoice>,
    system_roots: bool,
    roots: Vec<Vec<u8>>,
    client: Option<Client>,
    process_provider: bool,
    connect_timeout: Duration,
    tcp_keep_alive: Option<Duration>,
    pings: Option<Duration>,
    limits: Limits,
    speaks: Option<Protocol>,
    user_agent: Option<String>,
}

#[derive(Clone)]
enum ProxyChoice {
    Nothing,
    /// The URL may contain a password.
    At(String),
}

/// A client certificate and its key, as PEM.
#[derive(Clone)]
struct Client {
    chain: Vec<u8>,
    key: Vec<u8>,
}

impl Default for HttpTransportBuilder {
    fn default() -> Self {
        let limits =
            Limits { idle_timeout: Duration::from_secs(90), most_idle: usize::MAX, most: usize::MAX, most_age: None };
        Self {
            proxy: None,
            system_roots: true,
            roots: Vec::new(),
            client: None,
            process_provider: false,
            connect_timeout: Duration::from_secs(15),
            tcp_keep_alive: Some(Duration::from_secs(60)),
            pings: Some(Duration::from_secs(30)),
            limits,
            speaks: None,
            user_agent: None,
        }
    }
}

impl HttpTransportBuilder {
    /// Sends all requests through the proxy at this URL: `http://`, `https://`, `socks5://` (names
    /// are resolved locally) or `socks5h://` (names are resolved by the proxy), optionally with
    /// `user:password@`. Default: the proxies in `HTTPS_PROXY`, `HTTP_PROXY`, `ALL_PROXY` and
    /// `NO_PROXY`, also in lower case; servers on this machine are then called without a proxy.
    pub fn proxy(mut self, url: impl Into<String>) -> Self {
        self.proxy = Some(ProxyChoice::At(url.into()));
        self
    }

    /// Disables proxies, ignoring the environment.
    pub fn no_proxy(mut self) -> Self {
        self.proxy = Some(ProxyChoice::Nothing);
        self
    }

    /// Also trusts these root certificates, as PEM.
    pub fn add_roots(mut self, pem: impl Into<Vec<u8>>) -> Self {
        self.roots.push(pem.into());
        self
    }

    /// Trusts only the root certificates set with [`add_roots`](Self::add_roots). Default: also
    /// trusts the operating system's.
    pub fn no_system_roots(mut self) -> Self {
        self.system_roots = false;
        self
    }

    /// Sets the client certificate for servers that request one: its chain and its private key, as
    /// PEM.
    pub fn client_certificate(mut self, chain: impl Into<Vec<u8>>, key: impl Into<Vec<u8>>) -> Self {
        self.client = Some(Client { chain: chain.into(), key: key.into() });
        self
    }

    /// Uses the cryptography provider that the application installed for the process with rustls'
    /// `CryptoProvider::install_default`, such as the FIPS module of aws-lc-rs. Default: ring, or
    /// aws-lc-rs with the feature of that name.
    pub fn process_crypto(mut self) -> Self {
        self.process_provider = true;
        self
    }

    /// Sets the timeout for establishing a connection: name resolution, proxy and TLS together.
    /// Default: 15 s.
    pub fn connect_timeout(mut self, longest: Duration) -> Self {
        self.connect_timeout = longest;
        self
    }

    /// Sets the time after which an idle connection is closed. Default: 90 s.
    pub fn idle_timeout(mut self, longest: Duration) -> Self {
        self.limits.idle_timeout = longest;
        self
    }

    /// Sets the maximum number of idle connections per server. Default: unlimited.
    pub fn max_idle(mut self, connections: usize) -> Self {
        self.limits.most_idle = connections;
        self
    }

    /// Sets the maximum number of connections per server; further calls wait for one. Default:
    /// unlimited.
    pub fn max_connections(mut self, connections: usize) -> Self {
        self.limits.most = connections;
        self
    }

    /// Sets the maximum age of a connection that takes another call: behind a load balancer, new
    /// connections reach new servers. Default: unlimited.
    pub fn max_age(mut self, longest: Duration) -> Self {
        self.limits.most_age = Some(longest);
        self
    }

    /// Sets the idle time before TCP keep-alive probes, or disables them. Default: 60 s.
    pub fn tcp_keep_alive(mut self, silence: Option<Duration>) -> Self {
        self.tcp_keep_alive = silence;
        self
    }

    /// Sets the idle time after which an HTTP/2 server with open calls is pinged, or disables
    /// pings; without an answer for 20 s, its calls fail. Default: 30 s.
    pub fn http2_pings(mut self, silence: Option<Duration>) -> Self {
        self.pings = silence;
        self
    }

    /// Uses HTTP/1.1 only. Default: HTTP/2 with servers that offer it over TLS.
    pub fn http1_only(mut self) -> Self {
        self.speaks = Some(Protocol::Http1);
        self
    }

    /// Uses HTTP/2 only, also without TLS.
    pub fn http2_prior_knowledge(mut self) -> Self {
        self.speaks = Some(Protocol::Http2);
        self
    }

    /// Sets the `user-agent` header, unless a model sets its own. Default: this crate's name and
    /// version.
    pub fn user_agent(mut self, name: impl Into<String>) -> Self {
        self.user_agent = Some(name.into());
        self
    }

    /// Builds the transport. This neither opens a connection nor reads the system's certificates.
    ///
    /// # Errors
    /// [`Config`](agent_core::ErrorKind::Config) for an invalid proxy URL or certificate, or a
    /// limit of zero.
    pub fn build(self) -> Result<HttpTransport> {
        if self.limits.most == 0 {
            return Err(Error::config("max_connections must be at least 1"));
        }
        let trust = self.trust()?;
        let proxies = match &self.proxy {
            None => Proxies::from_env(|name| std::env::var(name).ok()),
            Some(ProxyChoice::Nothing) => Proxies::none(),
            Some(ProxyChoice::At(url)) => Proxies::all(url)?,
        };
        let user_agent = match self.user_agent {
            None => HeaderValue::from_static(concat!("agent-llm/", env!("CARGO_PKG_VERSION"))),
            Some(name) => HeaderValue::try_from(name)
                .map_err(|_| Error::config("the user agent has a character that HTTP does not allow"))?,
        };
        let connector = Connector {
            tcp_keep_alive: self.tcp_keep_alive,
            tls: Tls::new(trust),
            proxies,
            speaks: self.speaks,
            timeout: self.connect_timeout,
            pings: self.pings,
        };
        Ok(HttpTransport(Arc::new(Inner { connector, user_agent, limits: self.limits, origins: Default::default() })))
    }

    fn trust(&self) -> Result<Trust> {
        let provider = match self.process_provider {
            // Named explicitly, since rustls refuses to choose if an application has added a second
            // provider.
            false => Arc::new(crypto::default_provider()),
            true => CryptoProvider::get_default()
                .cloned()
                .ok_or_else(|| Error::config("no cryptography was installed for the process"))?,
        };
        let mut trust = Trust::new(provider, self.system_roots);
        for pem in &self.roots {
            trust.add_roots(pem)?;
        }
        if !self.system_roots && self.roots.is_empty() {
            return Err(Error::config("without the system's root certificates, add_roots must name others"));
        }
        if let Some(Client { chain, key }) = &self.client {
            trust.show(chain, key)?;
        }
        Ok(trust)
    }
}

impl std::fmt::Debug for ProxyChoice {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Nothing => "Nothing",
            Self::At(_) => "At(..)",
        })
    }
}

impl std::fmt::Debug for Client {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Client").finish_non_exhaustive()
    }
}
