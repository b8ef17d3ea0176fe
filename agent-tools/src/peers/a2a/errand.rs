//! One call: a message, the task that it starts, and the agent's questions.

use agent_core::{Ask, Error, ErrorKind, Result, ToolOutput, ToolRequest, message};
use serde_json::{Value, json};
use tokio::time::sleep;

use super::{
    A2A_INPUT, Inner, Site,
    binding::{Operation, Version, modern},
    client::{Answer, Client, Events},
    guard::Guard,
    wire::{Message, Part, State, Task, Told, text},
};
#[cfg(feature = "workspace")]
use crate::peers::attached::{Attached, attached};
use crate::{
    peers::{
        Args, Conversation, Sending,
        sending::{Found, Next},
    },
    text::cut,
};

/// Number of entries of a task's history that are searched for a message.
const HISTORY: u32 = 100;

/// Maximum of images in an answer; the size limit of responses applies too.
const MOST_IMAGES: usize = 20;

/// Number of failed polls of a task after which the call fails.
const TRIES: u32 = 5;

/// One call.
pub(super) struct Errand<'a> {
    agent: &'a Inner,
    /// Client whose requests carry the trace context of the run.
    client: Client,
    site: &'a Site,
    req: &'a ToolRequest,
    conversation: Conversation<'a>,
}

/// Outcome of a message.
enum Outcome {
    Task(Box<Task>, Option<Box<Events>>),
    Said(Message),
    /// A person stated the answer.
    Known(Value),
}

impl<'a> Errand<'a> {
    pub(super) fn new(agent: &'a Inner, site: &'a Site, req: &'a ToolRequest) -> Self {
        let client = agent.client.in_trace(req.cx.ids().traceparent.as_deref());
        Self { agent, client, site, req, conversation: Conversation::of(&req.cx, &agent.name) }
    }

    /// Sends the message and waits for the answer.
    pub(super) async fn run(&self, args: Args) -> Result<ToolOutput> {
        let files = self.attached(&args).await?;
        let mut message = self.message("message", args.message, self.conversation.id(), None);
        message.parts.extend(files);
        let (mut task, mut events) = match self.begin(message).await? {
            Outcome::Task(task, events) => (*task, events.map(|events| *events)),
            Outcome::Said(message) => return Ok(self.said(&message)),
            Outcome::Known(value) => return Ok(ToolOutput::value(value)),
        };
        let mut answered = None;
        loop {
            self.conversation.set(&task.context_id);
            let guard = Guard::new(&self.client, &self.site.target, &task.id);
            task = self.follow(task, events.take(), answered.as_deref()).await?;
            guard.leave();
            if !task.status.state.waits() {
                return self.ended(&task);
            }
            let mark = task.status.mark();
            let answer = self.ask(&task, &mark)?;
            match self.answer(&task, &mark, answer).await? {
                Outcome::Task(next, stream) => (task, events) = (*next, stream.map(|events| *events)),
                Outcome::Said(message) => return Ok(self.said(&message)),
                Outcome::Known(value) => return Ok(ToolOutput::value(value)),
            }
            answered = Some(mark);
        }
    }

    /// Returns the files attached to the first message.
    #[cfg(feature = "workspace")]
    async fn attached(&self, args: &Args) -> Result<Vec<Part>> {
        let Some(workspace) = &self.agent.workspace else { return Ok(Vec::new()) };
        let files = attached(workspace, &args.files).await?;
        let part = |file: Attached| {
            let told = [("name", file.name.clone()), ("mimeType", file.mime.to_owned()), ("bytes", file.base64())];
            Part::File { file: told.into_iter().map(|(name, value)| (name.to_owned(), value.into())).collect() }
        };
        Ok(files.into_iter().map(part).collect())
    }

    #[cfg(not(feature = "workspace"))]
    async fn attached(&self, _: &Args) -> Result<Vec<Part>> {
        Ok(Vec::new())
    }

    fn message(&self, name: &str, text: String, context_id: Option<String>, task_id: Option<String>) -> Message {
        Message {
            message_id: format!("{}/{name}", self.req.idempotency_key()),
            role: "user".to_owned(),
            parts: vec![Part::Text { text }],
            context_id,
            task_id,
        }
    }

