//! A Restate server for one test.

#![allow(dead_code, reason = "each test uses a part of it")]

use std::{
    collections::BTreeSet,
    net::{SocketAddr, TcpListener},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::Mutex,
    time::Duration,
};

use agent_restate::Restate;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

/// Server on its own loopback ports, in a temporary folder.
pub(crate) struct Server {
    program: PathBuf,
    folder: tempfile::TempDir,
    child: Child,
    ingress: u16,
    admin: u16,
}

/// Returns the path of the server's program: `RESTATE_SERVER`, or that of the project's tools, or
/// one on the path.
pub(crate) fn program() -> Option<PathBuf> {
    let named = std::env::var_os("RESTATE_SERVER").map(PathBuf::from);
    let tools = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../target/tools/node_modules/@restatedev/restate-server-linux-x64/bin/restate-server");
    let path = std::env::var_os("PATH").unwrap_or_default();
    let on_path = std::env::split_paths(&path).map(|folder| folder.join("restate-server"));
    let found = named.into_iter().chain([tools]).chain(on_path).find(|path| path.is_file());
    if found.is_none() {
        println!("skipped: no restate-server");
    }
    found
}

/// Returns a free port that no other test of this process received: the kernel may return one
/// twice.
pub(crate) fn free_port() -> u16 {
    static GIVEN: Mutex<BTreeSet<u16>> = Mutex::new(BTreeSet::new());
    loop {
        let listener = TcpListener::bind("127.0.0.1:0").expect("loopback has ports");
        let port = listener.local_addr().expect("it has an address").port();
        if GIVEN.lock().expect("no panic").insert(port) {
            return port;
        }
    }
}

impl Server {
    /// Starts a server, if the program is installed.
    pub(crate) async fn start() -> Option<Self> {
        Self::start_trying("\"unlimited\"").await
    }

    /// Starts a server with this maximum number of attempts, unless its service sets its own.
    pub(crate) async fn start_trying(attempts: &str) -> Option<Self> {
        let program = program()?;
        let folder = tempfile::tempdir().expect("a folder");
        let [ingress, admin, node, tokio] = [free_port(), free_port(), free_port(), free_port()];
        let config = format!(
            r#"
disable-telemetry = true
roles = ["worker", "admin", "metadata-server", "log-server", "http-ingress"]
node-name = "n1"
base-dir = "{folder}"
bind-address = "127.0.0.1:{node}"
default-num-partitions = 4
rocksdb-total-memory-size = "128MB"
tokio-console-bind-address = "127.0.0.1:{tokio}"
listen-mode = "tcp"
[admin]
bind-address = "127.0.0.1:{admin}"
[ingress]
bind-address = "127.0.0.1:{ingress}"
[default-retry-policy]
initial-interval = "50ms"
exponentiation-factor = 1.5
max-attempts = {attempts}
max-interval = "200ms"
"#,
            folder = folder.path().join("data").display()
        );
        std::fs::write(folder.path().join("restate.toml"), config).expect("writes");
        let child = spawn(&program, folder.path());
        let server = Self { program, folder, child, ingress, admin };
        server.is_up().await;
        Some(server)
    }

