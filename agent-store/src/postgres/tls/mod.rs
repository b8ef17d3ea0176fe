//! TLS settings: the meaning of libpq's `sslmode` and `sslrootcert`.

mod roots;
mod verify;

use std::sync::Arc;

use agent_core::{Error, Result};
use rustls::{ClientConfig, crypto::CryptoProvider};
use tokio_postgres::{Config, config::SslMode};
use tokio_postgres_rustls::MakeRustlsConnect;

use super::url::Asked;

/// Check of the server's certificate.
#[derive(Clone, Copy)]
enum Check {
    /// No check: protects against passive eavesdropping, not against active interception.
    Nothing,
    /// The certificate is signed by a trusted authority.
    Authority,
    /// The certificate is also valid for the host.
    Host,
}

/// Configures encryption and returns the TLS connector.
pub(super) fn configure(config: &mut Config, asked: &Asked) -> Result<MakeRustlsConnect> {
    let roots = asked.sslrootcert.as_deref();
    let (mode, check) = meaning(asked.sslmode.as_deref(), roots.is_some())?;
    config.ssl_mode(mode);
    connector(check, roots)
}

fn meaning(mode: Option<&str>, has_roots: bool) -> Result<(SslMode, Check)> {
    let (mode, check) = match mode {
        Some("disable") => (SslMode::Disable, Check::Nothing),
        None | Some("prefer") => (SslMode::Prefer, Check::Nothing),
        Some("require") if has_roots => (SslMode::Require, Check::Authority),
        Some("require") => (SslMode::Require, Check::Nothing),
        Some("verify-ca") => (SslMode::Require, Check::Authority),
        Some("verify-full") => (SslMode::Require, Check::Host),
        Some(_) => {
            let message = "invalid sslmode: expected disable, prefer, require, verify-ca or verify-full";
            return Err(Error::config(message));
        }
    };
    if has_roots && mode != SslMode::Require {
        let message = "sslrootcert has no effect without TLS: add sslmode=verify-full to the database URL";
        return Err(Error::config(message));
    }
    Ok((mode, check))
}

fn connector(check: Check, roots: Option<&str>) -> Result<MakeRustlsConnect> {
    // Explicit, since rustls refuses to choose where an application has linked a second provider.
    let provider: Arc<CryptoProvider> = Arc::new(rustls::crypto::ring::default_provider());
    let unsupported = |e| Error::config("TLS cannot be set up").with_source(e);
    let builder = ClientConfig::builder_with_provider(provider.clone())
        .with_safe_default_protocol_versions()
        .map_err(unsupported)?;
    let config = match check {
        Check::Nothing => builder.dangerous().with_custom_certificate_verifier(verify::nothing(provider)),
        Check::Authority => {
            let verifier = verify::authority(roots::read(roots)?, provider)?;
            builder.dangerous().with_custom_certificate_verifier(verifier)
        }
        Check::Host => builder.with_root_certificates(roots::read(roots)?),
    };
    Ok(MakeRustlsConnect::new(config.with_no_client_auth()))
}

/// True if TLS failed or was refused.
pub(super) fn is_refused(e: &tokio_postgres::Error) -> bool {
    let mut cause = std::error::Error::source(e);
    while let Some(error) = cause {
        let of_io = error.downcast_ref::<std::io::Error>().and_then(std::io::Error::get_ref);
        if error.is::<rustls::Error>() || of_io.is_some_and(<dyn std::error::Error + Send + Sync>::is::<rustls::Error>)
        {
            return true;
        }
        cause = error.source();
    }
    false
}
