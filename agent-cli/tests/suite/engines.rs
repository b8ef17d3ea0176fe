//! Runs that other processes run: workers over PostgreSQL, services of Restate. Skipped, and said so, where these are not installed.

#[path = "../../../agent-restate/tests/suite/common/mod.rs"]
mod restate;
use crate::support;

use std::{
    io::{BufRead, BufReader, Read, Write},
    net::{TcpListener, TcpStream},
    path::Path,
    process::{Child, Stdio},
    sync::mpsc,
    time::{Duration, Instant},
};

use serde_json::{Value, json};
use support::{
    Gate, Model, Reply, agent_on, end, postgres,
    served::{Server, allow, start},
};

/// `agent worker` in a process of its own, which is killed when it is dropped.
struct Worker {
    process: Child,
    says: mpsc::Receiver<String>,
}

impl Worker {
    /// Starts one, and waits until it is at work.
    fn begin(dir: &Path, model: &Model, args: &[&str]) -> Self {
        let mut command = agent_on(dir, model);
        let mut process = command.arg("worker").args(args).stderr(Stdio::piped()).spawn().unwrap();
        let said = BufReader::new(process.stderr.take().unwrap()).lines();
        let (say, says) = mpsc::channel();
        std::thread::spawn(move || said.map_while(Result::ok).for_each(|line| drop(say.send(line))));
        let worker = Self { process, says };
        worker.says("Ctrl-C ends it");
        worker
    }

    /// The next line on standard error in which this is.
    fn says(&self, part: &str) -> String {
        loop {
            let line = self.says.recv_timeout(Duration::from_secs(60));
            let line = line.unwrap_or_else(|e| panic!("the worker does not say '{part}': {e}"));
            if line.contains(part) {
                return line;
            }
        }
    }

    /// As `kill -9` does.
    fn kill(mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// A program that takes webhooks, and answers with these statuses first.
struct Receiver {
    url: String,
    got: mpsc::Receiver<(String, Value)>,
}

impl Receiver {
    fn new(statuses: &'static [u16]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let (sender, got) = mpsc::channel();
        let mut statuses = statuses.iter().copied().chain(std::iter::repeat(204));
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let (mut stream, mut head) = (BufReader::new(stream), String::new());
                while !head.ends_with("\r\n\r\n") && stream.read_line(&mut head).unwrap_or(0) > 0 {}
                if head.is_empty() {
                    continue; // whoever called died
                }
                let length = header(&head, "content-length").parse().unwrap();
                let mut body = vec![0; length];
                stream.read_exact(&mut body).unwrap();
                let answer = format!(
                    "HTTP/1.1 {} -\r\ncontent-length: 0\r\nconnection: close\r\n\r\n",
                    statuses.next().unwrap()
                );
                stream.get_mut().write_all(answer.as_bytes()).unwrap();
                let _ = sender.send((head, serde_json::from_slice(&body).unwrap()));
            }
        });
        Self { url, got }
    }

    /// The head and the body of the next message.
    fn next(&self) -> (String, Value) {
        self.got.recv_timeout(Duration::from_secs(60)).unwrap()
    }
}

fn header<'a>(head: &'a str, name: &str) -> &'a str {
    let found = head.lines().find_map(|line| line.split_once(": ").filter(|(said, _)| said.eq_ignore_ascii_case(name)));
    found.unwrap_or_else(|| panic!("no {name}: {head}")).1
}

fn writes() -> Model {
    let call = Reply::Call("write_file", json!({"path": "a.txt", "content": "hello"}));
    Model::new([call, Reply::Text("Written.")])
}

