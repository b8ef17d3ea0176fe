//! An agent that is a program: this test itself, as another process.

use std::{
    env, fs,
    io::{self, BufRead, Write},
    path::{Path, PathBuf},
};

use agent::tools::Stdio;
use serde_json::{Value, json};

/// Variable with the directory in which the program keeps its sessions and received messages.
const HOME: &str = "PEERS_TEST_AGENT";

/// The variable that says that it resumes sessions without their history.
const RESUMES: &str = "PEERS_TEST_RESUMES";

/// The variable that says that it cannot load sessions.
const FORGETS: &str = "PEERS_TEST_FORGETS";

/// The program. The test harness writes to its standard output too: garbage, which is left out.
#[test]
fn serve() {
    if let Ok(home) = env::var(HOME) {
        Program { home: home.into(), calls: 0, turn: None, terminal: Value::Null }.serve();
    }
}

pub(crate) fn program(home: &Path) -> Stdio {
    let itself = env::current_exe().expect("a path").display().to_string();
    let home = home.display().to_string();
    Stdio::new(itself).args(["peers::support::acp::serve", "--exact", "--nocapture"]).env(HOME, home)
}

pub(crate) fn resuming(home: &Path) -> Stdio {
    program(home).env(RESUMES, "1")
}

pub(crate) fn forgetful(home: &Path) -> Stdio {
    program(home).env(FORGETS, "1")
}

/// Actions of programs with this home, one per line.
pub(crate) fn log(home: &Path) -> Vec<String> {
    let text = fs::read_to_string(home.join("log")).unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}

struct Program {
    home: PathBuf,
    calls: u64,
    /// Request of the current turn.
    turn: Option<(Value, Value)>,
    /// The terminal that it has open.
    terminal: Value,
}

impl Program {
    fn serve(&mut self) {
        for line in io::stdin().lock().lines() {
            let Ok(line) = line else { return };
            let message: Value = serde_json::from_str(&line).expect("a client sends JSON");
            let (id, params) = (message["id"].clone(), message["params"].clone());
            match message["method"].as_str() {
                Some("initialize") => {
                    let loads = env::var(FORGETS).is_err();
                    let mut capabilities = json!({"loadSession": loads, "promptCapabilities": {"image": true}});
                    if env::var(RESUMES).is_ok() {
                        capabilities["sessionCapabilities"] = json!({"resume": {}});
                    }
                    if params["clientCapabilities"]["elicitation"]["form"].is_null() {
                        self.note("no forms");
                    }
                    self.answer(&id, &json!({"protocolVersion": 1, "agentCapabilities": capabilities}));
                }
                Some("session/new") => {
                    let session = format!("session-{}", std::process::id());
                    if params["mcpServers"] != json!([]) {
                        self.note(&params["mcpServers"].to_string());
                    }
                    self.answer(&id, &json!({"sessionId": session}));
                }
                Some("session/load") => {
                    let session = params["sessionId"].clone();
                    self.update(&session, "user_message_chunk", "of old");
                    self.update(&session, "agent_message_chunk", "also of old");
                    self.note(&format!("loaded {session}"));
                    self.answer(&id, &Value::Null);
                }
                Some("session/resume") => {
                    self.note(&format!("resumed {}", params["sessionId"]));
                    self.answer(&id, &json!({}));
                }
                Some("session/set_config_option") => {
                    self.note(&format!("{} is {}", params["configId"], params["value"]));
                    self.answer(&id, &json!({"configOptions": []}));
                }
                Some("session/prompt") => {
                    let text = params["prompt"][0]["text"].as_str().unwrap_or_default().to_owned();
                    self.note(&text);
                    self.turn = Some((id, params["sessionId"].clone()));
                    let files =
                        params["prompt"].as_array().expect("parts")[1..].iter().map(|part| match &part["type"] {
                            kind if kind == "image" => format!(" with {} {}", part["mimeType"], part["data"]),
                            kind => format!(" with {kind} {}", part["uri"]),
                        });
                    let files: String = files.collect();
                    self.work(&format!("{text}{files}"));
                }
                Some("session/cancel") => {
                    self.note("cancelled");
                    self.end("cancelled");
                }
                Some(other) => panic!("{other} is not expected"),
                None => self.answered(&message),
            }
        }
    }

