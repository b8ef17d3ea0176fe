//! Host and origin checks, and security headers, for all routes.

use std::sync::Arc;

use axum::{
    extract::{Request, State},
    middleware::Next,
    response::{IntoResponse, Response},
};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};

use crate::{auth::refused, error::ApiError};

/// Host names and origins that are accepted. Cheap to clone.
#[derive(Clone, Debug)]
pub(crate) struct Guard(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    /// None if every host name is accepted.
    hosts: Option<Vec<String>>,
    origins: Vec<String>,
}

/// Security headers, unless a route sets its own.
const TOLD: [(HeaderName, &str); 5] = [
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (header::X_FRAME_OPTIONS, "DENY"),
    (header::REFERRER_POLICY, "no-referrer"),
    (header::CONTENT_SECURITY_POLICY, "default-src 'none'; frame-ancestors 'none'"),
    (header::CACHE_CONTROL, "no-store"),
];

impl Guard {
    /// Accepts this machine's own names and `hosts`, or any name if `hosts` is `None`; and
    /// the server's own origin and `origins`.
    pub(crate) fn new(hosts: Option<Vec<String>>, origins: Vec<String>) -> Self {
        Self(Arc::new(Inner { hosts, origins }))
    }

    fn check(&self, host: &str, headers: &HeaderMap) -> Result<(), ApiError> {
        if let Some(hosts) = &self.0.hosts {
            let name = without_port(host);
            let is_known = is_loopback(name) || hosts.iter().any(|known| known == name || known == host);
            if !is_known {
                let message = "unknown host name: allow it (--host NAME), or use 127.0.0.1";
                return Err(ApiError::new(StatusCode::MISDIRECTED_REQUEST, "unknown_host", message));
            }
        }
        let Some(origin) = headers.get(header::ORIGIN) else { return Ok(()) };
        let origin = origin.to_str().unwrap_or_default();
        let is_own = origin.split_once("://").is_some_and(|(_, page)| page.eq_ignore_ascii_case(host));
        if is_own || self.0.origins.iter().any(|known| known == origin) {
            return Ok(());
        }
        Err(ApiError::forbidden("requests from this origin are not allowed: allow it (--origin ORIGIN)"))
    }
}

/// Rejects requests with unknown host names or origins, which prevents DNS rebinding and cross-site
/// requests.
pub(crate) async fn guard(State(guard): State<Guard>, request: Request, next: Next) -> Response {
    let host = request.headers().get(header::HOST).and_then(|host| host.to_str().ok());
    let host = host.or_else(|| request.uri().authority().map(http::uri::Authority::as_str)).unwrap_or_default();
    let mut response = match guard.check(&host.to_ascii_lowercase(), request.headers()) {
        Ok(()) => next.run(request).await,
        Err(error) => {
            refused(&request, &error);
            error.into_response()
        }
    };
    for (name, value) in TOLD {
        response.headers_mut().entry(name).or_insert(HeaderValue::from_static(value));
    }
    response
}

fn without_port(host: &str) -> &str {
    match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|b| b.is_ascii_digit()) && !name.ends_with(':') => name,
        _ => host,
    }
}

fn is_loopback(name: &str) -> bool {
    let address = name.trim_start_matches('[').trim_end_matches(']');
    name == "localhost" || address.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status(guard: &Guard, host: &str, origin: Option<&str>) -> u16 {
        let mut headers = HeaderMap::new();
        if let Some(origin) = origin {
            headers.insert(header::ORIGIN, HeaderValue::from_str(origin).expect("a value"));
        }
        guard.check(host, &headers).map_or_else(|error| error.status().as_u16(), |()| 200)
    }

    #[test]
    fn only_names_and_pages_that_are_known_are_believed() {
        let guard = Guard::new(Some(vec!["agents.example".into()]), vec!["https://shop.example".into()]);
        for (host, origin, wanted) in [
            ("127.0.0.1:8080", None, 200),
            ("localhost", None, 200),
            ("[::1]:80", None, 200),
            ("agents.example:8080", None, 200),
            ("evil.example:8080", None, 421),
            ("", None, 421),
            ("127.0.0.1.evil.example", None, 421),
            ("localhost:8080", Some("http://localhost:8080"), 200),
            ("localhost:8080", Some("http://localhost:9090"), 403),
            ("localhost:8080", Some("https://shop.example"), 200),
            ("localhost:8080", Some("https://evil.example"), 403),
            ("localhost:8080", Some("null"), 403),
        ] {
            assert_eq!(status(&guard, host, origin), wanted, "{host} {origin:?}");
        }
        let any = Guard::new(None, Vec::new());
        assert_eq!((status(&any, "evil.example", None), status(&any, "a", Some("http://b"))), (200, 403));
    }
}
