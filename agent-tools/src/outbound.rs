//! Requests to untrusted addresses, for example webhooks.

use std::{sync::Arc, time::Duration};

use agent_core::{Error, ErrorKind, Result, Retry};
use bytes::Bytes;
use http::{HeaderMap, Response};
use reqwest::Method;
use tokio::time::timeout;
use url::Url;

use crate::http::{AddressPolicy, Call, Http, System, host};

/// Value of the `User-Agent` header.
const USER_AGENT: &str = concat!("agent-tools/", env!("CARGO_PKG_VERSION"));

/// Bytes of a response that are read, so that its connection can be reused.
const READ: usize = 64 << 10;

/// Client for requests to untrusted addresses. Cheap to clone.
///
/// Refuses addresses of this machine and of private networks after name resolution, unless they are
/// [allowed](OutboundBuilder::allow), and connects to the checked addresses only. Follows no
/// redirect and uses no proxy.
///
/// ```
/// use agent_tools::outbound::Outbound;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> agent_core::Result<()> {
/// let outbound = Outbound::builder().build()?;
/// assert!(outbound.check("http://169.254.169.254/latest/meta-data").await.is_err());
/// # Ok(()) }
/// ```
#[derive(Clone, Debug)]
pub struct Outbound {
    http: Http,
    reach: Arc<AddressPolicy>,
    time: Duration,
}

/// Builds an [`Outbound`]. [`build`](Self::build) reports invalid settings.
#[derive(Clone, Debug)]
#[must_use]
pub struct OutboundBuilder {
    private: Vec<String>,
    time: Duration,
}

impl Outbound {
    /// Returns a builder that allows the public internet only.
    pub fn builder() -> OutboundBuilder {
        OutboundBuilder { private: Vec::new(), time: Duration::from_secs(15) }
    }

    /// Checks that `url` is an HTTP address, and that its host currently resolves to an allowed
    /// address.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidRequest`] if `url` is not an HTTP address; as [`post`](Self::post) if
    /// its host is not allowed.
    pub async fn check(&self, url: &str) -> Result<()> {
        self.reach.addresses(&parsed(url)?).await.map(drop)
    }

    /// Posts a body. The response body is discarded; any status is returned.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidRequest`] if `url` is invalid. [`ErrorKind::Tool`] if the host is not
    /// allowed, is unreachable, or does not respond in time; the error says whether a retry may
    /// help.
    pub async fn post(&self, url: &str, headers: HeaderMap, body: Bytes) -> Result<Response<()>> {
        let url = parsed(url)?;
        let host = host(&url);
        let call = Call { method: Method::POST, url, headers, body: Some(body.into()) };
        let answered = timeout(self.time, async {
            let answer = self.http.send(call).await?;
            let mut told = Response::new(());
            (*told.status_mut(), *told.headers_mut()) = (answer.status, answer.headers);
            // Reading the body allows the connection to be reused; a body that is too long costs
            // the connection.
            let _ = answer.body.read(READ).await;
            Ok(told)
        });
        answered.await.unwrap_or_else(|_| {
            let error = Error::tool(format!("'{host}' did not answer within {:.0?}", self.time));
            Err(error.with_retry(Retry::Temporary(None)))
        })
    }
}

impl OutboundBuilder {
    /// Allows an address outside the public internet: `10.1.2.3:8080`, `10.1.2.3` or `10.1.0.0/16`.
    pub fn allow(mut self, address: impl Into<String>) -> Self {
        self.private.push(address.into());
        self
    }

    /// Sets the timeout of a request. Default: 15 seconds.
    pub fn timeout(mut self, longest: Duration) -> Self {
        self.time = longest;
        self
    }

    /// Builds the client. Sends nothing yet.
    ///
    /// # Errors
    /// [`ErrorKind::Config`] if an allowed address is invalid.
    pub fn build(self) -> Result<Outbound> {
        let mut reach = AddressPolicy::public(Arc::new(System));
        self.private.iter().try_for_each(|address| reach.allow(address))?;
        Ok(Outbound { http: Http::new(reach.clone(), USER_AGENT)?, reach: Arc::new(reach), time: self.time })
    }
}

fn parsed(url: &str) -> Result<Url> {
    let parsed = Url::parse(url).ok().filter(|url| matches!(url.scheme(), "http" | "https") && url.has_host());
    parsed.ok_or_else(|| Error::new(ErrorKind::InvalidRequest, "an address begins with https:// or http://"))
}

#[cfg(test)]
mod tests {
    use tokio::{
        io::{AsyncReadExt, AsyncWriteExt},
        net::TcpListener,
    };

    use super::*;

    #[tokio::test]
    async fn addresses_of_this_machine_and_its_network_are_refused_unless_they_were_allowed() {
        let outbound = Outbound::builder().allow("10.1.0.0/16").build().expect("builds");
        for url in
            ["http://127.0.0.1:9/", "http://localhost/", "http://[::1]/", "http://192.168.0.1/", "http://2130706433/"]
        {
            assert_eq!(outbound.check(url).await.expect_err(url).kind(), ErrorKind::Tool, "{url}");
        }
        assert!(outbound.check("http://10.1.2.3/").await.is_ok());
        assert_eq!(
            outbound.check("file:///etc/passwd").await.expect_err("no address").kind(),
            ErrorKind::InvalidRequest
        );
    }

    #[tokio::test]
    async fn a_redirect_is_an_answer_and_not_followed() {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address");
        tokio::spawn(async move {
            let (mut stream, _) = listener.accept().await.expect("a client");
            let mut request = [0; 4096];
            let _ = stream.read(&mut request).await.expect("a request");
            let answer = format!("HTTP/1.1 307 There\r\nlocation: http://{address}/other\r\ncontent-length: 0\r\n\r\n");
            stream.write_all(answer.as_bytes()).await.expect("sent");
            assert!(listener.accept().await.is_err(), "it came again");
        });
        let outbound = Outbound::builder().allow(address.to_string()).build().expect("builds");
        let answer = outbound.post(&format!("http://{address}/"), HeaderMap::new(), Bytes::new()).await;
        assert_eq!(answer.expect("an answer").status(), 307);
    }
}
