//! TLS configuration of the framework: rustls with ring, and the machine's trusted roots.

use std::sync::{Arc, OnceLock};

use agent_core::{Error, Result};
use rustls::{ClientConfig, RootCertStore, crypto::ring};

/// Returns the configuration, built once: loading the machine's roots takes a while.
pub(crate) fn config() -> Result<ClientConfig> {
    static MADE: OnceLock<ClientConfig> = OnceLock::new();
    match MADE.get() {
        Some(made) => Ok(made.clone()),
        None => make().map(|made| MADE.get_or_init(|| made).clone()),
    }
}

fn make() -> Result<ClientConfig> {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    if roots.is_empty() {
        roots.extend(webpki_roots::TLS_SERVER_ROOTS.iter().cloned());
    }
    // The provider is explicit, since rustls refuses to choose if the application links a second
    // one.
    let config =
        ClientConfig::builder_with_provider(Arc::new(ring::default_provider())).with_safe_default_protocol_versions();
    let config = config.map_err(|e| Error::config("TLS cannot be set up").with_source(e))?;
    Ok(config.with_root_certificates(roots).with_no_client_auth())
}
