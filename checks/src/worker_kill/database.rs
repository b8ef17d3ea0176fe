//! PostgreSQL server that the check starts, stops and restarts.

use std::{
    env, fs, io,
    net::TcpListener,
    os::unix::fs::MetadataExt,
    path::PathBuf,
    process::{Command, Stdio},
};

/// Server with its own directory, on a local port. Stopped when dropped.
pub(crate) struct Database {
    programs: PathBuf,
    dir: PathBuf,
    port: u16,
    fsync: &'static str,
}

impl Database {
    /// Creates a cluster and starts it; `None` if PostgreSQL is not installed. Commits are not
    /// synced to disk: only processes crash, not the operating system.
    pub(crate) fn start() -> io::Result<Option<Self>> {
        Self::start_with("off")
    }

    /// Like [`start`](Self::start), with durable commits as in production.
    pub(crate) fn start_durable() -> io::Result<Option<Self>> {
        Self::start_with("on")
    }

    fn start_with(fsync: &'static str) -> io::Result<Option<Self>> {
        let Some(programs) = programs() else { return Ok(None) };
        let made = command("mktemp").args(["-d", "-t", "workers-XXXXXX"]).current_dir("/").output()?;
        let dir = PathBuf::from(String::from_utf8_lossy(&made.stdout).trim_end());
        let port = TcpListener::bind(("127.0.0.1", 0))?.local_addr()?.port();
        let database = Self { programs, dir, port, fsync };
        let data = database.data();
        database.run(
            "initdb",
            &["-D", &data, "-U", "tests", "--auth", "trust", "--no-sync", "--encoding", "UTF8", "--locale", "C"],
        )?;
        database.up()?;
        Ok(Some(database))
    }

    /// Starts the server, and waits until it accepts connections.
    pub(crate) fn up(&self) -> io::Result<()> {
        let options = format!(
            "-p {} -k {} -c listen_addresses=127.0.0.1 -c fsync={} -c max_connections=300",
            self.port,
            self.dir.display(),
            self.fsync
        );
        let log = self.dir.join("log").display().to_string();
        self.run("pg_ctl", &["-D", &self.data(), "-o", &options, "-l", &log, "-w", "-t", "60", "start"])
    }

    /// Stops the server as if its power failed.
    pub(crate) fn down(&self) -> io::Result<()> {
        self.run("pg_ctl", &["-D", &self.data(), "-m", "immediate", "-w", "stop"])
    }

    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    /// Returns the URL of the database via a port.
    pub(crate) fn url(&self, port: u16) -> String {
        format!("host=127.0.0.1 port={port} user=tests dbname=postgres sslmode=disable")
    }

    /// Runs one of the server's programs.
    pub(crate) fn run(&self, program: &str, arguments: &[&str]) -> io::Result<()> {
        let status = command(self.programs.join(program).as_os_str())
            .args(arguments)
            .current_dir(&self.dir)
            .stdout(Stdio::null())
            .status()?;
        if status.success() { Ok(()) } else { Err(io::Error::other(format!("{program} failed: {status}"))) }
    }

    /// Returns the output of one of the server's programs.
    pub(crate) fn output(&self, program: &str, arguments: &[&str]) -> io::Result<String> {
        let output =
            command(self.programs.join(program).as_os_str()).args(arguments).current_dir(&self.dir).output()?;
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }

    fn data(&self) -> String {
        self.dir.join("data").display().to_string()
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        let _ = self.down();
        let _ = fs::remove_dir_all(&self.dir);
    }
}

/// Returns a command with a user that the server accepts: it refuses to run as root.
fn command(program: impl AsRef<std::ffi::OsStr>) -> Command {
    if fs::metadata("/proc/self").is_ok_and(|own| own.uid() == 0) {
        let mut command = Command::new("setpriv");
        command
            .args(["--reuid=postgres", "--regid=postgres", "--clear-groups", "--"])
            .arg(program)
            .env_remove("TMPDIR");
        return command;
    }
    Command::new(program)
}

/// Returns the program directory of the newest installed server.
fn programs() -> Option<PathBuf> {
    let debian =
        fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten().map(|entry| entry.path().join("bin"));
    let path = env::var_os("PATH").unwrap_or_default();
    let has_all = |dir: &PathBuf| {
        ["initdb", "pg_ctl", "pgbench", "postgres", "psql"].iter().all(|program| dir.join(program).is_file())
    };
    let mut found: Vec<_> = debian.chain(env::split_paths(&path)).filter(has_all).collect();
    found.sort();
    found.pop()
}
