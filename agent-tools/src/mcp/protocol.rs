//! Revisions of the protocol, and how a client finds the one that a server speaks.

use std::sync::atomic::{AtomicBool, Ordering};

/// Selects the revision of the protocol that a client speaks with its server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Protocol {
    /// Probes the server with `server/discover`: revision 2026-07-28 if the server knows it,
    /// otherwise the handshake. A server that ends the connection or stays silent for ten seconds
    /// gets the handshake too. The result of the probe is kept for later connections.
    #[default]
    Auto,
    /// Revision 2026-07-28 only: every request is self-contained, and there is no handshake.
    Stateless,
    /// Revisions up to 2025-11-25 only: a connection begins with `initialize`. Saves the probe for
    /// a server that is known to be old.
    Handshake,
}

/// Kind of revision that a client's server speaks.
#[derive(Debug, Default)]
pub(super) struct Era(AtomicBool);

impl Era {
    /// Returns how the next connection begins.
    pub(super) fn begins(&self, configured: Protocol) -> Protocol {
        match configured {
            Protocol::Auto if self.0.load(Ordering::Acquire) => Protocol::Handshake,
            configured => configured,
        }
    }

    /// Records whether the server requires the handshake.
    pub(super) fn learn(&self, needs_handshake: bool) {
        self.0.store(needs_handshake, Ordering::Release);
    }
}
