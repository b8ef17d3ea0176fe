//! Proxy selection and proxy connections.

use std::{fmt, net::IpAddr};

use agent_core::{Error, Result, Retry};
use bytes::Bytes;
use http::{HeaderValue, Request, Uri, header, uri::Scheme};
use http_body_util::Empty;
use hyper::client::conn::http1;
use hyper_util::{
    client::{
        legacy::connect::{dns::Name, proxy::SocksV5},
        proxy::matcher::{Intercept, Matcher},
    },
    rt::TokioIo,
};
use tower::ServiceExt;

use super::{
    address::Address,
    connect::{Stream, Tcp},
    failure::{Part, root_cause, unreachable},
    progress::{Progress, Resolver},
};

/// Selects the proxy of a request.
#[derive(Clone, Default)]
pub(super) struct Proxies {
    /// Proxies for URLs with and without TLS.
    https: Option<String>,
    http: Option<String>,
    /// Exceptions, in the format of `NO_PROXY`.
    except: String,
    /// True if servers on this machine are called without a proxy.
    except_loopback: bool,
    /// Error in the environment's settings, reported on use.
    invalid: Option<String>,
}

impl Proxies {
    pub(super) fn none() -> Self {
        Self::default()
    }

    /// Sends all requests through the proxy at `url`.
    pub(super) fn all(url: &str) -> Result<Self> {
        check(url).map_err(|why| Error::config(format!("the proxy {why}")))?;
        Ok(Self { https: Some(url.to_owned()), http: Some(url.to_owned()), ..Self::default() })
    }

    /// Reads the settings from the environment; `variable` reads one variable.
    pub(super) fn from_env(variable: impl Fn(&str) -> Option<String>) -> Self {
        let first = |names: &[&'static str]| {
            let set = |name: &&'static str| variable(name).filter(|value| !value.trim().is_empty());
            names.iter().find_map(|name| Some((*name, set(name)?)))
        };
        let all = || first(&["all_proxy", "ALL_PROXY"]);
        // In a CGI program, HTTP_PROXY contains the client's `Proxy` header and is not trusted.
        let is_cgi = variable("REQUEST_METHOD").is_some();
        let http = first(if is_cgi { &["http_proxy"] } else { &["http_proxy", "HTTP_PROXY"] }).or_else(all);
        let https = first(&["https_proxy", "HTTPS_PROXY"]).or_else(all);
        let why = |(name, url): &(&str, String)| check(url).err().map(|why| format!("the proxy of {name} {why}"));
        let invalid = http.as_ref().and_then(why).or_else(|| https.as_ref().and_then(why));
        Self {
            https: https.map(|(_, url)| url),
            http: http.map(|(_, url)| url),
            except: first(&["no_proxy", "NO_PROXY"]).map(|(_, list)| list).unwrap_or_default(),
            except_loopback: true,
            invalid,
        }
    }

    /// Returns the proxy for requests to `uri`, if any.
    ///
    /// # Errors
    /// [`Config`](agent_core::ErrorKind::Config) if the environment contains an invalid proxy URL.
    pub(super) fn of(&self, uri: &Uri) -> Result<Option<Proxy>> {
        let is_https = uri.scheme() == Some(&Scheme::HTTPS);
        let Some(url) = (if is_https { &self.https } else { &self.http }) else { return Ok(None) };
        if self.except_loopback && uri.host().is_some_and(is_loopback) {
            return Ok(None);
        }
        if let Some(invalid) = &self.invalid {
            return Err(Error::config(invalid.clone()));
        }
        let port = uri.port_u16().unwrap_or(if is_https { 443 } else { 80 });
        let except: Vec<_> = self.except.split([',', ' ']).filter_map(|entry| at_port(entry, port)).collect();
        let matcher = Matcher::builder().all(url.as_str()).no(except.join(",")).build();
        Ok(matcher.intercept(uri).map(Proxy::new))
    }
}

impl fmt::Debug for Proxies {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = |url: &Option<String>| url.as_deref().and_then(intercept).map(|found| Proxy::new(found).name());
        f.debug_struct("Proxies")
            .field("https", &name(&self.https))
            .field("http", &name(&self.http))
            .field("except", &self.except)
            .finish_non_exhaustive()
    }
}

/// Returns a `NO_PROXY` entry without its port, if it applies to this port.
fn at_port(entry: &str, port: u16) -> Option<&str> {
    let is_address = |host: &str| host.parse::<IpAddr>().is_ok() || host.contains('/');
    let (host, of) = match entry.rsplit_once(':') {
        Some((host, of)) if !is_address(entry) => (host.trim_matches(['[', ']']), Some(of.parse().ok()?)),
        _ => (entry.trim_matches(['[', ']']), None),
    };
    // `*.example.com` is accepted as a synonym of `.example.com`.
    let host = if host.len() > 1 { host.strip_prefix('*').unwrap_or(host) } else { host };
    of.is_none_or(|of: u16| of == port).then_some(host)
}

