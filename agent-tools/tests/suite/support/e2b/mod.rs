//! Service with E2B's API, over real sockets, whose sandboxes are directories of this machine and
//! whose programs run for real. Nothing is isolated: it is for tests of the API only.

mod daemon;
pub(crate) mod programs;

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    process::Command,
    sync::{Arc, Mutex, MutexGuard},
    time::{Duration, Instant},
};

use agent_tools::sandbox::{E2bSandbox, E2bSandboxBuilder};
use bytes::Bytes;
use http_body_util::{BodyExt, Collected, Full, combinators::UnsyncBoxBody};
use hyper::{
    Method, Request, Response, StatusCode,
    body::Incoming,
    header::{HOST, LOCATION},
    http::request::Parts,
    server::conn::http1,
    service::service_fn,
};
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::net::TcpListener;

use self::programs::Program;

pub(crate) const KEY: &str = "e2b_0123456789abcdef";

pub(crate) type Answer = Response<UnsyncBoxBody<Bytes, std::io::Error>>;

/// Replaces the regular response to a request.
pub(crate) type Trouble = dyn Fn(&str) -> Option<Answer> + Send + Sync;

/// Simulated service. Cheap to clone; its files are removed with the last clone.
#[derive(Clone)]
pub(crate) struct Service {
    pub(crate) port: u16,
    /// Directory that contains the sandboxes' directories.
    pub(crate) base: Arc<TempDir>,
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    port: u16,
    made: usize,
    machines: BTreeMap<String, Machine>,
    connections: usize,
    /// Received requests: method, path, and the names of the secrets that they carried.
    seen: Vec<String>,
    trouble: Option<Box<Trouble>>,
}

/// Simulated sandbox.
struct Machine {
    id: String,
    token: String,
    metadata: Value,
    env: Value,
    network: Value,
    ends: Instant,
    pauses_itself: bool,
    is_paused: bool,
    programs: BTreeMap<u32, Arc<Program>>,
}

