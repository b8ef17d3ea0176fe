//! Trusted certificate authorities.

use agent_core::{Error, Result};
use rustls::{
    RootCertStore,
    pki_types::{CertificateDer, pem::PemObject},
};

/// Value of `sslrootcert` for the public authorities.
const PUBLIC: &str = "system";

/// Reads the authorities of a PEM file, or returns the public ones.
///
/// # Errors
/// [`ErrorKind::Config`](agent_core::ErrorKind::Config) for a file that cannot be read or contains
/// none.
pub(super) fn read(path: Option<&str>) -> Result<RootCertStore> {
    let mut roots = RootCertStore::empty();
    let Some(path) = path.filter(|path| *path != PUBLIC) else {
        roots.extend(webpki_roots::TLS_SERVER_ROOTS.iter().cloned());
        return Ok(roots);
    };
    let unreadable = |e: rustls::pki_types::pem::Error| {
        let message = format!("sslrootcert '{path}' cannot be read: expected a PEM file of certificates");
        Error::config(message).with_context("pem", e.to_string())
    };
    for certificate in CertificateDer::pem_file_iter(path).map_err(unreadable)? {
        let refused =
            |e| Error::config(format!("sslrootcert '{path}' contains an invalid CA certificate")).with_source(e);
        roots.add(certificate.map_err(unreadable)?).map_err(refused)?;
    }
    if roots.is_empty() {
        return Err(Error::config(format!(
            "sslrootcert '{path}' contains no certificate: expected a PEM file of certificates"
        )));
    }
    Ok(roots)
}
