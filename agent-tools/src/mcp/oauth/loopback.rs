//! Loopback redirect receiver for the browser on this machine.

use std::{fmt, io, net::SocketAddr, time::Duration};

use agent_core::{Error, ErrorKind, Result, async_trait};
use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader},
    net::{TcpListener, TcpStream},
    sync::Mutex,
};
use url::Url;

use super::Authorizer;

/// Maximum length of the request line, in bytes.
const LINE: u64 = 16 * 1024;

/// Time that a browser has to send its request.
const HELLO: Duration = Duration::from_secs(10);

/// Authorises a user with the browser of this machine, which is redirected to a port of
/// `127.0.0.1`.
///
/// Requests without the `state` of the current attempt are rejected.
pub struct Loopback {
    listener: Mutex<TcpListener>,
    address: SocketAddr,
    open: Box<dyn Fn(&str) + Send + Sync>,
}

impl Loopback {
    /// Binds a free port. `open` opens an address in the user's browser, or prints it.
    ///
    /// # Errors
    /// [`ErrorKind::Transport`] if no port can be bound.
    pub async fn bind(open: impl Fn(&str) + Send + Sync + 'static) -> Result<Self> {
        let listening = async {
            let listener = TcpListener::bind("127.0.0.1:0").await?;
            let address = listener.local_addr()?;
            Ok::<_, io::Error>(Self { listener: Mutex::new(listener), address, open: Box::new(open) })
        };
        listening.await.map_err(|e| Error::new(ErrorKind::Transport, "no port of 127.0.0.1 can be had").with_source(e))
    }

    /// Reads a request; returns the redirect address if the request is one.
    async fn came_back(&self, stream: TcpStream, state: &str) -> io::Result<Option<String>> {
        let (mut line, mut reader) = (String::new(), BufReader::new(stream).take(LINE));
        reader.read_line(&mut line).await?;
        let path = line.strip_prefix("GET ").and_then(|rest| rest.split(' ').next()).unwrap_or_default();
        let url = Url::parse(&format!("http://{}{path}", self.address)).ok().filter(|url| url.path() == "/callback");
        let is_own = |url: &Url| url.query_pairs().any(|(name, value)| name == "state" && value == state);
        let found = url.filter(is_own).map(String::from);
        let (status, says) = match found {
            Some(_) => ("200 OK", "You may close this page and go back to the program."),
            None => ("404 Not Found", "There is nothing here."),
        };
        let answer = format!(
            "HTTP/1.1 {status}\r\ncontent-type: text/plain\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{says}",
            says.len()
        );
        let mut stream = reader.into_inner();
        // The browser may have disconnected.
        let _ = stream.write_all(answer.as_bytes()).await;
        let _ = stream.shutdown().await;
        Ok(found)
    }
}

#[async_trait]
impl Authorizer for Loopback {
    fn redirect_uri(&self) -> String {
        format!("http://{}/callback", self.address)
    }

    async fn authorize(&self, url: &str) -> Result<String> {
        let failed = |e: io::Error| Error::new(ErrorKind::Transport, "the browser cannot come back").with_source(e);
        let parsed = Url::parse(url)
            .map_err(|e| Error::new(ErrorKind::Protocol, "there is no address to show").with_source(e))?;
        let state = parsed.query_pairs().find(|(name, _)| name == "state").map(|(_, value)| value.into_owned());
        let state = state.ok_or_else(|| Error::new(ErrorKind::Protocol, "the address to show has no state"))?;
        let listener = self.listener.lock().await;
        (self.open)(url);
        loop {
            let (stream, _) = listener.accept().await.map_err(failed)?;
            // A slow client, or one that is no browser, times out.
            if let Ok(Ok(Some(found))) = tokio::time::timeout(HELLO, self.came_back(stream, &state)).await {
                return Ok(found);
            }
        }
    }
}

impl fmt::Debug for Loopback {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Loopback").field("address", &self.address).finish_non_exhaustive()
    }
}
