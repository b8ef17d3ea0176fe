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

/// Makes a [`HttpTransport`] that differs from the default.
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
    /// None: that of the environment.
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
    /// It may hold a password.
    At(String),
}

/// A certificate and its key, as PEM.
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
    /// Sends all requests through the proxy at this address: `http://`, `https://`, `socks5://` (names are resolved here) or
    /// `socks5h://` (names are resolved there), with `user:password@` if it wants that. Default: what `HTTPS_PROXY`,
    /// `HTTP_PROXY`, `ALL_PROXY` and `NO_PROXY` say, in lower case too; servers on this machine are then called without one.
    pub fn proxy(mut self, url: impl Into<String>) -> Self {
        self.proxy = Some(ProxyChoice::At(url.into()));
        self
    }

    /// Uses no proxy, whatever the environment says.
    pub fn no_proxy(mut self) -> Self {
        self.proxy = Some(ProxyChoice::Nothing);
        self
    }

    /// Trusts these root certificates, PEM, as well.
    pub fn add_roots(mut self, pem: impl Into<Vec<u8>>) -> Self {
        self.roots.push(pem.into());
        self
    }

    /// Trusts no root certificates but those of [`add_roots`](Self::add_roots). Default: the operating system's, too.
    pub fn no_system_roots(mut self) -> Self {
        self.system_roots = false;
        self
    }

    /// Shows this certificate to servers that ask for one: its chain and its private key, PEM.
    pub fn client_certificate(mut self, chain: impl Into<Vec<u8>>, key: impl Into<Vec<u8>>) -> Self {
        self.client = Some(Client { chain: chain.into(), key: key.into() });
        self
    }

    /// Takes the cryptography that the application installed for the process with rustls'
    /// `CryptoProvider::install_default`, such as the FIPS module of aws-lc-rs. Default: ring, or aws-lc-rs with the feature
    /// of this name.
    pub fn process_crypto(mut self) -> Self {
        self.process_provider = true;
        self
    }

    /// Sets the longest time until there is a connection: for the name, the proxy and TLS together. Default: 15 s.
    pub fn connect_timeout(mut self, longest: Duration) -> Self {
        self.connect_timeout = longest;
        self
    }

    /// Sets for how long a connection is kept that nobody uses. Default: 90 s.
    pub fn idle_timeout(mut self, longest: Duration) -> Self {
        self.limits.idle_timeout = longest;
        self
    }

    /// Sets how many connections without a call are kept for each server. Default: all.
    pub fn max_idle(mut self, connections: usize) -> Self {
        self.limits.most_idle = connections;
        self
    }

    /// Sets how many connections each server has at most; further calls wait for one. Default: as many as are needed.
    pub fn max_connections(mut self, connections: usize) -> Self {
        self.limits.most = connections;
        self
    }

    /// Sets how old a connection may be that takes another call: behind a load balancer, new ones find new servers.
    /// Default: any age.
    pub fn max_age(mut self, longest: Duration) -> Self {
        self.limits.most_age = Some(longest);
        self
    }

    /// Sets the silence after which TCP asks the other side for a sign of life, if any. Default: 60 s.
    pub fn tcp_keep_alive(mut self, silence: Option<Duration>) -> Self {
        self.tcp_keep_alive = silence;
        self
    }

    /// Sets the silence after which an HTTP/2 server with open calls is pinged, if any; without an answer for 20 s, its calls
    /// fail. Default: 30 s.
    pub fn http2_pings(mut self, silence: Option<Duration>) -> Self {
        self.pings = silence;
        self
    }

    /// Speaks HTTP/1.1 alone. Default: HTTP/2 with servers that offer it over TLS.
    pub fn http1_only(mut self) -> Self {
        self.speaks = Some(Protocol::Http1);
        self
    }

    /// Speaks HTTP/2 alone, also without TLS.
    pub fn http2_prior_knowledge(mut self) -> Self {
        self.speaks = Some(Protocol::Http2);
        self
    }

    /// Sets what requests say about who sends them, unless a model has a header `user-agent` of its own. Default: this
    /// crate's name and version.
    pub fn user_agent(mut self, name: impl Into<String>) -> Self {
        self.user_agent = Some(name.into());
        self
    }

    /// Makes the transport. It opens no connection and reads none of the system's certificates yet.
    ///
    /// # Errors
    /// [`Config`](agent_core::ErrorKind::Config) for what cannot be: a proxy's address, a certificate, a limit of nothing.
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
            // Named, since rustls refuses to choose where an application has brought in a second one.
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
