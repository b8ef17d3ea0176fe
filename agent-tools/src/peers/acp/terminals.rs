//! Terminals: commands that an agent runs in a sandbox.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
};

use agent_core::{Error, Result, run::new_id};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::{
    sync::{mpsc, watch},
    task::JoinHandle,
};
use tokio_util::sync::CancellationToken;

use super::wire::INVALID;
use crate::sandbox::{Command, Exit, Process, Sandbox};

/// Maximum of concurrent terminals of a session.
const MOST: usize = 32;

/// Maximum of retained output bytes of a terminal; older output is dropped. An agent may request
/// fewer.
const LONGEST: usize = 1 << 20;

/// Response to a request.
pub(super) type Answer = Result<Value, (i64, String)>;

/// Terminals of a session. Dropping it ends the open ones.
pub(super) struct Terminals {
    sandbox: Arc<dyn Sandbox>,
    open: HashMap<String, Terminal>,
    ended: mpsc::UnboundedSender<(Value, Answer)>,
    /// Responses to requests that waited for the end of a command.
    answers: mpsc::UnboundedReceiver<(Value, Answer)>,
}

struct Terminal {
    screen: Arc<Mutex<Screen>>,
    /// Exit status in the protocol's form.
    exit: watch::Receiver<Option<Value>>,
    kill: CancellationToken,
    running: JoinHandle<()>,
}

/// Retained end of the output.
struct Screen {
    bytes: Vec<u8>,
    most: usize,
    is_cut: bool,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Create {
    command: String,
    #[serde(default)]
    args: Vec<String>,
    #[serde(default)]
    env: Vec<Variable>,
    #[serde(default)]
    cwd: Option<String>,
    #[serde(default)]
    output_byte_limit: Option<usize>,
}

#[derive(Deserialize)]
struct Variable {
    name: String,
    value: String,
}

impl Terminals {
    pub(super) fn new(sandbox: Arc<dyn Sandbox>) -> Self {
        let (ended, answers) = mpsc::unbounded_channel();
        Self { sandbox, open: HashMap::new(), ended, answers }
    }

    /// Serves a terminal request. Returns `None` if the response [comes](Self::answer) later.
    pub(super) async fn serve(&mut self, id: &Value, method: &str, params: Value) -> Option<Answer> {
        if method == "terminal/create" {
            return Some(self.create(params).await.map_err(|e| (INVALID, e.message().to_owned())));
        }
        let name = params["terminalId"].as_str().unwrap_or_default();
        let Some(terminal) = self.open.get(name) else {
            return Some(Err((INVALID, "there is no such terminal".to_owned())));
        };
        match method {
            "terminal/output" => Some(Ok(terminal.output())),
            "terminal/wait_for_exit" => {
                let (mut exit, ended, id) = (terminal.exit.clone(), self.ended.clone(), id.clone());
                tokio::spawn(async move {
                    let exit = exit.wait_for(Option::is_some).await.ok().and_then(|exit| exit.clone());
                    // The receiver is gone if the session has ended.
                    let _ = ended.send((id, exit.ok_or_else(|| (INVALID, "the terminal was released".to_owned()))));
                });
                None
            }
            "terminal/kill" => {
                terminal.kill.cancel();
                Some(Ok(json!({})))
            }
            "terminal/release" => {
                self.open.remove(name);
                Some(Ok(json!({})))
            }
            _ => Some(Err((super::wire::NO_METHOD, "there is no such method".to_owned()))),
        }
    }

    /// Returns the next response to a waiting request. Cancellation safe.
    pub(super) async fn answer(&mut self) -> (Value, Answer) {
        self.answers.recv().await.expect("this has a sender itself")
    }

    async fn create(&mut self, params: Value) -> Result<Value> {
        let wanted: Create =
            serde_json::from_value(params).map_err(|e| Error::tool(format!("it is no command: {e}")))?;
        if self.open.len() >= MOST {
            return Err(Error::tool(format!("there are {MOST} terminals already: release one")));
        }
        // Agents without arguments send a shell command line.
        let mut command = match wanted.args.is_empty() {
            true => Command::shell(wanted.command),
            false => wanted.args.into_iter().fold(Command::new(wanted.command), Command::arg),
        };
        command = wanted.env.into_iter().fold(command, |command, set| command.env(set.name, set.value));
        command.dir = wanted.cwd;
        let process = self.sandbox.start(command).await?;
        let most = wanted.output_byte_limit.unwrap_or(LONGEST).min(LONGEST);
        let id = new_id();
        self.open.insert(id.clone(), Terminal::of(process, most));
        Ok(json!({"terminalId": id}))
    }
}

impl Terminal {
    fn of(mut process: Process, most: usize) -> Self {
        drop(process.take_input());
        let screen = Arc::new(Mutex::new(Screen { bytes: Vec::new(), most, is_cut: false }));
        let (ended, exit) = watch::channel(None);
        let kill = CancellationToken::new();
        let (written, killed) = (screen.clone(), kill.clone());
        let running = tokio::spawn(async move {
            let exit = {
                let run = async {
                    while let Some(piece) = process.output().await {
                        written.lock().unwrap_or_else(PoisonError::into_inner).push(&piece);
                    }
                    process.exit().await.ok()
                };
                killed.run_until_cancelled(run).await
            };
            let exit = match exit {
                Some(exit) => exit,
                None => {
                    process.kill();
                    while let Some(piece) = process.output().await {
                        written.lock().unwrap_or_else(PoisonError::into_inner).push(&piece);
                    }
                    process.exit().await.ok()
                }
            };
            ended.send_replace(Some(shown(exit)));
        });
        Self { screen, exit, kill, running }
    }

