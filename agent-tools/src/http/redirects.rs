//! Redirects.

use agent_core::{Error, Result};
use reqwest::header::LOCATION;
use url::Url;

use super::{Exchange, host};

/// Maximum of redirects that are followed.
const MOST: usize = 5;

/// Redirects followed for one request.
#[derive(Debug, Default)]
pub(crate) struct Redirects(usize);

impl Redirects {
    /// Returns the target of a redirect, without a fragment; `None` if the response is not a
    /// redirect.
    ///
    /// # Errors
    /// Of kind [`Tool`](agent_core::ErrorKind::Tool): the target is missing or invalid, or there
    /// were too many redirects.
    pub(crate) fn next(&mut self, answer: &Exchange) -> Result<Option<Url>> {
        let follows = matches!(answer.status.as_u16(), 301 | 302 | 303 | 307 | 308);
        let Some(location) = answer.headers.get(LOCATION).filter(|_| follows) else { return Ok(None) };
        let from = host(&answer.url);
        self.0 += 1;
        if self.0 > MOST {
            return Err(Error::tool(format!("'{from}' redirects more than {MOST} times")));
        }
        let mut url = answer.url.join(&String::from_utf8_lossy(location.as_bytes())).map_err(|e| {
            Error::tool(format!("'{from}' redirects to something that is not an address")).with_source(e)
        })?;
        url.set_fragment(None);
        Ok(Some(url))
    }
}