#[test]
fn a_worker_serves_its_health_readiness_and_metrics() {
    let Some((store, _until_closed)) = postgres::server() else { return };
    let dir = tempfile::tempdir().unwrap();
    let model = Model::new([Reply::Text("Bees hum.")]);
    let on = ["--dir", ".", "--store", &store];
    let server = Server::begin(dir.path(), &model, &[&on[..], &["--engine", "workers"]].concat());
    let worker = Worker::begin(dir.path(), &model, &[&on[..], &["--admin", "127.0.0.1:0"]].concat());
    let line = worker.says("health and metrics are at");
    let address = line.split("http://").nth(1).unwrap().split('/').next().unwrap().to_owned();
    let get = |path: &str| {
        let mut stream = TcpStream::connect(&address).unwrap();
        write!(stream, "GET {path} HTTP/1.0\r\nhost: localhost\r\n\r\n").unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        text
    };
    for (path, body) in [("/health", r#"{"status":"ok"}"#), ("/ready", r#"{"status":"ready"}"#)] {
        let answer = get(path);
        assert!(answer.contains(" 200 ") && answer.ends_with(body), "{path}: {answer}");
    }
    let run = start(&server, &json!({"input": "What do bees do?"}));
    server.until(&run, "finished");
    let late = Instant::now() + Duration::from_secs(60);
    let is_counted = |metrics: &str| {
        metrics.lines().any(|line| {
            line.starts_with("agent_runs_ended_total{") && line.contains("finished") && line.ends_with(" 1")
        })
    };
    while !is_counted(&get("/metrics")) {
        assert!(Instant::now() < late, "{}", get("/metrics"));
    }
}

#[test]
fn the_text_of_a_run_on_a_worker_reaches_viewers_while_the_model_writes_it() {
    let Some((store, _until_closed)) = postgres::server() else { return };
    let (dir, gate) = (tempfile::tempdir().unwrap(), Gate::default());
    let model = Model::new([Reply::Held("Bees ", gate.clone(), "hum.")]);
    let on = ["--dir", ".", "--store", &store];
    let server = Server::begin(dir.path(), &model, &[&on[..], &["--engine", "workers"]].concat());
    let other = Server::begin(dir.path(), &model, &[&on[..], &["--engine", "workers"]].concat());
    let _worker = Worker::begin(dir.path(), &model, &on);
    let run = start(&server, &json!({"input": "What do bees do?"}));
    let mut viewers = [&server, &other].map(|server| {
        let mut stream = TcpStream::connect(&server.address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        write!(stream, "GET /api/runs/{run}/events HTTP/1.0\r\nhost: localhost\r\n\r\n").unwrap();
        BufReader::new(stream).lines()
    });
    for viewer in &mut viewers {
        let chunk = viewer.find(|line| line.as_ref().is_ok_and(|line| line.contains("\"delta\":\"Bees \"")));
        assert!(chunk.is_some(), "the first words come before the last ones are written");
    }
    gate.open();
    for viewer in viewers {
        let rest: Vec<_> = viewer.map_while(Result::ok).collect();
        assert!(rest.iter().any(|line| line.contains("\"answer\":\"Bees hum.\"")), "{rest:?}");
    }
    [server, other].into_iter().for_each(Server::kill);
}

#[test]
fn a_served_run_goes_through_workers_and_its_answer_comes_to_another_one() {
    let Some((store, _until_closed)) = postgres::server() else { return };
    let (dir, model) = (tempfile::tempdir().unwrap(), writes());
    let server = Server::begin(dir.path(), &model, &["--dir", ".", "--engine", "workers", "--store", &store]);
    let run = start(&server, &json!({"input": "Write a file.", "session": "garden"}));
    assert_eq!(server.get(&format!("/api/runs/{run}"))["status"], "queued", "nobody is at work");

    let worker =
        |name| Worker::begin(dir.path(), &model, &["--dir", ".", "--store", &store, "--lease", "4", "--worker", name]);
    let first = worker("first");
    server.until(&run, "waiting");
    first.kill();
    let _second = worker("second");
    assert_eq!(allow(&server, &run)[0]["payload"]["tool"], "write_file");
    assert_eq!(server.until(&run, "finished")["answer"], "Written.");
    assert_eq!(std::fs::read_to_string(dir.path().join("a.txt")).unwrap(), "hello");
    assert_eq!(model.asked.lock().unwrap().len(), 2, "no finished step is made again");
    server.kill();
    let inspect = |how: &[&str]| {
        let args = [&["inspect", "local/garden", "--timeline", "--store", &store][..], how].concat();
        let (code, said, err) = end(&mut agent_on(dir.path(), &model), &args);
        assert_eq!(code, 0, "{err}");
        said
    };
    let told = inspect(&[]);
    assert!(told.contains("agent on first") && told.contains("agent on second"), "{told}");
    let told: Value = serde_json::from_str(&inspect(&["--json"])).unwrap();
    let tool = told["timeline"].as_array().unwrap().iter().find(|row| row["what"] == "tool").unwrap();
    assert_eq!(tool["worker"], "second", "{told}");
}

#[test]
fn a_worker_says_which_run_failed_and_why() {
    let Some((store, _until_closed)) = postgres::server() else { return };
    let (dir, model) = (tempfile::tempdir().unwrap(), Model::new([Reply::Status(400)]));
    let store = format!("{store}&pooled=true"); // it looks for runs, and nobody calls it
    let worker = Worker::begin(dir.path(), &model, &["--store", &store]);
    let send = ["queue", "send", "--agent", "agent", "Hi.", "--store", &store];
    let (code, run, err) = end(&mut agent_on(dir.path(), &model), &send);
    assert_eq!(code, 0, "{err}");
    let said = worker.says("a run failed");
    assert!(said.contains("WARN") && said.contains(run.trim()), "{said}");
}

#[test]
fn a_server_takes_no_more_runs_than_may_wait_for_workers() {
    let Some((store, _until_closed)) = postgres::server() else { return };
    let (dir, model) = (tempfile::tempdir().unwrap(), Model::new([]));
    let args = ["--engine", "workers", "--store", &store, "--queued-per-tenant", "1"];
    let server = Server::begin(dir.path(), &model, &args);
    start(&server, &json!({"input": "Hi."}));
    let (status, text) = server.ask("POST", "/api/agents/agent/runs", &json!({"input": "Hi."}));
    server.kill();
    assert!(status == 503 && text.contains("the queue is full"), "{status}: {text}");
}

#[test]
fn a_call_of_the_clients_tool_waits_without_a_worker_and_its_result_comes_to_another_one() {
    let Some((store, _until_closed)) = postgres::server() else { return };
    let call = Reply::Call("pick_color", json!({"of": "the roof"}));
    let (dir, model) = (tempfile::tempdir().unwrap(), Model::new([call, Reply::Text("A red roof.")]));
    let file = "name: agent\nmodel: openai:scripted@chat\n";
    std::fs::write(dir.path().join("agent.yaml"), file).unwrap();
    let server = Server::begin(dir.path(), &model, &["agent.yaml", "--engine", "workers", "--store", &store]);
    let worker =
        |name| Worker::begin(dir.path(), &model, &["agent.yaml", "--store", &store, "--lease", "4", "--worker", name]);
    let function = json!({"name": "pick_color", "description": "Asks the user.", "parameters": {"type": "object"}});
    let ask = |messages: &[Value]| {
        let tools = json!([{"type": "function", "function": function}]);
        let body = json!({"model": "agent", "messages": messages, "tools": tools});
        let (status, text) = server.ask("POST", "/v1/chat/completions", &body);
        assert_eq!(status, 200, "{text}");
        serde_json::from_str::<Value>(&text).unwrap()["choices"][0].clone()
    };

    let first = worker("first");
    let mut messages = vec![json!({"role": "user", "content": "Which colour?"})];
    let said = ask(&messages);
    let call = said["message"]["tool_calls"][0].clone();
    assert_eq!((&said["finish_reason"], &call["function"]["name"]), (&json!("tool_calls"), &json!("pick_color")));
    first.kill();
    let _second = worker("second");
    messages.extend([said["message"].clone(), json!({"role": "tool", "tool_call_id": call["id"], "content": "red"})]);
    let said = ask(&messages);
    assert_eq!((&said["finish_reason"], &said["message"]["content"]), (&json!("stop"), &json!("A red roof.")));
    assert_eq!(model.asked.lock().unwrap().len(), 2, "no finished step is made again");
    let result = model.asked.lock().unwrap()[1]["messages"].as_array().unwrap().last().cloned();
    assert_eq!(result.unwrap()["content"], "red");
    server.kill();
}

#[test]
fn a_served_run_goes_through_a_service_of_restate_that_is_killed_while_it_waits() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let Some(engine) = runtime.block_on(restate::Server::start()) else { return };
    let (dir, model) = (tempfile::tempdir().unwrap(), writes());
    let url = engine.engine_url();
    let address = restate::free_address().to_string();
    let worker = || Worker::begin(dir.path(), &model, &["--dir", ".", "--engine", &url, "--listen", &address]);
    let first = worker();
    let server = Server::begin(dir.path(), &model, &["--dir", ".", "--engine", &url]);
    let run = start(&server, &json!({"input": "Write a file.", "session": "garden"}));
    server.until(&run, "waiting");
    first.kill();
    let _second = worker();
    assert_eq!(allow(&server, &run)[0]["payload"]["tool"], "write_file");
    assert_eq!(server.until(&run, "finished")["answer"], "Written.");
    assert_eq!(model.asked.lock().unwrap().len(), 2, "no finished step is made again");
    let (_, events) = server.ask("GET", &format!("/api/runs/{run}/events"), &Value::Null);
    assert!(events.contains("\"tool_started\""), "{events}");
    server.kill();
}

#[test]
fn what_an_agent_asks_that_is_served_elsewhere_over_restate_is_listed_and_answered_at_the_server() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let Some(engine) = runtime.block_on(restate::Server::start()) else { return };
    let asks = Reply::Call("ask_user", json!({"questions": [{"question": "By train?"}]}));
    let calls = Reply::Call("travel", json!({"message": "To Bern, please."}));
    let model = Model::new([calls, asks, Reply::Text("Booked."), Reply::Text("It is booked.")]);
    let dir = tempfile::tempdir().unwrap();
    let file = |name: &str, tools: &str| {
        let path = dir.path().join(format!("{name}.yaml"));
        std::fs::write(path, format!("name: {name}\nmodel: openai:scripted@chat\ntools: [{tools}]\n")).unwrap();
    };
    file("agent", "{served: {name: travel}}");
    file("travel", "ask_user");
    let url = format!("{}&service=Office", engine.engine_url());
    let (address, files) = (restate::free_address().to_string(), ["agent.yaml", "travel.yaml", "--engine", &url]);
    let _worker = Worker::begin(dir.path(), &model, &[&files[..], &["--listen", &address]].concat());
    let server = Server::begin(dir.path(), &model, &files);
    let run = start(&server, &json!({"input": "Book a trip.", "session": "garden"}));
    let late = std::time::Instant::now() + Duration::from_secs(60);
    let waiting = loop {
        let waiting = server.get("/api/questions?session=garden/agent/travel");
        if let Some(waiting) = waiting["questions"].as_array().and_then(|all| all.first()) {
            break waiting.clone();
        }
        assert!(std::time::Instant::now() < late, "nothing is asked: {waiting}");
        std::thread::sleep(Duration::from_millis(100));
    };
    let (question, asking) = (&waiting["question"], waiting["run"].as_str().unwrap().replace('/', "%2F"));
    let answers = json!({"answers": [{"question": question["id"], "digest": question["digest"], "value": ["yes"]}]});
    let path = format!("/api/runs/{asking}/answers?session=garden/agent/travel");
    let (status, text) = server.ask("POST", &path, &answers);
    assert_eq!(status, 202, "{text}");
    assert_eq!(server.until(&run, "finished")["answer"], "It is booked.");
    server.kill();
}