    fn output(&self) -> Value {
        let screen = self.screen.lock().unwrap_or_else(PoisonError::into_inner);
        let mut output = json!({"output": screen.text(), "truncated": screen.is_cut});
        if let Some(exit) = &*self.exit.borrow() {
            output["exitStatus"] = exit.clone();
        }
        output
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        // Aborting drops the process, which kills the program.
        self.running.abort();
    }
}

impl Screen {
    fn push(&mut self, piece: &[u8]) {
        self.bytes.extend_from_slice(piece);
        if self.bytes.len() > self.most {
            self.is_cut = true;
            self.bytes.drain(..self.bytes.len() - self.most);
        }
    }

    /// Returns the text; a character cut in two is omitted.
    fn text(&self) -> String {
        let is_rest = |byte: &u8| byte & 0b1100_0000 == 0b1000_0000;
        let cut = if self.is_cut { self.bytes.iter().take(3).take_while(|byte| is_rest(byte)).count() } else { 0 };
        String::from_utf8_lossy(&self.bytes[cut..]).into_owned()
    }
}

/// Converts an exit status to the protocol's form.
fn shown(exit: Option<Exit>) -> Value {
    let (code, signal) = exit.map_or((None, None), |exit| (exit.code, exit.signal));
    json!({"exitCode": code, "signal": signal.map(|signal| signal.to_string())})
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sandbox::MemorySandbox;

    fn terminals() -> Terminals {
        let echo = |command: &Command| (format!("{} {}\n", command.args.join(" "), command.env.len()), Exit::code(3));
        let sandbox = MemorySandbox::new()
            .program("say", echo)
            .program("sh", |command| (command.args[1].clone(), Exit::signal(9)));
        Terminals::new(Arc::new(sandbox))
    }

    async fn ask(terminals: &mut Terminals, method: &str, params: Value) -> Answer {
        match terminals.serve(&json!(1), method, params).await {
            Some(answer) => answer,
            None => terminals.answer().await.1,
        }
    }

    async fn created(terminals: &mut Terminals, params: Value) -> Value {
        ask(terminals, "terminal/create", params).await.expect("runs")
    }

    #[tokio::test]
    async fn a_command_runs_its_output_and_its_end_are_told_and_what_is_released_is_gone() {
        let mut terminals = terminals();
        let env = json!([{"name": "A", "value": "b"}]);
        let made = created(&mut terminals, json!({"command": "say", "args": ["a", "b"], "env": env})).await;
        let exit = ask(&mut terminals, "terminal/wait_for_exit", made.clone()).await.expect("ends");
        assert_eq!(exit, json!({"exitCode": 3, "signal": null}));
        let output = ask(&mut terminals, "terminal/output", made.clone()).await.expect("is told");
        assert_eq!(output, json!({"output": "a b 1\n", "truncated": false, "exitStatus": exit}));
        ask(&mut terminals, "terminal/kill", made.clone()).await.expect("it has ended, which is no error");
        ask(&mut terminals, "terminal/release", made.clone()).await.expect("goes");
        let (_, gone) = ask(&mut terminals, "terminal/output", made).await.expect_err("is gone");
        assert_eq!(gone, "there is no such terminal");
    }

    #[tokio::test]
    async fn a_command_without_arguments_is_a_line_and_the_end_of_a_long_output_is_kept_in_whole_letters() {
        let mut terminals = terminals();
        let made = created(&mut terminals, json!({"command": "caf\u{e9}s \u{e9}\u{e9}", "outputByteLimit": 3})).await;
        let exit = ask(&mut terminals, "terminal/wait_for_exit", made.clone()).await.expect("ends");
        assert_eq!(exit, json!({"exitCode": null, "signal": "9"}));
        let output = ask(&mut terminals, "terminal/output", made).await.expect("is told");
        assert_eq!((&output["output"], &output["truncated"]), (&json!("\u{e9}"), &json!(true)));
    }

    #[tokio::test]
    async fn no_more_than_so_many_are_open() {
        let mut terminals = terminals();
        for _ in 0..MOST {
            created(&mut terminals, json!({"command": "say"})).await;
        }
        let (_, why) = ask(&mut terminals, "terminal/create", json!({"command": "say"})).await.expect_err("one more");
        assert!(why.contains("release one"), "{why}");
        let (_, why) = ask(&mut terminals, "terminal/create", json!({"args": []})).await.expect_err("no command");
        assert!(why.contains("it is no command"), "{why}");
    }
}
