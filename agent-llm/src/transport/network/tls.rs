//! TLS: trusted certificates and the client certificate.

use std::{
    io,
    sync::{Arc, OnceLock},
};

use agent_core::{Error, Result, Retry};
use rustls::{
    CertificateError, ClientConfig, RootCertStore,
    crypto::CryptoProvider,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
    sign::{CertifiedKey, SingleCertAndKey},
};

use super::failure::{Part, unreachable};

/// Certificate settings.
#[derive(Clone)]
pub(super) struct Trust {
    provider: Arc<CryptoProvider>,
    /// True if the operating system's certificates are trusted in addition to `own`.
    system: bool,
    own: RootCertStore,
    client: Option<Arc<SingleCertAndKey>>,
}

/// Protocols offered to a server.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Offer {
    Both,
    Http1,
    Http2,
}

/// TLS, configured on first use: reading the system's certificates takes milliseconds of disk time.
pub(super) struct Tls {
    trust: Trust,
    config: OnceLock<ClientConfig>,
}

impl Trust {
    /// Creates the settings, which trust the operating system's certificates if `system` is true,
    /// and no others yet.
    pub(super) fn new(provider: Arc<CryptoProvider>, system: bool) -> Self {
        Self { provider, system, own: RootCertStore::empty(), client: None }
    }

    /// Trusts the certificates in `pem`.
    pub(super) fn add_roots(&mut self, pem: &[u8]) -> Result<()> {
        for certificate in certificates(pem, "root certificates")? {
            self.own.add(certificate).map_err(|e| Error::config("a root certificate is invalid").with_source(e))?;
        }
        Ok(())
    }

    /// Sets the client certificate to `chain`, with the private key `key`.
    pub(super) fn show(&mut self, chain: &[u8], key: &[u8]) -> Result<()> {
        let chain = certificates(chain, "client certificate")?;
        let key = PrivateKeyDer::from_pem_slice(key).map_err(|e| {
            Error::config("the key of the client certificate is no PEM with a private key").with_source(e)
        })?;
        let pair = CertifiedKey::from_der(chain, key, &self.provider)
            .map_err(|e| Error::config("the client certificate and its key do not belong together").with_source(e))?;
        self.client = Some(Arc::new(SingleCertAndKey::from(pair)));
        Ok(())
    }

    async fn read(self) -> Result<ClientConfig> {
        let read = tokio::task::spawn_blocking(|| self.config()).await;
        read.map_err(|e| Error::config("TLS could not be set up").with_source(e))?
    }

    fn config(self) -> Result<ClientConfig> {
        let mut roots = self.own;
        if self.system {
            roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
            if roots.is_empty() {
                roots.extend(webpki_roots::TLS_SERVER_ROOTS.iter().cloned());
            }
        }
        let config = ClientConfig::builder_with_provider(self.provider)
            .with_safe_default_protocol_versions()
            .map_err(|e| Error::config("TLS could not be set up").with_source(e))?
            .with_root_certificates(roots);
        Ok(match self.client {
            Some(client) => config.with_client_cert_resolver(client),
            None => config.with_no_client_auth(),
        })
    }
}

fn certificates(pem: &[u8], what: &str) -> Result<Vec<CertificateDer<'static>>> {
    let invalid = || Error::config(format!("the {what} are no PEM with certificates"));
    let found = CertificateDer::pem_slice_iter(pem).collect::<Result<Vec<_>, _>>();
    let found = found.map_err(|e| invalid().with_source(e))?;
    if found.is_empty() { Err(invalid()) } else { Ok(found) }
}

impl Tls {
    pub(super) fn new(trust: Trust) -> Self {
        Self { trust, config: OnceLock::new() }
    }

    /// Returns true once the certificates have been read.
    pub(super) fn is_ready(&self) -> bool {
        self.config.get().is_some()
    }

    pub(super) async fn config(&self, offer: Offer) -> Result<Arc<ClientConfig>> {
        let mut config = match self.config.get() {
            Some(read) => read.clone(),
            None => {
                let read = self.trust.clone().read().await?;
                self.config.get_or_init(|| read).clone()
            }
        };
        let protocols: &[&[u8]] = match offer {
            Offer::Both => &[b"h2", b"http/1.1"],
            Offer::Http1 => &[b"http/1.1"],
            Offer::Http2 => &[b"h2"],
        };
        config.alpn_protocols = protocols.iter().map(|name| name.to_vec()).collect();
        Ok(Arc::new(config))
    }
}

/// Builds the error for failed TLS. Certificate errors are permanent.
pub(super) fn why_refused(e: io::Error) -> Error {
    let Some(cause) = e.get_ref().and_then(|cause| cause.downcast_ref::<rustls::Error>()) else {
        return unreachable(Part::Tls, format!("no TLS: {e}")).with_source(e);
    };
    let why = match cause {
        rustls::Error::InvalidCertificate(invalid) => match invalid {
            CertificateError::UnknownIssuer | CertificateError::BadSignature => {
                "nobody who is trusted here vouches for its certificate; HttpTransport::builder().add_roots(..) trusts more"
            }
            CertificateError::Expired | CertificateError::ExpiredContext { .. } => "its certificate has expired",
            CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
                "its certificate is not valid yet"
            }
            CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
                "its certificate is for another name"
            }
            CertificateError::Revoked => "its certificate was revoked",
            _ => "its certificate is invalid",
        },
        rustls::Error::AlertReceived(alert) => {
            return unreachable(Part::Tls, format!("it refused TLS: {alert:?}")).with_source(e);
        }
        other => return unreachable(Part::Tls, format!("no TLS: {other}")).with_source(e),
    };
    unreachable(Part::Tls, why).with_retry(Retry::Permanent).with_source(e)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tls_is_set_up_without_anything_set_for_the_process() {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = Trust::new(provider, true).config().expect("certificates and a provider");
        assert!(config.alpn_protocols.is_empty(), "each connection says what it offers");
    }
}