/// Returns true for names and addresses of this machine.
pub(super) fn is_loopback(host: &str) -> bool {
    let host = host.trim_matches(['[', ']']);
    let is_local = |name: &str| name == "localhost" || name.ends_with(".localhost");
    host.parse().map_or_else(|_| is_local(&host.to_ascii_lowercase()), |ip: IpAddr| ip.to_canonical().is_loopback())
}

fn intercept(url: &str) -> Option<Intercept> {
    Matcher::builder().all(url).build().intercept(&Uri::from_static("http://any/"))
}

/// Returns the reason why `url` is not a valid proxy URL, without quoting its password.
fn check(url: &str) -> Result<(), &'static str> {
    match intercept(url) {
        Some(found) if ["http", "https", "socks5", "socks5h"].contains(&scheme(&found)) => Ok(()),
        Some(_) => Err("has a scheme that is none of http, https, socks5 and socks5h"),
        None => Err("is no address like http://user:password@host:port, with http, https, socks5 or socks5h"),
    }
}

fn scheme(found: &Intercept) -> &str {
    found.uri().scheme_str().unwrap_or_default()
}

/// A proxy.
pub(super) struct Proxy {
    found: Intercept,
    /// Includes the port.
    uri: Uri,
}

impl Proxy {
    fn new(found: Intercept) -> Self {
        let usual = match scheme(&found) {
            "http" => 80,
            "https" => 443,
            _ => 1080,
        };
        let mut parts = found.uri().clone().into_parts();
        let host = found.uri().host().unwrap_or_default();
        let port = found.uri().port_u16().unwrap_or(usual);
        parts.authority = format!("{host}:{port}").parse().ok();
        let uri = Uri::from_parts(parts).unwrap_or_else(|_| found.uri().clone());
        Self { found, uri }
    }

    pub(super) fn uri(&self) -> &Uri {
        &self.uri
    }

    /// Returns the URL for messages, without user and password.
    pub(super) fn name(&self) -> String {
        format!("{}://{}", scheme(&self.found), self.uri.authority().map_or("", |a| a.as_str()))
    }

    pub(super) fn has_tls(&self) -> bool {
        scheme(&self.found) == "https"
    }

    /// Returns true if the proxy forwards requests without TLS.
    pub(super) fn forwards(&self) -> bool {
        matches!(scheme(&self.found), "http" | "https")
    }

    /// Returns the value of the `proxy-authorization` header.
    pub(super) fn login(&self) -> Option<&HeaderValue> {
        self.found.basic_auth()
    }

    /// Opens a tunnel to the server over `stream`, which is connected to an HTTP proxy.
    pub(super) async fn lead(&self, stream: Stream, address: &Address) -> Result<Stream> {
        if address.has_tls() { self.tunnel(stream, address).await } else { Ok(stream) }
    }

    async fn tunnel(&self, stream: Stream, address: &Address) -> Result<Stream> {
        let (host, port) = address.endpoint();
        let there = format!("{host}:{port}");
        let broken = |e: hyper::Error| {
            unreachable(Part::Proxy, format!("its proxy {} broke off: {}", self.name(), root_cause(&e))).with_source(e)
        };
        let mut request = Request::connect(&there).header(header::HOST, &there);
        if let Some(login) = self.login() {
            request = request.header(header::PROXY_AUTHORIZATION, login);
        }
        let request = request.body(Empty::<Bytes>::new()).map_err(|e| Error::config("the address").with_source(e))?;
        let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await.map_err(broken)?;
        tokio::spawn(connection.with_upgrades());
        let answer = sender.send_request(request).await.map_err(broken)?;
        let status = answer.status();
        if !status.is_success() {
            let refused = unreachable(Part::Proxy, format!("its proxy {} answered {status}", self.name()));
            let is_hopeless = status.is_client_error();
            return Err(if is_hopeless { refused.with_retry(Retry::Permanent) } else { refused });
        }
        Ok(Box::new(TokioIo::new(hyper::upgrade::on(answer).await.map_err(broken)?)))
    }

    /// Connects to the server through a SOCKS proxy.
    pub(super) async fn connect_by_socks(&self, tcp: Tcp, address: &Address, progress: &Progress) -> Result<Stream> {
        let (host, port) = address.endpoint();
        let host = match scheme(&self.found) {
            "socks5" => resolved(host, progress).await?,
            _ => host.to_owned(),
        };
        let there = Uri::builder().scheme("https").authority(format!("{host}:{port}")).path_and_query("/").build();
        let there = there.map_err(|e| Error::config("the address").with_source(e))?;
        let mut socks = SocksV5::new(self.uri.clone(), tcp);
        if let Some((user, password)) = self.found.raw_auth() {
            socks = socks.with_auth(user.to_owned(), password.to_owned());
        }
        match socks.oneshot(there).await {
            Ok(led) => Ok(Box::new(led.into_inner())),
            Err(e) => Err(unreachable(Part::Proxy, format!("its proxy {} did not lead there: {e}", self.name()))),
        }
    }
}

