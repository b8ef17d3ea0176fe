//! TLS client for a collector.

use std::{sync::Arc, thread, time::Duration};

use agent_core::{Error, Result};
use reqwest::blocking::Client;
use rustls::{
    ClientConfig, RootCertStore,
    crypto::ring,
    pki_types::{CertificateDer, pem::PemObject},
};

/// Environment variable for a collector's certificate authority, by OpenTelemetry's specification.
const CERTIFICATE: &str = "OTEL_EXPORTER_OTLP_CERTIFICATE";

/// Creates a client for `http` and `https`. It trusts these certificates, otherwise those in the
/// file that the environment names, otherwise the machine's root certificates.
pub(super) fn client(timeout: Duration, pem: Option<&[u8]>) -> Result<Client> {
    let roots = match (pem, std::env::var_os(CERTIFICATE)) {
        (Some(pem), _) => named(pem)?,
        (None, Some(file)) => {
            let unread = |e| Error::config(format!("the file that {CERTIFICATE} names cannot be read")).with_source(e);
            named(&std::fs::read(file).map_err(unread)?)?
        }
        (None, None) => {
            let mut roots = RootCertStore::empty();
            roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
            roots
        }
    };
    // The provider is explicit, since rustls refuses to choose if an application has added a second
    // one.
    let config =
        ClientConfig::builder_with_provider(Arc::new(ring::default_provider())).with_safe_default_protocol_versions();
    let config = config.map_err(unusable)?.with_root_certificates(roots).with_no_client_auth();
    // On a separate thread: a blocking client must not be created inside a runtime.
    let make = move || Client::builder().timeout(timeout).tls_backend_preconfigured(config).build().map_err(unusable);
    thread::spawn(make).join().map_err(|_| Error::config("the client for the collector could not be made"))?
}

fn named(pem: &[u8]) -> Result<RootCertStore> {
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(pem) {
        roots.add(certificate.map_err(unusable)?).map_err(unusable)?;
    }
    match roots.is_empty() {
        true => {
            Err(Error::config("the certificates for the collector hold none in PEM: give -----BEGIN CERTIFICATE-----"))
        }
        false => Ok(roots),
    }
}

fn unusable(e: impl std::error::Error + Send + Sync + 'static) -> Error {
    Error::config("TLS to the collector cannot be set up").with_source(e)
}