    fn work(&mut self, text: &str) {
        let session = self.turn.as_ref().expect("a turn").1.clone();
        match text.split_once(' ').unwrap_or((text, "")) {
            ("ask", _) => self.ask(
                "session/request_permission",
                &json!({
                    "sessionId": session, "toolCall": {"toolCallId": "t1", "title": "Book it", "kind": "execute"},
                    "options": [
                        {"optionId": "yes", "name": "Yes", "kind": "allow_once"},
                        {"optionId": "no", "name": "No", "kind": "reject_once"},
                    ],
                }),
            ),
            ("form", _) => {
                let schema = json!({"type": "object", "properties": {"city": {"type": "string"}}});
                let form =
                    json!({"sessionId": session, "mode": "form", "message": "Where?", "requestedSchema": schema});
                self.ask("elicitation/create", &form);
            }
            ("read", path) => {
                self.ask("fs/read_text_file", &json!({"sessionId": session, "path": path, "line": 2, "limit": 1}));
            }
            ("write", path) => {
                self.ask("fs/write_text_file", &json!({"sessionId": session, "path": path, "content": "written"}));
            }
            ("terminal", line) => self.ask("terminal/create", &json!({"sessionId": session, "command": line})),
            ("draw", _) => {
                let image = json!({"type": "image", "data": "aW1n", "mimeType": "image/png"});
                self.notify(&session, &json!({"sessionUpdate": "agent_message_chunk", "content": image}));
                self.say_and_end("drawn");
            }
            ("hang", _) => {}
            ("die", _) => std::process::exit(3),
            ("kill", _) => {
                let own = std::process::id().to_string();
                std::process::Command::new("kill").args(["-9", &own]).status().expect("is there");
            }
            ("fail", _) => {
                let (id, _) = self.turn.take().expect("a turn");
                self.send(&json!({"jsonrpc": "2.0", "id": id, "error": {"code": -32603, "message": "no luck"}}));
            }
            ("garbage", _) => (0..500).for_each(|_| println!("this is no message")),
            ("huge", _) => self.update(&session, "agent_message_chunk", &"x".repeat(5 << 20)),
            ("endless", _) => (0..40).for_each(|_| self.update(&session, "agent_message_chunk", &"x".repeat(1 << 16))),
            _ => {
                self.update(&session, "agent_thought_chunk", "let me see");
                let call =
                    json!({"sessionUpdate": "tool_call", "toolCallId": "t1", "title": "Look", "status": "completed"});
                self.notify(&session, &call);
                let entry = json!({"content": "answer", "priority": "high", "status": "pending"});
                self.notify(&session, &json!({"sessionUpdate": "plan", "entries": [entry]}));
                self.say_and_end(&format!("you said {text}"));
            }
        }
    }

    /// Continues with the client's answer.
    fn answered(&mut self, message: &Value) {
        let next = match &message["result"] {
            result if result.get("terminalId").is_some() => {
                self.terminal = result["terminalId"].clone();
                Some("terminal/wait_for_exit")
            }
            result if result.get("exitCode").is_some() => Some("terminal/output"),
            _ => None,
        };
        if let (Some(method), Some((_, session))) = (next, self.turn.clone()) {
            return self.ask(method, &json!({"sessionId": session, "terminalId": self.terminal}));
        }
        let said = match &message["result"] {
            Value::Null => format!("refused: {}", message["error"]["message"].as_str().unwrap_or_default()),
            result if result.get("action").is_some() => {
                format!("the form: {} {}", result["action"], result["content"]["city"])
            }
            result if result.get("content").is_some() => {
                format!("it reads: {}", result["content"].as_str().expect("text"))
            }
            result if result.get("output").is_some() => {
                format!("it ran: {} {}", result["output"], result["exitStatus"])
            }
            result if result.get("outcome").is_some() => {
                format!("the answer: {}", result["outcome"]["optionId"].as_str().unwrap_or("none"))
            }
            _ => "done".to_owned(),
        };
        if self.turn.is_some() {
            self.say_and_end(&said);
        }
    }

    fn say_and_end(&mut self, text: &str) {
        let session = self.turn.as_ref().expect("a turn").1.clone();
        let (first, second) = text.split_at(3);
        self.update(&session, "agent_message_chunk", first);
        self.update(&session, "agent_message_chunk", second);
        self.end("end_turn");
    }

    fn end(&mut self, stop_reason: &str) {
        if let Some((id, _)) = self.turn.take() {
            self.answer(&id, &json!({"stopReason": stop_reason}));
        }
    }

    fn ask(&mut self, method: &str, params: &Value) {
        self.calls += 1;
        self.send(&json!({"jsonrpc": "2.0", "id": format!("own-{}", self.calls), "method": method, "params": params}));
    }

    fn update(&self, session: &Value, kind: &str, text: &str) {
        self.notify(session, &json!({"sessionUpdate": kind, "content": {"type": "text", "text": text}}));
    }

    fn notify(&self, session: &Value, update: &Value) {
        let params = json!({"sessionId": session, "update": update});
        self.send(&json!({"jsonrpc": "2.0", "method": "session/update", "params": params}));
    }

    fn answer(&self, id: &Value, result: &Value) {
        self.send(&json!({"jsonrpc": "2.0", "id": id, "result": result}));
    }

    fn send(&self, message: &Value) {
        // The one who listens may be gone.
        let _ = writeln!(io::stdout(), "{message}");
    }

    fn note(&self, line: &str) {
        let mut file = fs::File::options().create(true).append(true).open(self.home.join("log")).expect("opens");
        writeln!(file, "{line}").expect("writes");
    }
}
