//! Establishing connections: name resolution, sockets, proxies, TLS.

use std::{error::Error as StdError, sync::Arc, time::Duration};

use agent_core::{Error, Result};
use http::Uri;
use hyper_util::client::legacy::connect::HttpConnector;
use rustls::pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_rustls::TlsConnector;
use tower::ServiceExt;

use super::{
    address::Address,
    failure::{Part, chain, failed, root_cause, unreachable},
    progress::{NoSuchName, Progress, Resolver},
    proxy::{Proxies, is_loopback},
    tls::{Offer, Tls, why_refused},
};

/// Byte stream: a socket, or a wrapper around one.
pub(super) type Stream = Box<dyn Io>;

pub(super) trait Io: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Io for T {}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Protocol {
    Http1,
    Http2,
}

const PERHAPS_A_PROXY: &str =
    "; if only a proxy leads there, name it in HTTPS_PROXY or with HttpTransport::builder().proxy(..)";

/// Opens connections.
pub(super) struct Connector {
    /// Idle time before TCP keep-alive probes.
    pub(super) tcp_keep_alive: Option<Duration>,
    pub(super) tls: Tls,
    pub(super) proxies: Proxies,
    /// Protocol of all connections, if fixed.
    pub(super) speaks: Option<Protocol>,
    /// Timeout for establishing a connection.
    pub(super) timeout: Duration,
    /// Idle time after which an HTTP/2 server is pinged.
    pub(super) pings: Option<Duration>,
}

pub(super) type Tcp = HttpConnector<Resolver>;

impl Connector {
    /// Returns the protocol, if it is known before connecting.
    pub(super) fn speaks(&self, address: &Address) -> Option<Protocol> {
        self.speaks.or_else(|| (!address.has_tls()).then_some(Protocol::Http1))
    }

    /// Opens a connection to `address`, recording each step in `progress`.
    pub(super) async fn connect(&self, address: &Address, progress: &Progress) -> Result<(Stream, Protocol)> {
        let stream = self.reach(address, progress).await?;
        if !address.has_tls() {
            return Ok((stream, self.speaks.unwrap_or(Protocol::Http1)));
        }
        let offer = match self.speaks {
            None => Offer::Both,
            Some(Protocol::Http1) => Offer::Http1,
            Some(Protocol::Http2) => Offer::Http2,
        };
        progress.enter(Part::Tls);
        let (stream, protocol) = self.secure(stream, address.endpoint().0, offer).await?;
        if self.speaks == Some(Protocol::Http2) && protocol != Protocol::Http2 {
            return Err(unreachable(Part::Tls, "it does not speak HTTP/2"));
        }
        Ok((stream, protocol))
    }

    /// Returns the socket connector for one connection.
    fn tcp(&self, progress: Progress) -> Tcp {
        let mut tcp = HttpConnector::new_with_resolver(Resolver::new(progress));
        tcp.enforce_http(false);
        tcp.set_nodelay(true);
        tcp.set_keepalive(self.tcp_keep_alive);
        tcp
    }

    async fn reach(&self, address: &Address, progress: &Progress) -> Result<Stream> {
        let Some(proxy) = address.proxy() else {
            let opened = open(self.tcp(progress.clone()), address.uri().clone()).await;
            return opened.map_err(|e| {
                let part = part_of(&*e);
                let hint = if is_loopback(address.endpoint().0) { "" } else { PERHAPS_A_PROXY };
                unreachable(part, format!("{} {}{hint}", what_failed(part), root_cause(&*e))).with_source(e)
            });
        };
        progress.enter(Part::Proxy);
        let tcp = self.tcp(Progress::new(Part::Proxy)); // name and socket are the proxy's, too
        if !proxy.forwards() {
            return proxy.connect_by_socks(tcp, address, progress).await;
        }
        let there = proxy.name();
        let mut stream = open(tcp, proxy.uri().clone()).await.map_err(|e| {
            unreachable(Part::Proxy, format!("its proxy {there} could not be reached: {}", root_cause(&*e)))
                .with_source(e)
        })?;
        if proxy.has_tls() {
            let host = proxy.uri().host().unwrap_or_default();
            let secured = self.secure(stream, host, Offer::Http1).await;
            (stream, _) = secured.map_err(|e| {
                let why = format!("no TLS with its proxy {there}: {}", e.message());
                failed(Part::Proxy, why).with_retry(e.retry()).with_source(e)
            })?;
        }
        proxy.lead(stream, address).await
    }

    async fn secure(&self, stream: Stream, host: &str, offer: Offer) -> Result<(Stream, Protocol)> {
        let config = self.tls.config(offer).await?;
        let name = ServerName::try_from(host.trim_matches(['[', ']']).to_owned())
            .map_err(|_| Error::config(format!("'{host}' is no name that a certificate could have")))?;
        let secured = TlsConnector::from(Arc::clone(&config)).connect(name, stream).await.map_err(why_refused)?;
        let protocol = match secured.get_ref().1.alpn_protocol() {
            Some(b"h2") => Protocol::Http2,
            _ => Protocol::Http1,
        };
        Ok((Box::new(secured), protocol))
    }
}

/// Opens a socket to the host and port of `uri`.
async fn open(tcp: Tcp, uri: Uri) -> Result<Stream, Box<dyn StdError + Send + Sync>> {
    Ok(Box::new(tcp.oneshot(uri).await?.into_inner()))
}

/// Returns whether name resolution or the connection failed.
fn part_of(e: &(dyn StdError + 'static)) -> Part {
    if chain(e).any(<dyn StdError>::is::<NoSuchName>) { Part::Name } else { Part::Connection }
}

fn what_failed(part: Part) -> &'static str {
    if part == Part::Name { "its name has no address:" } else { "no connection:" }
}