impl Service {
    pub(crate) async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let port = listener.local_addr().expect("bound").port();
        let base = Arc::new(tempfile::tempdir().expect("a directory"));
        let state = Arc::new(Mutex::new(State { port, ..State::default() }));
        let service = Self { port, base, state };
        let serving = service.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let service = serving.clone();
                service.state().connections += 1;
                let answer = service_fn(move |request| {
                    let service = service.clone();
                    async move { Ok::<_, std::convert::Infallible>(service.answer(request).await) }
                });
                tokio::spawn(http1::Builder::new().serve_connection(TokioIo::new(stream), answer));
            }
        });
        service
    }

    pub(crate) fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// Returns a builder for a sandbox of this service, with its own directory.
    pub(crate) fn builder(&self, template: &str) -> E2bSandboxBuilder {
        let root = tempfile::Builder::new().tempdir_in(self.base.path()).expect("a directory").keep();
        let root = root.join("root").to_str().expect("is text").to_owned();
        let builder = E2bSandbox::builder(template, KEY).api_url(self.url()).sandbox_url(self.url());
        builder.root(root.as_str()).metadata("root", root)
    }

    pub(crate) async fn sandbox(&self) -> E2bSandbox {
        self.builder("base").build().await.expect("starts")
    }

    /// Responds with `trouble`'s response where it returns one.
    pub(crate) fn trouble(&self, trouble: impl Fn(&str) -> Option<Answer> + Send + Sync + 'static) {
        self.state().trouble = Some(Box::new(trouble));
    }

    /// Returns the number of accepted connections.
    pub(crate) fn connections(&self) -> usize {
        self.state().connections
    }

    pub(crate) fn seen(&self) -> Vec<String> {
        self.state().seen.clone()
    }

    /// Lets the lease of a sandbox expire.
    pub(crate) fn end_lease(&self, id: &str) {
        self.state().machines.get_mut(id).expect("is there").ends = Instant::now();
    }

    /// Returns whether a sandbox is paused; `None` if it does not exist.
    pub(crate) fn is_paused(&self, id: &str) -> Option<bool> {
        let mut state = self.state();
        state.expire();
        state.machines.get(id).map(|machine| machine.is_paused)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no panic")
    }

    async fn answer(&self, request: Request<Incoming>) -> Answer {
        let (head, body) = request.into_parts();
        let body = body.collect().await.map(Collected::to_bytes).unwrap_or_default();
        let header = |name: &str| head.headers.get(name).and_then(|value| value.to_str().ok());
        if let Some(answer) = self.refusal(&head) {
            return answer;
        }
        let (path, query) = (head.uri.path(), head.uri.query().unwrap_or_default());
        let Some(id) = header("e2b-sandbox-id") else {
            return self.control(&head.method, path, query, &serde_json::from_slice(&body).unwrap_or_default());
        };
        match path {
            "/files" => daemon::files(&head.method, query, header("content-type").unwrap_or_default(), &body),
            path if path.starts_with("/filesystem.") => daemon::filesystem(path, &body),
            path => self.program(id, path, &body).await,
        }
    }

    /// Records the request; returns the reason why it is rejected.
    fn refusal(&self, head: &Parts) -> Option<Answer> {
        let header = |name: &str| head.headers.get(name).and_then(|value| value.to_str().ok());
        let line = format!("{} {}", head.method, head.uri);
        let mut state = self.state();
        let secrets = ["x-api-key", "x-access-token"].into_iter().filter(|name| head.headers.contains_key(*name));
        let noted = format!("{line} {}", secrets.collect::<Vec<_>>().join(" "));
        state.seen.push(noted);
        assert!(head.headers.contains_key(HOST));
        if let Some(answer) = state.trouble.as_ref().and_then(|trouble| trouble(&line)) {
            return Some(answer);
        }
        state.expire();
        let Some(id) = header("e2b-sandbox-id") else {
            return (header("x-api-key") != Some(KEY)).then(|| refused(401, "invalid API key"));
        };
        match state.machines.get(id) {
            None => Some(refused(502, "The sandbox was not found")),
            Some(machine) if machine.is_paused => Some(refused(502, "The sandbox is paused")),
            Some(machine) if header("x-access-token") != Some(&*machine.token) => Some(refused(401, "invalid token")),
            Some(_) => None,
        }
    }

    fn control(&self, method: &Method, path: &str, query: &str, body: &Value) -> Answer {
        let mut state = self.state();
        let parts: Vec<_> = path.trim_start_matches('/').split('/').collect();
        match (method.as_str(), &*parts) {
            ("POST", ["sandboxes"]) => state.create(body),
            ("GET", ["v2", "sandboxes"]) => state.list(query),
            (_, ["sandboxes", id, what @ ..]) if state.machines.contains_key(*id) => {
                let what = what.first().copied().unwrap_or_default();
                state.of_machine(method, id, what, body, &self.base.path().join(format!("snapshot-{id}")))
            }
            _ => refused(404, "not found"),
        }
    }
}

impl State {
    fn expire(&mut self) {
        let now = Instant::now();
        let ended: Vec<_> = self.machines.iter().filter(|(_, one)| one.ends <= now).map(|(id, _)| id.clone()).collect();
        for id in ended {
            let machine = self.machines.get_mut(&id).expect("is there");
            if !machine.pauses_itself {
                self.machines.remove(&id);
            } else if !machine.is_paused {
                machine.pause(true);
            }
        }
    }

    fn create(&mut self, body: &Value) -> Answer {
        let template = PathBuf::from(body["templateID"].as_str().expect("is said"));
        let root = body["metadata"]["root"].as_str().unwrap_or_default();
        if template.is_absolute() {
            let copied = Command::new("cp").arg("-a").arg(&template).arg(root).status().expect("runs");
            assert!(copied.success());
        } else if template.to_str() != Some("base") {
            return refused(400, "template 'nowhere' not found");
        }
        self.made += 1;
        let id = format!("i{}x{}", self.made, self.port);
        let machine = Machine {
            id: id.clone(),
            token: format!("token-of-{id}"),
            metadata: body["metadata"].clone(),
            env: body["envVars"].clone(),
            network: body["allow_internet_access"].clone(),
            ends: ends(body),
            pauses_itself: body["autoPause"] == true,
            is_paused: false,
            programs: BTreeMap::new(),
        };
        assert_eq!(body["secure"], true);
        let made = machine.made(&id);
        self.machines.insert(id, machine);
        json_answer(201, &made)
    }

