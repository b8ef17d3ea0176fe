//! Approval by a person at the terminal.

mod lines;
mod show;

use std::{
    fmt,
    io::{Read, Write},
    sync::{Arc, LazyLock, Mutex, PoisonError},
};

use agent_core::{Error, ErrorKind, Result, RunCx, exact};
use async_trait::async_trait;
use serde_json::{Map, Value};

use self::lines::Lines;
use super::{ApprovalRequest, Approver, Decision, DecisionKind};

/// Asks the person at the terminal: yes, no with a reason, or other arguments.
///
/// Only one question is shown at a time. Control characters and characters that change the order of
/// the text are escaped in the output, as in `\u{202e}`. Input that was typed before a question was
/// shown does not answer it, and only a clear answer counts. If nobody answers
/// [in time](super::Approval::timeout), or the terminal is closed, the call is rejected.
///
/// ```
/// use agent_middleware::{Approval, approval::ConsoleApprover};
/// use std::time::Duration;
///
/// let approval = Approval::new().ask("*").decide_with(ConsoleApprover::new()).timeout(Duration::from_secs(60));
/// # drop(approval);
/// ```
#[derive(Clone)]
pub struct ConsoleApprover(Arc<Console>);

struct Console {
    /// Held while a question is shown.
    lines: tokio::sync::Mutex<Lines>,
    output: Mutex<Box<dyn Write + Send>>,
}

/// There is only one terminal, however many approvers there are.
static TERMINAL: LazyLock<ConsoleApprover> = LazyLock::new(|| ConsoleApprover::on(std::io::stdin(), std::io::stderr()));

impl ConsoleApprover {
    /// Asks on the standard error and reads the standard input.
    pub fn new() -> Self {
        TERMINAL.clone()
    }

    /// Asks on `output` and reads lines from `input`, on a thread that starts with the first
    /// question.
    pub fn on(input: impl Read + Send + 'static, output: impl Write + Send + 'static) -> Self {
        let lines = tokio::sync::Mutex::new(Lines::of(input));
        Self(Arc::new(Console { lines, output: Mutex::new(Box::new(output)) }))
    }
}

impl Default for ConsoleApprover {
    fn default() -> Self {
        Self::new()
    }
}

impl Console {
    fn say(&self, text: &str) -> Result<()> {
        let mut output = self.output.lock().unwrap_or_else(PoisonError::into_inner);
        let said = output.write_all(text.as_bytes()).and_then(|()| output.flush());
        said.map_err(|e| Error::new(ErrorKind::Unexpected, "the console cannot be written to").with_source(e))
    }
}

/// A shown question.
struct Open<'a> {
    console: &'a Console,
    lines: &'a mut Lines,
    is_answered: bool,
}

impl Open<'_> {
    /// Prompts for one line; returns `None` at the end of the input.
    async fn ask(&mut self, prompt: &str) -> Result<Option<String>> {
        self.console.say(prompt)?;
        Ok(self.lines.next().await.map(|line| line.trim().to_owned()))
    }

    async fn decide(&mut self, request: &ApprovalRequest) -> Result<Decision> {
        self.console.say(&show::question(request))?;
        let menu = show::menu(request);
        loop {
            let Some(answer) = self.ask(&menu).await? else { return Ok(nobody()) };
            let decision = match answer.to_ascii_lowercase().as_str() {
                "y" | "yes" => Some(Decision::approve()),
                "n" | "no" => Some(self.reject().await?),
                "m" | "modify" => self.modify(&request.arguments).await?,
                _ => None,
            };
            match decision {
                Some(decision) if decision.kind() == DecisionKind::Reject => return Ok(decision),
                Some(decision) if request.decisions.contains(&decision.kind()) => return Ok(decision),
                _ => self.console.say("Please answer with one of these.\n")?,
            }
        }
    }

    async fn reject(&mut self) -> Result<Decision> {
        let why = self.ask("Why not (may be empty): ").await?.filter(|why| !why.is_empty());
        Ok(Decision::Reject { reason: why, remember: None, always: false })
    }

    /// Prompts for each argument; returns `None` if there is nothing to modify.
    async fn modify(&mut self, arguments: &Value) -> Result<Option<Decision>> {
        let Some(arguments) = arguments.as_object().filter(|arguments| !arguments.is_empty()) else {
            self.console.say("There are no arguments to modify.\n")?;
            return Ok(None);
        };
        let mut edited = Map::new();
        for (name, value) in arguments {
            let prompt = show::argument(name, value);
            let new = loop {
                let Some(answer) = self.ask(&prompt).await? else { return Ok(Some(nobody())) };
                match read(value, answer) {
                    Some(new) => break new,
                    None => self.console.say("That is no JSON.\n")?,
                }
            };
            edited.insert(name.clone(), new);
        }
        Ok(Some(if edited == *arguments { Decision::approve() } else { Decision::edit(edited) }))
    }
}

/// Parses a line as the new value of an argument: text for a text, otherwise JSON; an empty line
/// keeps the value.
fn read(before: &Value, answer: String) -> Option<Value> {
    match before {
        _ if answer.is_empty() => Some(before.clone()),
        Value::String(_) => Some(answer.into()),
        _ => exact::from_str(&answer).ok(),
    }
}

fn nobody() -> Decision {
    Decision::reject("nobody is at the console")
}

impl Drop for Open<'_> {
    fn drop(&mut self) {
        if !self.is_answered {
            // The person must not take the question for open. A failure to write cannot be handled
            // here.
            let _ = self.console.say("\nNo answer in time: the call is rejected.\n");
        }
    }
}

#[async_trait]
impl Approver for ConsoleApprover {
    async fn decide(&self, _: &RunCx, request: ApprovalRequest) -> Result<Decision> {
        let mut lines = self.0.lines.lock().await;
        lines.forget();
        let mut open = Open { console: &self.0, lines: &mut lines, is_answered: false };
        let decision = open.decide(&request).await;
        open.is_answered = true;
        decision
    }
}

impl fmt::Debug for ConsoleApprover {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ConsoleApprover")
    }
}
