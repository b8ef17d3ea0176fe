//! Third-party proxies, and connections through them.

use std::{
    io::Write,
    path::{Path, PathBuf},
    process::Stdio,
    sync::Arc,
    time::Duration,
};

use agent_llm::HttpTransportBuilder;
use tokio::{
    io::copy_bidirectional,
    net::{TcpListener, TcpStream},
    process::{Child, Command},
};

use super::server::Server;

/// A locally installed proxy, with the user `me` and the password `s3cret`.
pub(crate) struct Proxy {
    pub(crate) port: u16,
    _process: Child,
    _place: tempfile::TempDir,
}

impl Proxy {
    /// An HTTP proxy; `None` if it is not installed.
    pub(crate) async fn tinyproxy() -> Option<Self> {
        let started = |command: &mut Command, port: u16, place: &Path| {
            let settings = place.join("tinyproxy.conf");
            let text = format!("Port {port}\nListen 127.0.0.1\nAllow 127.0.0.1\nBasicAuth me s3cret\nMaxClients 20\n");
            std::fs::write(&settings, text).expect("writes");
            command.arg("-d").arg("-c").arg(settings);
        };
        Self::start("tinyproxy", started).await
    }

    /// A SOCKS5 proxy; `None` if it is not installed.
    pub(crate) async fn microsocks() -> Option<Self> {
        let started = |command: &mut Command, port: u16, _: &Path| {
            command.args(["-i", "127.0.0.1", "-u", "me", "-P", "s3cret", "-p"]).arg(port.to_string());
        };
        Self::start("microsocks", started).await
    }

    async fn start(name: &str, settle: impl FnOnce(&mut Command, u16, &Path)) -> Option<Self> {
        let program = program(name)?;
        let port = TcpListener::bind("127.0.0.1:0").await.expect("a port").local_addr().expect("an address").port();
        let place = tempfile::tempdir().expect("a directory");
        let mut command = Command::new(program);
        settle(&mut command, port, place.path());
        command.stdout(Stdio::null()).stderr(Stdio::null()).kill_on_drop(true);
        let process = command.spawn().expect("starts");
        for _ in 0..200 {
            if TcpStream::connect(("127.0.0.1", port)).await.is_ok() {
                return Some(Self { port, _process: process, _place: place });
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        panic!("{name} does not listen");
    }
}

fn program(name: &str) -> Option<PathBuf> {
    let found = ["/usr/bin", "/usr/sbin"].map(|dir| Path::new(dir).join(name)).into_iter().find(|path| path.exists());
    if found.is_none() {
        // `eprintln` is captured by the test harness.
        let _ = writeln!(std::io::stderr(), "skipped: no {name}");
    }
    found
}

/// A proxy's URL, and its processes.
pub(crate) struct Way {
    pub(crate) scheme: &'static str,
    port: u16,
    /// TLS terminator in front of the proxy.
    front: Option<Arc<Server>>,
    _proxy: Proxy,
}

impl Way {
    /// Returns connections of all kinds through the installed proxies.
    pub(crate) async fn all() -> Vec<Self> {
        let mut ways = Vec::new();
        for scheme in ["http", "https", "socks5", "socks5h"] {
            let proxy = if scheme.starts_with("http") { Proxy::tinyproxy().await } else { Proxy::microsocks().await };
            if let Some(proxy) = proxy {
                let front = if scheme == "https" { Some(front(proxy.port).await) } else { None };
                let port = front.as_ref().map_or(proxy.port, |front| front.port());
                ways.push(Self { scheme, port, front, _proxy: proxy });
            }
        }
        ways
    }

    pub(crate) fn url(&self, password: &str) -> String {
        format!("{}://me:{password}@localhost:{}", self.scheme, self.port)
    }

    /// Configures `transport` to use this proxy for all requests.
    pub(crate) fn of(&self, transport: HttpTransportBuilder, password: &str) -> HttpTransportBuilder {
        let transport = transport.proxy(self.url(password));
        match &self.front {
            Some(front) => transport.add_roots(front.identity.0.cert.pem()),
            None => transport,
        }
    }
}

/// Starts a TLS server in front of the one that listens at `port`.
async fn front(port: u16) -> Arc<Server> {
    let front = Arc::new(Server::start().await);
    let listening = front.clone();
    tokio::spawn(async move {
        loop {
            let Ok(mut client) = listening.accept().await else { continue };
            tokio::spawn(async move {
                let mut proxy = TcpStream::connect(("127.0.0.1", port)).await.expect("the proxy");
                let _ = copy_bidirectional(&mut client, &mut proxy).await;
            });
        }
    });
    front
}
