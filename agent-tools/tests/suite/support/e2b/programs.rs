//! Process API of a sandbox's daemon.

use std::{
    io,
    process::{ExitStatus, Stdio},
    sync::{Arc, Mutex},
};

use base64::{Engine, engine::general_purpose::STANDARD};
use bytes::Bytes;
use http_body_util::{BodyExt, StreamBody};
use hyper::{Response, body::Frame};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    process::{Child, ChildStdin, ChildStdout, Command},
    sync::{Mutex as Held, Notify, mpsc},
};

use super::{Answer, Service, json_answer};

type Follower = mpsc::Sender<Bytes>;

/// Running program.
pub(super) struct Program {
    pid: u32,
    input: Held<Option<ChildStdin>>,
    /// Subscriber of the program's output. Without one, the program waits.
    follower: Mutex<Option<Follower>>,
    followed: Notify,
}

impl Program {
    /// Sends a signal to all its descendants, except those that have left its process group.
    pub(super) fn signal(&self, signal: &str) {
        let group = format!("-{}", self.pid);
        drop(std::process::Command::new("kill").args(["-s", signal, "--", &group]).stderr(Stdio::null()).status());
    }

    pub(super) fn drop_follower(&self) {
        drop(self.follower.lock().expect("no panic").take());
    }

    fn follow(&self) -> Answer {
        let (follower, told) = mpsc::channel(16);
        follower.try_send(frame(0, &json!({"event": {"start": {"pid": self.pid}}}))).expect("is new");
        *self.follower.lock().expect("no panic") = Some(follower);
        self.followed.notify_one();
        stream(told)
    }

    /// Sends a message to the subscriber, and waits until there is one.
    async fn tell(&self, message: Bytes) {
        loop {
            let follower = self.follower.lock().expect("no panic").clone();
            match follower {
                Some(follower) => return drop(follower.send(message).await),
                None => self.followed.notified().await,
            }
        }
    }

    async fn run(self: Arc<Self>, mut child: Child, mut output: ChildStdout) {
        let mut buffer = vec![0; 32 << 10];
        while let Ok(read @ 1..) = output.read(&mut buffer).await {
            let piece = STANDARD.encode(&buffer[..read]);
            self.tell(frame(0, &json!({"event": {"keepalive": {}}}))).await;
            self.tell(frame(0, &json!({"event": {"data": {"stdout": piece}}}))).await;
        }
        let status = child.wait().await.expect("is a child");
        self.tell(frame(0, &json!({"event": {"end": ended(status)}}))).await;
        self.tell(frame(2, &json!({}))).await;
        self.drop_follower();
    }
}

fn ended(status: ExitStatus) -> Value {
    match status.code() {
        Some(0) => json!({"exited": true, "status": "exit status 0"}),
        Some(code) => json!({"exited": true, "exitCode": code, "status": format!("exit status {code}")}),
        None => json!({"exitCode": -1, "status": "signal: killed", "error": "signal: killed"}),
    }
}

impl Service {
    pub(super) async fn program(&self, id: &str, path: &str, body: &[u8]) -> Answer {
        let method = path.strip_prefix("/process.Process/").expect("is of programs");
        if method == "Start" {
            return self.start_program(id, &message(body));
        }
        let asked = if method == "Connect" { message(body) } else { serde_json::from_slice(body).expect("is JSON") };
        let pid = u32::try_from(asked["process"]["pid"].as_u64().expect("is said")).expect("is a number");
        let program = self.state().machines.get(id).and_then(|machine| machine.programs.get(&pid)).cloned();
        let Some(program) = program else {
            return json_answer(404, &json!({"code": "not_found", "message": "no such process"}));
        };
        match method {
            "Connect" => program.follow(),
            "SendInput" => {
                let bytes = STANDARD.decode(asked["input"]["stdin"].as_str().expect("is said")).expect("is base64");
                let mut input = program.input.lock().await;
                let written = match input.as_mut() {
                    Some(input) => input.write_all(&bytes).await,
                    None => Err(io::Error::other("closed")),
                };
                match written {
                    Ok(()) => json_answer(200, &json!({})),
                    Err(e) => json_answer(500, &json!({"code": "internal", "message": e.to_string()})),
                }
            }
            "CloseStdin" => {
                program.input.lock().await.take();
                json_answer(200, &json!({}))
            }
            "SendSignal" => {
                program.signal("KILL");
                json_answer(200, &json!({}))
            }
            other => unreachable!("nobody asks for {other}"),
        }
    }

    fn start_program(&self, id: &str, asked: &Value) -> Answer {
        let (process, env) = (&asked["process"], self.state().machines[id].env.clone());
        let text = |value: &Value| value.as_str().expect("is text").to_owned();
        let mut command = Command::new(text(&process["cmd"]));
        command.args(process["args"].as_array().expect("are said").iter().map(text)).env_clear();
        let path = std::env::var("PATH").expect("is set");
        command.env("PATH", path).env("HOME", "/").current_dir(text(&process["cwd"])).process_group(0);
        for (name, value) in env.as_object().into_iter().chain(process["envs"].as_object()).flatten() {
            command.env(name, text(value));
        }
        let input = if asked["stdin"] == true { Stdio::piped() } else { Stdio::null() };
        let mut child = match command.stdin(input).stdout(Stdio::piped()).stderr(Stdio::null()).spawn() {
            Ok(child) => child,
            Err(e) => {
                let error = json!({"error": {"code": "invalid_argument", "message": e.to_string()}});
                return super::bytes_answer(200, "application/connect+json", frame(2, &error));
            }
        };
        let (pid, output) = (child.id().expect("runs"), child.stdout.take().expect("is piped"));
        let program = Arc::new(Program {
            pid,
            input: Held::new(child.stdin.take()),
            follower: Mutex::default(),
            followed: Notify::new(),
        });
        let answer = program.follow();
        let running = program.clone();
        let service = self.clone();
        let machine = id.to_owned();
        if let Some(machine) = self.state().machines.get_mut(id) {
            machine.programs.insert(pid, program);
        }
        tokio::spawn(async move {
            running.run(child, output).await;
            if let Some(machine) = service.state().machines.get_mut(&machine) {
                machine.programs.remove(&pid);
            }
        });
        answer
    }
}

/// Decodes the only message of a body.
fn message(body: &[u8]) -> Value {
    let length = u32::from_be_bytes(body[1..5].try_into().expect("are four"));
    assert_eq!((body[0], length as usize), (0, body.len() - 5));
    serde_json::from_slice(&body[5..]).expect("is JSON")
}

pub(crate) fn frame(flags: u8, message: &Value) -> Bytes {
    let message = message.to_string();
    let length = u32::try_from(message.len()).expect("is short").to_be_bytes();
    [&[flags], &length[..], message.as_bytes()].concat().into()
}

/// Returns a streaming response that ends with the channel.
pub(crate) fn stream(told: mpsc::Receiver<Bytes>) -> Answer {
    let frames = futures::stream::unfold(told, |mut told| async move {
        let piece = told.recv().await?;
        Some((Ok::<_, io::Error>(Frame::data(piece)), told))
    });
    let answer = Response::builder().header("content-type", "application/connect+json");
    answer.body(StreamBody::new(frames).boxed_unsync()).expect("is an answer")
}