/// A run waits and ends, and a webhook receives both: the end from the next server, since the first one dies.
fn is_told_elsewhere(dir: &Path, model: &Model, serves: &[&str], looks: impl Fn()) {
    let receiver = Receiver::new(&[204, 500]);
    let serve = || {
        let mut command = agent_on(dir, model);
        command.env("AGENT_WEBHOOK_SECRET", "a secret of twenty bytes");
        Server::of(command, &[&["--dir", ".", "--webhook-allow", "127.0.0.1"], serves].concat())
    };
    let first = serve();
    let webhook = format!("{}/hush", receiver.url);
    let run = start(&first, &json!({"input": "Write a file.", "session": "garden", "webhook": webhook}));
    let (head, asked) = receiver.next();
    assert!(head.starts_with("POST /hush ") && header(&head, "webhook-signature").starts_with("v1,"), "{head}");
    assert_eq!((&asked["type"], &asked["data"]["run"]), (&json!("run.waiting"), &json!(run)));
    looks();

    allow(&first, &run);
    let (refused, _) = receiver.next();
    first.kill();
    let second = serve();
    let (head, ended) = receiver.next();
    assert_eq!(header(&head, "webhook-id"), header(&refused, "webhook-id"));
    assert_eq!((&ended["type"], &ended["data"]["answer"]), (&json!("run.finished"), &json!("Written.")));
    second.kill();
}

