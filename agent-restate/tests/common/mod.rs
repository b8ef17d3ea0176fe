//! A Restate server of the test's own.

#![allow(dead_code, reason = "each test uses a part of it")]

use std::{
    net::{SocketAddr, TcpListener},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::Duration,
};

use agent_restate::Restate;

/// A server on ports of its own, on loopback, in a folder that is deleted with it.
pub struct Server {
    program: PathBuf,
    folder: tempfile::TempDir,
    child: Child,
    ingress: u16,
    admin: u16,
}

/// The server's program: the one that `RESTATE_SERVER` names, that of the project's tools, or one on the path.
pub fn program() -> Option<PathBuf> {
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

/// A port that nobody has now.
pub fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("loopback has ports");
    listener.local_addr().expect("it has an address").port()
}

impl Server {
    /// Starts one, if there is a program.
    pub async fn start() -> Option<Self> {
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
max-attempts = "unlimited"
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

    /// Waits until it answers.
    pub async fn is_up(&self) {
        let url = [(self.ingress, "restate/health"), (self.admin, "health")];
        for (port, path) in url {
            let client = reqwest::Client::new();
            let mut tries = 0;
            while !client
                .get(format!("http://127.0.0.1:{port}/{path}"))
                .send()
                .await
                .is_ok_and(|answer| answer.status().is_success())
            {
                tries += 1;
                assert!(tries < 600, "the server does not come up: {}", self.log());
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        }
    }

    /// Kills it with SIGKILL, and starts it again in its folder.
    pub async fn kill_and_start(&mut self) {
        self.kill();
        self.child = spawn(&self.program, self.folder.path());
        self.is_up().await;
    }

    /// Kills it with SIGKILL.
    pub fn kill(&mut self) {
        self.child.kill().expect("it runs");
        self.child.wait().expect("it is ours");
    }

    /// The server, as the crate sees it.
    pub fn restate(&self) -> Restate {
        Restate::builder(self.ingress()).admin(format!("http://127.0.0.1:{}", self.admin)).build().expect("URLs")
    }

    pub fn ingress(&self) -> String {
        format!("http://127.0.0.1:{}", self.ingress)
    }

    /// The last lines that it logged.
    pub fn log(&self) -> String {
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

/// An address that nobody has now.
pub fn free_address() -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], free_port()))
}
