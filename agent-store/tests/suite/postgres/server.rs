//! A PostgreSQL server for the tests: a directory with a Unix socket, and a local port with TLS and
//! password authentication. Also a pooler in front of it, which assigns one of four connections to
//! each transaction.

use std::{
    env, fs,
    io::{BufRead, BufReader, Write},
    net::TcpListener,
    path::{Path, PathBuf},
    process::{ChildStdin, Command, Stdio},
    sync::{
        OnceLock,
        atomic::{AtomicU32, Ordering},
    },
};

use agent_store::{PostgresBuilder, PostgresJournal};
use tokio_postgres::{Client, NoTls};

/// Creates a cluster and runs it until its input ends: with the test binary, however that ends.
const SCRIPT: &str = r#"
trap '' INT
dir=$(mktemp -d) || exit 1
cd "$dir" || exit 1
umask 077
printf %s "$CERTIFICATE" >server.pem
printf %s "$KEY" >server.key
echo secret >password
"$0/initdb" -D data -U tests --auth-local trust --auth-host scram-sha-256 --pwfile password --no-sync --encoding UTF8 \
    --locale C >log 2>&1 || { cat log >&2; exit 1; }
"$0/postgres" -D data -k "$dir" -p "$1" -c listen_addresses=localhost -c ssl=on -c ssl_cert_file="$dir/server.pem" \
    -c ssl_key_file="$dir/server.key" -c fsync=off -c max_connections=200 >log 2>&1 &
server=$!
until "$0/pg_isready" -q -h "$dir" -p "$1"; do kill -0 $server || { cat log >&2; exit 1; }; sleep 0.1; done
PATH=$PATH:/usr/sbin
if command -v pgbouncer >/dev/null; then
    mkdir pool
    cat >pool.ini <<END
[databases]
postgres = host=$dir port=$1 user=tests
[pgbouncer]
listen_port = $1
unix_socket_dir = $dir/pool
auth_type = any
pool_mode = transaction
default_pool_size = 4
max_client_conn = 1000
END
    pgbouncer pool.ini >>log 2>&1 &
    pooler=$!
    until [ -S "pool/.s.PGSQL.$1" ]; do kill -0 $pooler || { cat log >&2; exit 1; }; sleep 0.1; done
fi
echo "$dir"
cat >/dev/null
[ -z "$pooler" ] || kill $pooler
kill -QUIT $server
wait
cd /
rm -rf "$dir"
"#;

/// The server, which ends when this process does.
pub(crate) struct Server {
    socket: String,
    port: u16,
    _until_closed: ChildStdin,
}