    /// Sends the first message, or finds the task that an earlier attempt started with it.
    async fn begin(&self, message: Message) -> Result<Outcome> {
        let mut began = None;
        let send = async {
            let sending = self.sending("message");
            let unknown = || async { Ok(if self.agent.deduplicates { Found::Nothing } else { Found::Unknown }) };
            Ok(match sending.next::<(), _>(unknown).await? {
                Next::Send | Next::Found(()) => {
                    let outcome = self.send(message).await?;
                    let kept = match &outcome {
                        Outcome::Task(task, _) => json!({"task": task.id}),
                        Outcome::Said(message) => json!({"message": message}),
                        Outcome::Known(value) => json!({"known": value}),
                    };
                    began = Some(outcome);
                    kept
                }
                Next::Said(value) => json!({"known": value}),
            })
        };
        // From here on, the journal has the task's id.
        let kept = self.req.decide("task", send).await?;
        if let Some(began) = began {
            return Ok(began);
        }
        if let Some(known) = kept.get("known") {
            return Ok(Outcome::Known(known.clone()));
        }
        if let Some(message) = kept.get("message") {
            let message = serde_json::from_value(message.clone());
            return message
                .map(Outcome::Said)
                .map_err(|e| Error::tool("the kept answer cannot be read").with_source(e));
        }
        let id = kept["task"].as_str().unwrap_or_default();
        let gone = || Error::tool(format!("the agent '{}' does not know the task {id} any more", self.site.name));
        Ok(Outcome::Task(self.look(id).await?.ok_or_else(gone)?.into(), None))
    }

    /// Sends the answer to a question of the task, unless an earlier attempt did.
    async fn answer(&self, task: &Task, mark: &str, text: String) -> Result<Outcome> {
        let name = format!("answer/{mark}");
        let message = self.message(&name, text, Some(task.context_id.clone()), Some(task.id.clone()));
        let find = || async {
            let Some(now) = self.look(&task.id).await? else { return Ok(Found::Unknown) };
            let has_it = now.history.iter().any(|known| known.message_id == message.message_id);
            let moved = now.status.state != task.status.state || now.status.mark() != mark;
            // An agent that stores its messages would have shown it.
            Ok(match has_it || moved {
                true => Found::It(Box::new(now)),
                false if self.agent.deduplicates || !now.history.is_empty() => Found::Nothing,
                false => Found::Unknown,
            })
        };
        match self.sending(&name).next(find).await? {
            Next::Send => self.send(message.clone()).await,
            Next::Found(task) => Ok(Outcome::Task(task, None)),
            Next::Said(value) => Ok(Outcome::Known(value)),
        }
    }