/// Resolves a name to its first address, formatted for a URL; an IP address is returned unchanged.
async fn resolved(host: &str, progress: &Progress) -> Result<String> {
    let host = host.trim_matches(['[', ']']);
    let no_name = |why: String| unreachable(Part::Name, format!("its name has no address: {why}"));
    let name: Name = host.parse().map_err(|e| no_name(format!("{e}")))?;
    let found = Resolver::new(progress.clone()).oneshot(name).await;
    let first = found.map_err(|e| no_name(e.to_string()).with_source(e))?.next();
    match first.ok_or_else(|| no_name("none was found".into()))?.ip() {
        IpAddr::V4(ip) => Ok(ip.to_string()),
        IpAddr::V6(ip) => Ok(format!("[{ip}]")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Builds the proxies of an environment.
    fn environment(variables: &'static [(&'static str, &'static str)]) -> Proxies {
        Proxies::from_env(|name| variables.iter().find(|(set, _)| *set == name).map(|(_, value)| (*value).to_owned()))
    }

    fn way(proxies: &Proxies, uri: &'static str) -> String {
        let proxy = proxies.of(&Uri::from_static(uri)).expect("a way");
        proxy.map_or_else(|| "direct".to_owned(), |proxy| proxy.name())
    }

    #[test]
    fn each_scheme_has_the_proxy_that_the_environment_names_for_it() {
        let both = environment(&[("https_proxy", "http://a"), ("HTTP_PROXY", "b:3128"), ("ALL_PROXY", "socks5h://c")]);
        assert_eq!(way(&both, "https://h/"), "http://a:80");
        assert_eq!(way(&both, "http://h/"), "http://b:3128");
        let all = environment(&[("ALL_PROXY", "socks5h://c"), ("HTTPS_PROXY", "")]);
        assert_eq!(way(&all, "https://h/"), "socks5h://c:1080");
        assert_eq!(way(&environment(&[]), "https://h/"), "direct");
    }

    #[test]
    fn what_no_proxy_lists_is_reached_directly() {
        let list = "example.com, .dot.org,*.star.net,10.0.0.0/8 ::1,fd00::/8,port.com:8443,[fe80::1]:443";
        let listed: &'static [_] = Box::leak(Box::new([("https_proxy", "http://p"), ("no_proxy", list)]));
        let proxies = environment(listed);
        for uri in [
            "https://example.com/",
            "https://a.EXAMPLE.com/",
            "https://a.dot.org/",
            "https://a.star.net/",
            "https://10.2.3.4/",
            "https://[fd00::2]/",
            "https://port.com:8443/",
            "https://[fe80::1]/",
        ] {
            assert_eq!(way(&proxies, uri), "direct", "{uri}");
        }
        for uri in ["https://notexample.com/", "https://11.2.3.4/", "https://port.com/", "https://[fe80::1]:8443/"] {
            assert_eq!(way(&proxies, uri), "http://p:80", "{uri}");
        }
        assert_eq!(way(&environment(&[("ALL_PROXY", "http://p"), ("NO_PROXY", "*")]), "https://h/"), "direct");
    }

    #[test]
    fn this_machine_is_reached_directly_unless_a_program_says_otherwise() {
        let (environment, program) =
            (environment(&[("ALL_PROXY", "http://p")]), Proxies::all("http://p").expect("valid"));
        for uri in ["http://localhost:1/", "http://a.LOCALHOST/", "http://127.9.9.9/", "http://[::1]/"] {
            assert_eq!(way(&environment, uri), "direct", "{uri}");
            assert_eq!(way(&program, uri), "http://p:80", "{uri}");
        }
    }

    #[test]
    fn what_a_stranger_may_have_set_is_no_proxy() {
        let cgi = environment(&[("HTTP_PROXY", "http://evil"), ("REQUEST_METHOD", "GET")]);
        assert_eq!(way(&cgi, "http://h/"), "direct");
    }

    #[test]
    fn a_proxy_that_cannot_be_one_is_named_without_its_password() {
        let error = Proxies::all("ftp://me:secret@p").expect_err("no proxy");
        assert!(error.message().contains("socks5") && !error.to_string().contains("secret"), "{error}");
        let proxies = environment(&[("HTTPS_PROXY", "http://me:secret@")]);
        let error = proxies.of(&Uri::from_static("https://h/")).err().expect("no proxy");
        assert!(error.message().contains("HTTPS_PROXY") && !error.to_string().contains("secret"), "{error}");
        let valid = Proxies::all("http://me:secret@p").expect("valid");
        assert!(!format!("{valid:?}").contains("secret"), "{valid:?}");
    }
}
