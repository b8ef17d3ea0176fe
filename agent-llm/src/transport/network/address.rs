//! Target addresses of requests, and how requests name them.

use agent_core::{Error, Result};
use http::{
    HeaderValue, Request, Uri, header,
    uri::{Authority, PathAndQuery, Scheme},
};

use super::{
    http1,
    proxy::{Proxies, Proxy},
};

/// Scheme, host and port, and the proxy to use.
pub(super) struct Address {
    /// Scheme and authority as in requests, including any user name.
    named: (Scheme, Authority),
    /// Without path and user name.
    uri: Uri,
    /// Host header, with the port unless it is the scheme's default.
    host: HeaderValue,
    proxy: Option<Proxy>,
}

impl Address {
    /// Extracts the address from a URI.
    ///
    /// # Errors
    /// [`Config`](agent_core::ErrorKind::Config) if `uri` is not a valid address.
    pub(super) fn of(uri: &Uri, proxies: &Proxies) -> Result<Self> {
        let invalid = || Error::config("a request must have a whole address, like http://host:port/path");
        let named = uri.scheme().cloned().zip(uri.authority().cloned()).ok_or_else(invalid)?;
        let (scheme, authority) = &named;
        let port = authority.port_u16().filter(|port| *port != if *scheme == Scheme::HTTPS { 443 } else { 80 });
        let host = match port {
            Some(port) => format!("{}:{port}", authority.host()),
            None => authority.host().to_owned(),
        };
        let uri = Uri::builder().scheme(scheme.clone()).authority(&*host).path_and_query("/").build();
        let (host, uri) = HeaderValue::try_from(host).ok().zip(uri.ok()).ok_or_else(invalid)?;
        let proxy = proxies.of(&uri)?;
        Ok(Self { named, uri, host, proxy })
    }

    /// Returns true if requests for `uri` go to this address.
    pub(super) fn is_of(&self, uri: &Uri) -> bool {
        (Some(&self.named.0), Some(&self.named.1)) == (uri.scheme(), uri.authority())
    }

    pub(super) fn uri(&self) -> &Uri {
        &self.uri
    }

    pub(super) fn has_tls(&self) -> bool {
        self.named.0 == Scheme::HTTPS
    }

    /// Returns host and port.
    pub(super) fn endpoint(&self) -> (&str, u16) {
        let port = self.uri.port_u16().unwrap_or(if self.has_tls() { 443 } else { 80 });
        (self.uri.host().unwrap_or_default(), port)
    }

    pub(super) fn proxy(&self) -> Option<&Proxy> {
        self.proxy.as_ref()
    }

    /// Returns the proxy that forwards requests without TLS.
    fn forwarder(&self) -> Option<&Proxy> {
        self.proxy().filter(|proxy| !self.has_tls() && proxy.forwards())
    }

    /// Rewrites the request to origin form, with the host in a header, unless a proxy needs the
    /// absolute form.
    pub(super) fn address_for_http1(&self, request: &mut http1::Outgoing) {
        let path = path(request);
        match self.forwarder() {
            None => *request.uri_mut() = path.into(),
            Some(proxy) => {
                *request.uri_mut() = self.whole(path);
                if let Some(login) = proxy.login() {
                    request.headers_mut().insert(header::PROXY_AUTHORIZATION, login.clone());
                }
            }
        }
        request.headers_mut().entry(header::HOST).or_insert_with(|| self.host.clone());
    }

    /// Rewrites the request to absolute form.
    pub(super) fn address_for_http2(&self, request: &mut http1::Outgoing) {
        *request.uri_mut() = self.whole(path(request));
    }

    fn whole(&self, path: PathAndQuery) -> Uri {
        let mut parts = self.uri.clone().into_parts();
        parts.path_and_query = Some(path);
        Uri::from_parts(parts).unwrap_or_else(|_| self.uri.clone())
    }
}

fn path<B>(request: &Request<B>) -> PathAndQuery {
    request.uri().path_and_query().cloned().unwrap_or_else(|| PathAndQuery::from_static("/"))
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use http_body_util::Full;

    use super::*;

    fn request(uri: &'static str) -> http1::Outgoing {
        Request::get(uri).body(Full::new(Bytes::new())).expect("a request")
    }

    fn sent(uri: &'static str) -> (String, String) {
        let address = Address::of(&Uri::from_static(uri), &Proxies::none()).expect("an address");
        let mut request = request(uri);
        address.address_for_http1(&mut request);
        let host = request.headers()[header::HOST].to_str().expect("a host").to_owned();
        (request.uri().to_string(), host)
    }

    #[test]
    fn a_request_names_its_path_and_its_host() {
        assert_eq!(sent("http://h:8080/v1/chat?x=1"), ("/v1/chat?x=1".into(), "h:8080".into()));
        assert_eq!(sent("https://me:secret@h:443"), ("/".into(), "h".into()));
        assert_eq!(sent("http://[::1]:443/v1"), ("/v1".into(), "[::1]:443".into()));
        assert!(Address::of(&Uri::from_static("/v1"), &Proxies::none()).is_err());
    }

    #[test]
    fn a_request_over_http2_names_the_whole_address_without_the_user() {
        let uri = "https://me:secret@h:8443/v1?x=1";
        let address = Address::of(&Uri::from_static(uri), &Proxies::none()).expect("an address");
        let mut request = request(uri);
        address.address_for_http2(&mut request);
        assert_eq!(request.uri(), "https://h:8443/v1?x=1");
    }
}