#[test]
fn what_becomes_of_a_run_of_workers_is_told_elsewhere_and_by_the_next_server_if_one_dies() {
    let Some((store, _until_closed)) = postgres::server() else { return };
    let (dir, model) = (tempfile::tempdir().unwrap(), writes());
    let _worker = Worker::begin(dir.path(), &model, &["--dir", ".", "--store", &store]);
    is_told_elsewhere(dir.path(), &model, &["--engine", "workers", "--store", &store], || {});
}

#[test]
fn what_becomes_of_a_run_on_restate_is_told_elsewhere_and_by_the_next_server_if_one_dies() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let Some(engine) = runtime.block_on(restate::Server::start()) else { return };
    let (dir, model) = (tempfile::tempdir().unwrap(), writes());
    let url = engine.engine_url();
    let address = restate::free_address().to_string();
    let _worker = Worker::begin(dir.path(), &model, &["--dir", ".", "--engine", &url, "--listen", &address]);
    let notes =
        || runtime.block_on(engine.query("SELECT key, value_utf8 FROM state WHERE key LIKE 'note/%'")).to_string();
    is_told_elsewhere(dir.path(), &model, &["--engine", &url], || {
        assert!(notes().contains("agent-server/webhooks/") && !notes().contains("hush"), "it is sealed: {}", notes());
    });
}
