//! Address rules: allowed and denied hosts and ports.

use agent_core::{Error, Result};
use url::Url;

use super::pattern::fits;

/// Standard ports of web servers.
const WEB_PORTS: &[u16] = &[80, 443, 8080, 8443];

/// Hosts that the application allows and denies.
#[derive(Clone, Debug, Default)]
pub(super) struct Rules {
    allowed: Vec<HostPattern>,
    denied: Vec<HostPattern>,
}

/// Host pattern, with `*` as a wildcard, and an optional port.
#[derive(Clone, Debug)]
struct HostPattern {
    host: String,
    port: Option<u16>,
}

impl HostPattern {
    fn new(text: &str) -> Result<Self> {
        let wrong = || {
            let example = "write example.org, *.example.org or example.org:8080";
            Error::config(format!("'{text}' is not a host: {example}"))
        };
        let (host, port) = match text.rsplit_once(':') {
            Some((host, port)) if !text.ends_with(']') => (host, Some(port.parse().map_err(|_| wrong())?)),
            _ => (text, None),
        };
        let known = |c: char| c.is_alphanumeric() || "*.-_[]:".contains(c);
        if host.is_empty() || !host.chars().all(known) {
            return Err(wrong());
        }
        // Normalised as a URL, since non-ASCII names would otherwise never match.
        let host = host.trim_end_matches('.');
        let host = match host.contains('*') {
            true if !host.is_ascii() => {
                let labels = host.split('.').map(|label| match label.contains('*') {
                    true if label.is_ascii() => Ok(label.to_owned()),
                    true => Err(wrong()),
                    false => Ok(url::Host::parse(label).map_err(|e| wrong().with_source(e))?.to_string()),
                });
                labels.collect::<Result<Vec<_>>>()?.join(".").to_lowercase()
            }
            true => host.to_lowercase(),
            false => url::Host::parse(host).map_err(|e| wrong().with_source(e))?.to_string(),
        };
        Ok(Self { host, port })
    }

    fn fits(&self, host: &str, port: u16) -> bool {
        self.port.is_none_or(|only| only == port) && fits(self.host.as_bytes(), host.as_bytes())
    }
}

impl Rules {
    pub(super) fn allow(&mut self, host: &str) -> Result<()> {
        self.allowed.push(HostPattern::new(host)?);
        Ok(())
    }

    pub(super) fn deny(&mut self, host: &str) -> Result<()> {
        self.denied.push(HostPattern::new(host)?);
        Ok(())
    }

    /// Rejects addresses that the rules forbid. `private_port` returns whether a port was allowed
    /// with an address.
    ///
    /// # Errors
    /// Of kind [`Tool`](agent_core::ErrorKind::Tool), with the reason.
    pub(super) fn check(&self, url: &Url, private_port: impl Fn(u16) -> bool) -> Result<()> {
        if !matches!(url.scheme(), "http" | "https") {
            return Err(Error::tool(format!("only http:// and https:// are read, not {}:", url.scheme())));
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(Error::tool("an address with a user name or a password is not read: leave both out"));
        }
        let (host, port) = place(url).ok_or_else(|| Error::tool("the address names no host"))?;
        if self.denied.iter().any(|denied| denied.fits(&host, port)) {
            return Err(Error::tool(format!("'{host}' is on the list of hosts that are not read: use another source")));
        }
        if !self.allowed.is_empty() && !self.allowed.iter().any(|allowed| allowed.fits(&host, port)) {
            let known: Vec<_> = self.allowed.iter().map(|allowed| allowed.host.as_str()).collect();
            let known = known.join(", ");
            return Err(Error::tool(format!("'{host}' is not on the list of hosts that are read, which are: {known}")));
        }
        let named = self.allowed.iter().any(|allowed| allowed.port == Some(port) && allowed.fits(&host, port));
        if !WEB_PORTS.contains(&port) && !named && !private_port(port) {
            return Err(Error::tool(format!("port {port} is not one of a web server, so it is not read")));
        }
        Ok(())
    }
}

/// Returns the host in the form of patterns, and the port.
fn place(url: &Url) -> Option<(String, u16)> {
    let host = url.host_str()?.trim_end_matches('.').to_ascii_lowercase();
    Some((host, url.port_or_known_default()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(rules: &Rules, url: &str) -> bool {
        rules.check(&Url::parse(url).expect("a URL"), |port| port == 3000).is_ok()
    }

    #[test]
    fn what_is_denied_is_not_read_and_what_is_allowed_is_all_that_is() {
        let mut rules = Rules::default();
        rules.deny("*.evil.example").expect("a host");
        assert!(check(&rules, "https://good.example/") && check(&rules, "http://evil.example/"));
        rules.deny("*.bücher.example").expect("a host");
        rules.deny("bad.example.").expect("a host");
        for url in [
            "https://a.bücher.example/",
            "https://bad.example/",
            "https://a.evil.example/",
            "https://A.EVIL.example./",
            "https://a.b.evil.example:8443/",
        ] {
            assert!(!check(&rules, url), "{url}");
        }
        rules.allow("docs.example:8000").expect("a host");
        rules.allow("*.example").expect("a host");
        rules.allow("bücher.test").expect("a host");
        let cases = [
            ("https://docs.example:8000/", true),
            ("https://a.example/", true),
            ("https://a.evil.example/", false),
            ("https://example.com/", false),
            ("https://bücher.test/", true),
            ("https://xn--bcher-kva.test/", true),
        ];
        for (url, expected) in cases {
            assert_eq!(check(&rules, url), expected, "{url}");
        }
    }

    #[test]
    fn other_schemes_other_ports_and_credentials_are_refused() {
        let rules = Rules::default();
        let refused = [
            "file:///etc/passwd",
            "ftp://example.org/",
            "gopher://example.org/",
            "data:text/plain,x",
            "http://u@example.org/",
            "http://u:p@example.org/",
            "http://:p@example.org/",
            "http://example.org:25/",
            "http://example.org:22/",
            "javascript:1",
        ];
        for url in refused {
            assert!(!check(&rules, url), "{url}");
        }
        for url in ["http://example.org/", "https://example.org:8443/", "http://example.org:3000/"] {
            assert!(check(&rules, url), "{url}");
        }
    }

    #[test]
    fn a_pattern_that_can_fit_nothing_is_a_mistake() {
        for wrong in ["", "https://example.org", "example.org/path", "example.org:http", "a b"] {
            assert!(Rules::default().allow(wrong).is_err(), "{wrong}");
        }
    }
}
