//! One server, and the connections to it that wait for a request.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
    time::Duration,
};

use agent_core::{Error, Result};
use http::{HeaderValue, Uri, uri::Scheme};

use super::connection::Connection;

/// How often connections are looked at: one that waits at two such moments is closed at the second.
const LOOK: Duration = Duration::from_secs(45);

/// A scheme, a host and a port, with the open connections that nobody uses.
pub(super) struct Origin {
    /// Without a path.
    uri: Uri,
    host: HeaderValue,
    idle: Mutex<Idle>,
}

#[derive(Default)]
struct Idle {
    /// The one last used is the last.
    connections: Vec<Waiting>,
    /// Somebody looks after them.
    watched: bool,
}

struct Waiting {
    connection: Connection,
    /// It waited already when they were looked at.
    seen: bool,
}

impl Origin {
    /// That of a whole address.
    ///
    /// # Errors
    /// [`Config`](agent_core::ErrorKind::Config) if `uri` is none.
    pub(super) fn of(uri: &Uri) -> Result<Self> {
        let invalid = || Error::config("a request must have a whole address, like http://host:port/path");
        let (scheme, authority) = uri.scheme().zip(uri.authority()).ok_or_else(invalid)?;
        let port = authority.port_u16().filter(|port| *port != if *scheme == Scheme::HTTPS { 443 } else { 80 });
        let host = match port {
            Some(port) => HeaderValue::try_from(format!("{}:{port}", authority.host())),
            None => HeaderValue::try_from(authority.host()),
        };
        let whole = Uri::builder().scheme(scheme.clone()).authority(authority.clone()).path_and_query("/").build();
        let (host, uri) = host.ok().zip(whole.ok()).ok_or_else(invalid)?;
        Ok(Self { uri, host, idle: Mutex::default() })
    }

    /// True if requests for `uri` go here.
    pub(super) fn is_of(&self, uri: &Uri) -> bool {
        (self.uri.scheme(), self.uri.authority()) == (uri.scheme(), uri.authority())
    }

    pub(super) fn uri(&self) -> &Uri {
        &self.uri
    }

    /// The host, with the port if it is not the scheme's.
    pub(super) fn host(&self) -> &HeaderValue {
        &self.host
    }

    /// True if no connection waits.
    pub(super) fn has_none(&self) -> bool {
        self.lock().connections.is_empty()
    }

    /// A connection that waits, if there is one that the server has not closed meanwhile.
    pub(super) fn take(&self) -> Option<Connection> {
        loop {
            let mut waiting = self.lock().connections.pop()?;
            if waiting.connection.is_free() {
                return Some(waiting.connection);
            }
        }
    }

    /// Keeps a connection for further requests, if it can be used for them.
    pub(super) fn keep(self: &Arc<Self>, mut connection: Connection) {
        if !connection.rest() {
            return;
        }
        let mut idle = self.lock();
        idle.connections.push(Waiting { connection, seen: false });
        if !std::mem::replace(&mut idle.watched, true) {
            tokio::spawn(watch(Arc::downgrade(self)));
        }
    }

    /// Closes what has waited for too long; false if nothing waits any more.
    fn look(&self) -> bool {
        let mut idle = self.lock();
        idle.connections.retain_mut(|waiting| !std::mem::replace(&mut waiting.seen, true));
        idle.watched = !idle.connections.is_empty();
        idle.watched
    }

    fn lock(&self) -> MutexGuard<'_, Idle> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Looks after the connections for as long as there are any.
async fn watch(origin: Weak<Origin>) {
    loop {
        tokio::time::sleep(LOOK).await;
        if !origin.upgrade().is_some_and(|origin| origin.look()) {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_host_has_the_port_that_is_not_the_schemes() {
        let host = |uri| Origin::of(&Uri::from_static(uri)).expect("an origin").host;
        assert_eq!(host("http://h:8080/v1/chat?x=1"), "h:8080");
        assert_eq!(host("https://me:secret@h:443"), "h");
        assert_eq!(host("http://[::1]:443/v1"), "[::1]:443");
        assert!(Origin::of(&Uri::from_static("/v1")).is_err());
    }
}