    /// Waits until the server responds.
    pub(crate) async fn is_up(&self) {
        for (port, path) in [(self.ingress, "/restate/health"), (self.admin, "/health")] {
            let mut tries = 0;
            while !is_well(port, path).await.unwrap_or_default() {
                tries += 1;
                assert!(tries < 1_200, "the server does not come up: {}", self.log());
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        }
    }

    /// Kills the server with SIGKILL and restarts it in the same folder.
    pub(crate) async fn kill_and_start(&mut self) {
        self.kill();
        self.child = spawn(&self.program, self.folder.path());
        self.is_up().await;
    }

    /// Kills the server with SIGKILL.
    pub(crate) fn kill(&mut self) {
        self.child.kill().expect("it runs");
        self.child.wait().expect("it is ours");
    }

    /// Returns a client of the server.
    pub(crate) fn restate(&self) -> Restate {
        self.restate_of(agent_restate::DEFAULT_SERVICE)
    }

    /// Returns a client for a service of this name.
    pub(crate) fn restate_of(&self, service: &str) -> Restate {
        let admin = format!("http://127.0.0.1:{}", self.admin);
        Restate::builder(self.ingress()).admin(admin).service(service).build().expect("URLs")
    }

    /// Returns the engine URL for the options of the `agent` program.
    pub(crate) fn engine_url(&self) -> String {
        format!("restate://127.0.0.1:{}?admin=http://127.0.0.1:{}", self.ingress, self.admin)
    }

    pub(crate) fn ingress(&self) -> String {
        format!("http://127.0.0.1:{}", self.ingress)
    }

    /// Queries the server's introspection tables; returns rows as JSON.
    pub(crate) async fn query(&self, sql: &str) -> serde_json::Value {
        let query = serde_json::json!({"query": sql}).to_string();
        post(&format!("http://127.0.0.1:{}/query", self.admin), &query).await
    }

    /// Cancels an invocation, as the server's user interface does.
    pub(crate) async fn cancel(&self, invocation: &str) {
        self.ends(invocation, "cancel").await;
    }

    /// Kills an invocation.
    pub(crate) async fn kill_invocation(&self, invocation: &str) {
        self.ends(invocation, "kill").await;
    }

    async fn ends(&self, invocation: &str, how: &str) {
        let address = SocketAddr::from(([127, 0, 0, 1], self.admin));
        let head = format!("PATCH /invocations/{invocation}/{how} HTTP/1.1\r\nhost: {address}\r\nconnection: close");
        let answer = exchange(address, &format!("{head}\r\ncontent-length: 0\r\n\r\n")).await.expect("is answered");
        assert!(answer.starts_with("HTTP/1.1 20"), "{answer}");
    }

    /// Returns the last lines of the server's log.
    pub(crate) fn log(&self) -> String {
        let log = std::fs::read_to_string(self.folder.path().join("log")).unwrap_or_default();
        let lines: Vec<_> = log.lines().rev().take(30).collect();
        lines.into_iter().rev().collect::<Vec<_>>().join("\n")
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn spawn(program: &Path, folder: &Path) -> Child {
    let log = std::fs::OpenOptions::new().create(true).append(true).open(folder.join("log")).expect("a log");
    Command::new(program)
        .arg("--config-file")
        .arg(folder.join("restate.toml"))
        .current_dir(folder)
        .env("RUST_LOG", "warn")
        .stdout(log.try_clone().expect("a log"))
        .stderr(log)
        .stdin(Stdio::null())
        .spawn()
        .expect("the server starts")
}

/// Returns a free address.
pub(crate) fn free_address() -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], free_port()))
}

/// True if the server on the port reports that it is healthy.
async fn is_well(port: u16, path: &str) -> std::io::Result<bool> {
    let address = SocketAddr::from(([127, 0, 0, 1], port));
    let request = format!("GET {path} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n\r\n");
    Ok(exchange(address, &request).await?.starts_with("HTTP/1.1 200"))
}

/// Posts JSON and returns the JSON response; fails on an error status.
pub(crate) async fn post(url: &str, json: &str) -> serde_json::Value {
    let (address, path) = url.strip_prefix("http://").and_then(|url| url.split_once('/')).expect("a URL");
    // HTTP/1.0, so that the response is not chunked.
    let head = format!("POST /{path} HTTP/1.0\r\naccept: application/json\r\ncontent-type: application/json");
    let request = format!("{head}\r\ncontent-length: {}\r\n\r\n{json}", json.len());
    let answer = exchange(address.parse().expect("an address"), &request).await.expect("is answered");
    let (head, body) = answer.split_once("\r\n\r\n").unwrap_or_default();
    assert!(head.contains(" 200 "), "{answer}");
    serde_json::from_str(body).unwrap_or_else(|e| panic!("{e}: {answer}"))
}

async fn exchange(address: SocketAddr, request: &str) -> std::io::Result<String> {
    let mut stream = tokio::net::TcpStream::connect(address).await?;
    stream.write_all(request.as_bytes()).await?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await?;
    Ok(answer)
}