    fn of_machine(&mut self, method: &Method, id: &str, what: &str, body: &Value, snapshot: &Path) -> Answer {
        let ends = body.get("timeout").map(|_| ends(body));
        let machine = self.machines.get_mut(id).expect("was looked for");
        match (method.as_str(), what) {
            ("GET", "") => json_answer(200, &json!({"memoryMB": 512, "allowInternetAccess": machine.network})),
            ("DELETE", "") => {
                self.machines.remove(id);
                json_answer(204, &Value::Null)
            }
            ("POST", "timeout") if !machine.is_paused => {
                machine.ends = ends.expect("is said");
                json_answer(204, &Value::Null)
            }
            ("POST", "pause") if machine.is_paused => refused(409, "is paused already"),
            ("POST", "pause") => {
                machine.pause(true);
                json_answer(204, &Value::Null)
            }
            ("POST", "connect") => {
                machine.ends = machine.ends.max(ends.expect("is said"));
                if machine.is_paused {
                    machine.pause(false);
                    machine.token += "-again";
                }
                json_answer(200, &machine.made(id))
            }
            ("POST", "snapshots") => {
                let root = machine.metadata["root"].as_str().expect("is said");
                let copied = Command::new("cp").arg("-a").arg(root).arg(snapshot).status().expect("runs");
                assert!(copied.success());
                json_answer(201, &json!({"snapshotID": snapshot, "names": []}))
            }
            _ => refused(404, "not found"),
        }
    }

    /// Returns one sandbox per page.
    fn list(&self, query: &str) -> Answer {
        let query: BTreeMap<_, _> = url::form_urlencoded::parse(query.as_bytes()).into_owned().collect();
        let wanted: Vec<_> = url::form_urlencoded::parse(query["metadata"].as_bytes()).into_owned().collect();
        let has = |machine: &Machine| wanted.iter().all(|(name, value)| machine.metadata[name] == **value);
        let found: Vec<_> = self.machines.iter().filter(|(_, machine)| has(machine)).collect();
        let at = query.get("nextToken").and_then(|next| next.parse().ok()).unwrap_or(0_usize);
        let page: Vec<_> = found.iter().skip(at).take(1).collect();
        let page: Vec<_> =
            page.iter().map(|(id, machine)| json!({"sandboxID": id, "metadata": machine.metadata})).collect();
        let mut answer = json_answer(200, &page.into());
        if at + 1 < found.len() {
            answer.headers_mut().insert("x-next-token", (at + 1).into());
        }
        answer
    }
}

/// Returns the expiry of a lease that starts now.
fn ends(body: &Value) -> Instant {
    Instant::now() + Duration::from_secs(body["timeout"].as_u64().expect("is said"))
}

impl Machine {
    fn made(&self, id: &str) -> Value {
        json!({"sandboxID": id, "envdAccessToken": self.token, "domain": null, "templateID": "base", "envdVersion": "9"})
    }

    /// Closes all connections of a paused machine.
    fn pause(&mut self, halts: bool) {
        self.is_paused = halts;
        for program in self.programs.values() {
            program.signal(if halts { "STOP" } else { "CONT" });
            if halts {
                program.drop_follower();
            }
        }
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        // Its temporary directory is on this machine.
        drop(std::fs::remove_dir_all(format!("/tmp/agent-{}", self.id)));
        for program in self.programs.values() {
            program.signal("KILL");
        }
    }
}

pub(crate) fn json_answer(status: u16, body: &Value) -> Answer {
    let bytes = if body.is_null() { Vec::new() } else { body.to_string().into_bytes() };
    bytes_answer(status, "application/json", bytes)
}

pub(crate) fn refused(status: u16, message: &str) -> Answer {
    json_answer(status, &json!({"code": status, "message": message}))
}

pub(crate) fn redirect(to: &str) -> Answer {
    let mut answer = refused(307, "elsewhere");
    answer.headers_mut().insert(LOCATION, to.parse().expect("is a header"));
    answer
}

pub(crate) fn bytes_answer(status: u16, kind: &str, bytes: impl Into<Bytes>) -> Answer {
    let body = Full::new(bytes.into()).map_err(|never| match never {}).boxed_unsync();
    let answer = Response::builder().status(StatusCode::from_u16(status).expect("is one")).header("content-type", kind);
    answer.body(body).expect("is an answer")
}
