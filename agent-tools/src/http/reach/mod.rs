//! SSRF guard: resolves a host, checks every address against the policy, and connects only to
//! checked addresses.

use std::{
    fmt, io,
    net::{IpAddr, SocketAddr},
    str::FromStr,
    sync::Arc,
};

use agent_core::{Error, Result, Retry, async_trait};
use url::{Host, Url};

use super::address::{why_private, within};

/// Host names of cloud metadata services, which hand out secrets. Their addresses are refused as
/// well.
const METADATA_HOSTS: &[&str] =
    &["metadata", "metadata.goog", "metadata.google.internal", "instance-data", "instance-data.ec2.internal"];

/// Resolves host names.
///
/// ```
/// use std::{io, net::IpAddr};
///
/// use agent_core::async_trait;
/// use agent_tools::web::Resolver;
///
/// struct Fixed;
///
/// #[async_trait]
/// impl Resolver for Fixed {
///     async fn resolve(&self, host: &str) -> io::Result<Vec<IpAddr>> {
///         match host {
///             "docs.example.org" => Ok(vec![IpAddr::from([93, 184, 215, 14])]),
///             _ => Err(io::Error::other("not known")),
///         }
///     }
/// }
/// ```
// Public if the feature `web` re-exports it.
#[cfg_attr(not(feature = "web"), allow(unreachable_pub))]
#[async_trait]
pub trait Resolver: Send + Sync + 'static {
    /// Resolves a host. Addresses outside the public internet are not connected to, whichever
    /// resolver returns them.
    ///
    /// # Errors
    /// If the name cannot be resolved.
    async fn resolve(&self, host: &str) -> io::Result<Vec<IpAddr>>;
}

/// Resolver of the operating system.
#[derive(Debug)]
pub(crate) struct System;

#[async_trait]
impl Resolver for System {
    async fn resolve(&self, host: &str) -> io::Result<Vec<IpAddr>> {
        Ok(tokio::net::lookup_host((host, 0)).await?.map(|address| address.ip()).collect())
    }
}

/// Exception: private addresses that are allowed.
#[derive(Clone, Copy, Debug)]
struct Exception {
    network: IpAddr,
    length: u32,
    /// Port; `None` allows any.
    port: Option<u16>,
}

impl FromStr for Exception {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let single = |ip: IpAddr| if ip.is_ipv4() { 32 } else { 128 };
        if let Ok(address) = text.parse::<SocketAddr>() {
            return Ok(Self { network: address.ip(), length: single(address.ip()), port: Some(address.port()) });
        }
        let (network, length) = match text.split_once('/') {
            Some((network, length)) => (network, Some(length.parse::<u32>().map_err(drop)?)),
            None => (text, None),
        };
        let network: IpAddr = network.parse().map_err(drop)?;
        let length = length.unwrap_or(single(network));
        if length > single(network) { Err(()) } else { Ok(Self { network, length, port: None }) }
    }
}

/// Address policy.
#[derive(Clone)]
pub(crate) struct AddressPolicy {
    resolver: Arc<dyn Resolver>,
    exceptions: Vec<Exception>,
    /// True if every address is allowed: the application chose the host.
    anywhere: bool,
}

impl AddressPolicy {
    /// Allows public addresses only.
    pub(crate) fn public(resolver: Arc<dyn Resolver>) -> Self {
        Self { resolver, exceptions: Vec::new(), anywhere: false }
    }

    /// Allows every address: for hosts that the application chose.
    #[cfg(any(feature = "e2b", feature = "mcp", feature = "openapi", feature = "web"))]
    pub(crate) fn anywhere() -> Self {
        Self { resolver: Arc::new(System), exceptions: Vec::new(), anywhere: true }
    }

    /// Adds an exception: `10.1.2.3`, `10.1.2.3:8080`, `10.1.0.0/16`.
    #[cfg(any(feature = "a2a", feature = "openapi", feature = "web"))]
    pub(crate) fn allow(&mut self, addresses: &str) -> Result<()> {
        let unknown = |()| {
            Error::config(format!(
                "'{addresses}' is not an address: write 10.1.2.3, 10.1.2.3:8080, [fd00::1]:8080 or 10.1.0.0/16"
            ))
        };
        self.exceptions.push(addresses.parse().map_err(unknown)?);
        Ok(())
    }

    /// Returns true if this port was allowed for a private address.
    #[cfg(feature = "web")]
    pub(crate) fn names_port(&self, port: u16) -> bool {
        self.exceptions.iter().any(|exception| exception.port == Some(port))
    }

    /// Returns the allowed addresses of the URL's host.
    ///
    /// # Errors
    /// Of kind [`Tool`](agent_core::ErrorKind::Tool) if no address is allowed.
    pub(crate) async fn addresses(&self, url: &Url) -> Result<Vec<SocketAddr>> {
        let port = url.port_or_known_default().unwrap_or_default();
        let (host, found) = match url.host() {
            Some(Host::Ipv4(ip)) => (ip.to_string(), vec![ip.into()]),
            Some(Host::Ipv6(ip)) => (ip.to_string(), vec![ip.into()]),
            Some(Host::Domain(name)) => (name.to_owned(), self.resolved(name).await?),
            None => return Err(Error::tool("the address names no host")),
        };
        let usable: Vec<_> = found
            .iter()
            .filter(|address| self.refusal(**address, port).is_none())
            .map(|address| SocketAddr::new(*address, port))
            .collect();
        match (usable.is_empty(), found.first()) {
            (false, _) => Ok(usable),
            (true, None) => Err(Error::tool(format!("the host '{host}' has no address"))),
            (true, Some(first)) => {
                let why = self.refusal(*first, port).unwrap_or("private");
                Err(Error::tool(format!(
                    "'{host}' is not on the public internet (its address is {why}), so it is not read: do not try it in another way"
                )))
            }
        }
    }

    /// Returns true if the policy allows this address.
    #[cfg(any(feature = "a2a", feature = "e2b", feature = "openapi", feature = "web"))]
    pub(crate) fn allows(&self, address: SocketAddr) -> bool {
        self.refusal(address.ip(), address.port()).is_none()
    }

    async fn resolved(&self, name: &str) -> Result<Vec<IpAddr>> {
        let bare = name.trim_end_matches('.');
        if !self.anywhere && METADATA_HOSTS.contains(&bare) {
            return Err(Error::tool(format!("'{name}' tells secrets of this machine, so it is not read")));
        }
        let failed = |e: io::Error| {
            let message = format!("the host '{name}' cannot be found: check how it is written");
            Error::tool(message).with_retry(Retry::Temporary(None)).with_source(e)
        };
        self.resolver.resolve(name).await.map_err(failed)
    }

    fn refusal(&self, address: IpAddr, port: u16) -> Option<&'static str> {
        let excepted = |exception: &Exception| {
            within(address, exception.network, exception.length) && exception.port.is_none_or(|only| only == port)
        };
        if self.anywhere || self.exceptions.iter().any(excepted) { None } else { why_private(address) }
    }
}

impl fmt::Debug for AddressPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AddressPolicy").field("exceptions", &self.exceptions).field("anywhere", &self.anywhere).finish()
    }
}

#[cfg(all(test, any(feature = "openapi", feature = "web")))]
mod tests;