    fn sending(&self, name: &str) -> Sending<'a> {
        Sending { req: self.req, peer: &self.site.name, name: name.to_owned() }
    }

    /// Sends a message; returns the task as soon as the agent reports it.
    async fn send(&self, message: Message) -> Result<Outcome> {
        let (client, target) = (&self.client, &self.site.target);
        let modes = json!(["text/plain", "application/json", "image/png", "image/jpeg", "image/gif", "image/webp"]);
        let mut configuration = json!({"acceptedOutputModes": modes, "historyLength": HISTORY});
        let message = match target.version {
            Version::V03 => {
                configuration["blocking"] = false.into();
                with_kind(&message)
            }
            Version::V10 => {
                configuration["returnImmediately"] = true.into();
                modern(with_kind(&message))
            }
        };
        let params = json!({"message": message, "configuration": configuration});
        let answer = match self.site.streams {
            true => client.stream(target, Operation::Stream, params).await?,
            false => client.call(target, Operation::Send, params).await?.map(Answer::Whole),
        };
        let gone = || Error::tool(format!("the agent '{}' does not know the task any more", self.site.name));
        match answer.ok_or_else(gone)? {
            Answer::Whole(Told::Task(task)) => Ok(Outcome::Task(task.into(), None)),
            Answer::Whole(Told::Message(message)) => Ok(Outcome::Said(message)),
            Answer::Whole(_) => Err(self.protocol("neither a task nor a message")),
            Answer::Events(mut events) => match events.next(client.patience).await? {
                Some(Told::Task(task)) => Ok(Outcome::Task(task.into(), Some(Box::new(events)))),
                Some(Told::Message(message)) => Ok(Outcome::Said(message)),
                Some(Told::StatusUpdate(update)) => {
                    let task = Task::begun(update.task_id, update.context_id, update.status);
                    Ok(Outcome::Task(task.into(), Some(Box::new(events))))
                }
                _ => Err(self.protocol("a stream that tells of no task")),
            },
        }
    }

    /// Follows the task until it ends or asks a question. The question `answered` is not treated as
    /// a new one.
    async fn follow(&self, mut task: Task, mut events: Option<Events>, answered: Option<&str>) -> Result<Task> {
        let (mut resubscribes, mut failures) = (self.site.streams, 0);
        loop {
            let status = &task.status;
            if status.state.is_over() || (status.state.waits() && answered != Some(&status.mark())) {
                return Ok(task);
            }
            if let Some(stream) = &mut events {
                match stream.next(self.client.patience).await {
                    Ok(Some(told)) => {
                        self.take(&mut task, told);
                        continue;
                    }
                    Ok(None) => events = None,
                    Err(e) if e.kind() == ErrorKind::Limit || e.kind() == ErrorKind::Protocol => return Err(e),
                    Err(_) => events = None,
                }
            } else {
                sleep(self.agent.poll).await;
            }
            match self.look(&task.id).await {
                Ok(Some(now)) => {
                    self.told(&now.status.text(), now.status.state);
                    (task, failures) = (now, 0);
                }
                Ok(None) => return Err(self.failed(&task, "lost the task")),
                Err(e) if failures >= TRIES || !e.is_retryable() => return Err(e),
                Err(_) => failures += 1,
            }
            if !task.status.state.is_over() && std::mem::take(&mut resubscribes) {
                events = self.resubscribe(&task.id).await;
            }
        }
    }

    /// Subscribes to the task's stream again, if the agent supports it.
    async fn resubscribe(&self, id: &str) -> Option<Events> {
        let (client, target) = (&self.client, &self.site.target);
        match client.stream(target, Operation::Subscribe, json!({"id": id})).await {
            Ok(Some(Answer::Events(events))) => Some(events),
            _ => None,
        }
    }

    async fn look(&self, id: &str) -> Result<Option<Task>> {
        let params = json!({"id": id, "historyLength": HISTORY});
        self.client.call(&self.site.target, Operation::Get, params).await
    }

    /// Applies a stream event to the task, and emits progress events of the run.
    fn take(&self, task: &mut Task, told: Told) {
        match told {
            Told::Task(now) => *task = now,
            Told::StatusUpdate(update) => {
                self.told(&update.status.text(), update.status.state);
                task.status = update.status;
            }
            Told::ArtifactUpdate(update) => {
                self.req.progress(json!({"text": text(&update.artifact.parts)}));
                task.take(update);
            }
            Told::Message(_) | Told::Unknown => {}
        }
    }

    fn told(&self, text: &str, state: State) {
        let mut progress = json!({"status": state.name()});
        if !text.is_empty() {
            progress["text"] = text.into();
        }
        self.req.progress(progress);
    }

    /// Returns the answer to the task's question, or an error that suspends the run until there is
    /// one.
    fn ask(&self, task: &Task, mark: &str) -> Result<String> {
        let status = &task.status;
        let payload = json!({
            "agent": self.site.name, "task": task.id, "state": status.state.name(), "message": status.text(),
        });
        let ask = Ask::new(A2A_INPUT, payload).nonce(mark).schema(json!({"type": "string"}));
        self.req.ask_with(ask)?.parse()
    }

    fn ended(&self, task: &Task) -> Result<ToolOutput> {
        if task.status.state != State::Completed {
            return Err(self.failed(task, &format!("ended the task as '{}'", task.status.state.name())));
        }
        let answer = task.text();
        let value = json!({
            "answer": answer, "task": task.id, "context": task.context_id, "artifacts": task.artifacts,
        });
        Ok(ToolOutput::value(value).shown_as(shown(answer, task.artifacts.iter().flat_map(|artifact| &artifact.parts))))
    }

    /// Converts an answer without a task.
    fn said(&self, message: &Message) -> ToolOutput {
        if let Some(context) = &message.context_id {
            self.conversation.set(context);
        }
        let answer = text(&message.parts);
        let value = json!({"answer": answer, "context": message.context_id});
        ToolOutput::value(value).shown_as(shown(answer, &message.parts))
    }

    fn failed(&self, task: &Task, how: &str) -> Error {
        let (name, said) = (&self.site.name, task.status.text());
        let why = if said.is_empty() { String::new() } else { format!(": {}", cut(&said, 2000)) };
        Error::tool(format!("the agent '{name}' {how}{why}"))
            .with_context("task", task.id.as_str())
            .with_context("state", task.status.state.name())
    }

    fn protocol(&self, what: &str) -> Error {
        Error::new(ErrorKind::Protocol, format!("the agent '{}' answered with {what}", self.site.name))
    }
}

/// Converts an answer for the model: its text and its images.
fn shown<'a>(answer: String, parts: impl IntoIterator<Item = &'a Part>) -> Vec<message::Part> {
    let image = |part: &Part| {
        let Part::File { file } = part else { return None };
        let (data, mime) = (file.get("bytes")?.as_str()?, file.get("mimeType")?.as_str()?);
        mime.starts_with("image/").then(|| message::Part::Image(message::Media::base64(data, mime)))
    };
    std::iter::once(message::Part::text(answer)).chain(parts.into_iter().filter_map(image).take(MOST_IMAGES)).collect()
}

/// Serialises a message with its `kind`.
fn with_kind(message: &Message) -> Value {
    let mut message = json!(message);
    message["kind"] = "message".into();
    message
}
