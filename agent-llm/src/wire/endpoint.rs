//! Request URIs.

use agent_core::{Error, Result};
use bytes::Bytes;
use http::{Method, Request, Uri, header};

/// Appends `path` (which begins with a slash) to `base`; a query of `base` stays at the end.
///
/// # Errors
/// [`Config`](agent_core::ErrorKind::Config) if `base` is not an HTTP URL.
pub(crate) fn endpoint(base: &str, path: &str) -> Result<Uri> {
    let (address, query) = base.split_once('?').map_or((base, None), |(address, query)| (address, Some(query)));
    let address = address.trim_end_matches('/');
    let joint = if path.contains('?') { '&' } else { '?' };
    let query = query.map(|query| format!("{joint}{query}")).unwrap_or_default();
    format!("{address}{path}{query}")
        .parse()
        .ok()
        .filter(|uri: &Uri| matches!(uri.scheme_str(), Some("http" | "https")) && uri.authority().is_some())
        .ok_or_else(|| Error::config(format!("'{address}' is no base URL: it must be like http://host:port/v1")))
}

/// Percent-encodes a text for a path segment or a query value.
pub(crate) fn percent_encoded(text: &str) -> String {
    let encoded = |byte: u8| match byte {
        b if b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.' | b'~') => char::from(b).to_string(),
        b => format!("%{b:02X}"),
    };
    text.bytes().map(encoded).collect()
}

/// Returns the first placeholder `{..}` of a base URL that is not filled in.
pub(crate) fn place(base: &str) -> Option<&str> {
    let (_, rest) = base.split_once('{')?;
    rest.split_once('}').map(|(name, _)| name)
}

/// Creates a POST request with a JSON body.
pub(crate) fn post(uri: Uri, body: Bytes) -> Request<Bytes> {
    let mut request = Request::new(body);
    *request.method_mut() = Method::POST;
    *request.uri_mut() = uri;
    request.headers_mut().insert(header::CONTENT_TYPE, header::HeaderValue::from_static("application/json"));
    request
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_goes_before_the_query_of_the_base() {
        let uri = |base, path| endpoint(base, path).expect("an address").to_string();
        assert_eq!(uri("https://h/v1/", "/messages"), "https://h/v1/messages");
        assert_eq!(uri("https://h/v1?api-version=7", "/messages"), "https://h/v1/messages?api-version=7");
        assert_eq!(uri("https://h?key=1", "/m:stream?alt=sse"), "https://h/m:stream?alt=sse&key=1");
    }

    #[test]
    fn what_is_no_address_is_refused() {
        for base in ["", "h", "ftp://h", "localhost:8080", "/v1"] {
            assert!(endpoint(base, "/x").is_err(), "{base}");
        }
    }
}
