//! API key placement: [`Auth`].

use agent_core::{Error, Result};
use http::{HeaderMap, HeaderName, HeaderValue, header};
use serde::{Deserialize, Serialize};

/// Header in which a provider expects the API key.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Auth {
    /// `authorization: Bearer KEY`.
    #[default]
    Bearer,
    /// The bare key, in this header.
    Header(String),
}

impl Auth {
    /// Adds the key to the headers of a request.
    ///
    /// # Errors
    /// [`Config`](agent_core::ErrorKind::Config) if the key or the header name is not valid in
    /// HTTP.
    pub(crate) fn show(&self, key: &str, headers: &mut HeaderMap) -> Result<()> {
        // A key read from a file often ends with a line break.
        let key = key.trim();
        match self {
            Self::Bearer => insert(headers, header::AUTHORIZATION.as_str(), &format!("Bearer {key}")),
            Self::Header(name) => insert(headers, name, key),
        }
    }
}

/// Inserts a header marked as sensitive, so that `Debug` does not print its value.
///
/// # Errors
/// [`Config`](agent_core::ErrorKind::Config) if the name or the value is not valid in HTTP.
pub(crate) fn insert(headers: &mut HeaderMap, name: &str, value: &str) -> Result<()> {
    let invalid = || Error::config(format!("the header '{name}' has a name or a value that HTTP does not allow"));
    let name = HeaderName::try_from(name).map_err(|_| invalid())?;
    let mut value = HeaderValue::try_from(value).map_err(|_| invalid())?;
    value.set_sensitive(true);
    headers.insert(name, value);
    Ok(())
}