impl Server {
    /// Returns the server of this test binary; none if PostgreSQL is not installed, which is logged
    /// once.
    pub(crate) fn get() -> Option<&'static Self> {
        static SERVER: OnceLock<Option<Server>> = OnceLock::new();
        SERVER.get_or_init(Self::start).as_ref()
    }

    #[expect(clippy::zombie_processes, reason = "the shell ends after this process: it waits for its end")]
    fn start() -> Option<Self> {
        let Some(programs) = programs() else {
            // Not by a macro, whose output the test harness captures.
            let _ = writeln!(std::io::stderr(), "skipped: no postgres");
            return None;
        };
        // The server refuses to run as root.
        let mut command = match fs::metadata("/proc/self").is_ok_and(|own| is_root(&own)) {
            true => {
                let mut command = Command::new("setpriv");
                command.args(["--reuid=postgres", "--regid=postgres", "--clear-groups", "sh"]);
                command
            }
            false => Command::new("sh"),
        };
        let port = TcpListener::bind(("localhost", 0)).and_then(|free| free.local_addr()).expect("a free port").port();
        let command = command.args(["-c", SCRIPT]).arg(programs).arg(port.to_string()).current_dir("/");
        let command = command.env_remove("TMPDIR").env("CERTIFICATE", include_str!("tls/server.pem"));
        let command = command.env("KEY", include_str!("tls/server.key"));
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("a shell starts");
        let mut socket = String::new();
        BufReader::new(child.stdout.take().expect("is piped")).read_line(&mut socket).expect("reads");
        assert!(!socket.is_empty(), "the server did not start; it says why above");
        Some(Self { socket: socket.trim_end().to_owned(), port, _until_closed: child.stdin.take().expect("is piped") })
    }

    pub(crate) fn url(&self) -> String {
        format!("host={} port={} user=tests dbname=postgres", self.socket, self.port)
    }

    /// Returns the path of one of PostgreSQL's programs.
    pub(crate) fn program(&self, name: &str) -> PathBuf {
        programs().expect("it runs").join(name)
    }

    /// Returns the connection arguments for such a program.
    pub(crate) fn arguments(&self) -> [String; 6] {
        ["--host", &self.socket, "--port", &self.port.to_string(), "--username", "tests"].map(str::to_owned)
    }

    /// Returns the URL of the same database behind the pooler; none if PgBouncer is not installed,
    /// which is logged.
    pub(crate) fn pooled_url(&self) -> Option<String> {
        let socket = format!("{}/pool", self.socket);
        if !Path::new(&socket).is_dir() {
            let _ = writeln!(std::io::stderr(), "skipped: no pgbouncer");
            return None;
        }
        Some(format!("host={socket} port={} user=tests dbname=postgres", self.port))
    }

    /// Returns the address that the server listens on.
    pub(crate) fn address(&self) -> (&'static str, u16) {
        ("localhost", self.port)
    }

    /// Returns the URL of the same database over the network.
    pub(crate) fn network_url(&self, host: &str, settings: &str) -> String {
        format!("postgres://tests:secret@{host}:{}/postgres?{settings}", self.port)
    }

    /// Returns a schema name that no other test has.
    pub(crate) fn schema() -> String {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        format!("Test \"{}\"", COUNT.fetch_add(1, Ordering::SeqCst))
    }
}

fn is_root(own: &fs::Metadata) -> bool {
    std::os::unix::fs::MetadataExt::uid(own) == 0
}

/// Returns the folder of the newest installed server's programs.
fn programs() -> Option<PathBuf> {
    let debian = fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten().map(|e| e.path().join("bin"));
    let path = env::var_os("PATH").unwrap_or_default();
    let mut found: Vec<_> = debian.chain(env::split_paths(&path)).filter(|dir| has_server(dir)).collect();
    found.sort();
    found.pop()
}

fn has_server(dir: &Path) -> bool {
    ["initdb", "postgres", "pg_isready"].iter().all(|program| dir.join(program).is_file())
}

/// Place for a journal.
pub(crate) struct Place {
    pub(crate) url: String,
    pub(crate) schema: String,
}

impl Place {
    pub(crate) fn new() -> Option<Self> {
        Some(Self { url: Server::get()?.url(), schema: Server::schema() })
    }

    pub(crate) fn builder(&self) -> PostgresBuilder {
        PostgresJournal::builder(&self.url).schema(&self.schema)
    }

    pub(crate) async fn open(&self) -> PostgresJournal {
        self.builder().connect().await.expect("connects")
    }

    /// Opens a connection like another program.
    pub(crate) async fn client(&self) -> Client {
        let (client, connection) = tokio_postgres::connect(&self.url, NoTls).await.expect("connects");
        drop(tokio::spawn(connection));
        let schema = self.schema.replace('"', "\"\"");
        client.batch_execute(&format!("SET search_path TO \"{schema}\"")).await.expect("sets");
        client
    }

    /// Closes the connections of the journals in this schema, like a network failure or a server
    /// restart.
    pub(crate) async fn cut(&self) {
        let name = format!("application_name = 'agent-journal {}'", self.schema.replace('\'', "''"));
        let cut = format!("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE {name}");
        self.execute(&cut).await;
    }

    pub(crate) async fn execute(&self, sql: &str) {
        self.client().await.batch_execute(sql).await.expect("executes");
    }

    pub(crate) async fn count(&self, sql: &str) -> i64 {
        self.client().await.query_one(sql, &[]).await.expect("a number").get(0)
    }
}
