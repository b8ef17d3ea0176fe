//! Projection of a run's events to parts of a UI message stream.

use std::collections::{HashMap, HashSet};

use agent::{Event, EventKind, ExitReason, Question, ToolOutput, Usage, journal::RunStatus};
use serde_json::{Map, Value, json};

use crate::{
    ag_ui::STATE,
    conversation::interrupt_id,
    speech::{CLIENT_TOOL, Ending, MessageStream, Said, What},
};

/// Converts the events of a run into parts of a UI message stream, version 1, one event at a time.
///
/// Each sub-agent is shown as one data part (`data-agent`), which is sent again whenever it
/// changes.
///
/// ```
/// use agent::{Agent, RunRequest, testing::{ScriptedModel, Turn}};
/// use agent_server::{ag_ui::Ending, UiStream};
/// use futures::StreamExt;
///
/// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
/// let agent = Agent::builder("greeter", ScriptedModel::new([Turn::text("Hello!")])).streaming(true).build()?;
/// let mut projection = UiStream::new();
/// let mut told = projection.start();
/// let mut run = agent.start(RunRequest::user("Hi"));
/// while let Some(event) = run.next().await {
///     told.extend(projection.event(&event));
/// }
/// told.extend(projection.end(&Ending::of(&run.await)));
/// let kinds: Vec<_> = told.iter().filter_map(|part| part["type"].as_str()).collect();
/// assert_eq!(kinds, ["start", "start-step", "text-start", "text-delta", "text-end", "finish-step", "finish"]);
/// # Ok::<(), agent::Error>(()) }).unwrap();
/// ```
#[derive(Debug, Default)]
pub struct UiStream {
    message: Option<String>,
    client_tools: HashSet<String>,
    speech: MessageStream,
    in_step: bool,
    /// Arguments and tools of the calls that were streamed.
    calls: HashMap<String, (String, String)>,
    /// Calls that the chat shows.
    shown: HashSet<String>,
    agents: HashMap<String, Value>,
    usage: Usage,
}

impl UiStream {
    /// Creates a projection that continues the chat's last message.
    pub fn new() -> Self {
        Self::default()
    }

    /// Starts a new message with this id.
    #[must_use]
    pub fn message(mut self, id: impl Into<String>) -> Self {
        self.message = Some(id.into());
        self
    }

    /// Sets the names of the client-side tools.
    #[must_use]
    pub fn client_tools(mut self, names: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.client_tools = names.into_iter().map(Into::into).collect();
        self
    }

    /// Sets the calls that the chat already shows.
    #[must_use]
    pub fn calls(mut self, ids: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.shown = ids.into_iter().map(Into::into).collect();
        self
    }

    /// Returns the first parts.
    pub fn start(&mut self) -> Vec<Value> {
        let mut start = json!({"type": "start"});
        if let Some(id) = &self.message {
            start["messageId"] = id.as_str().into();
        }
        vec![start]
    }

    /// Returns the parts for an event of the run.
    pub fn event(&mut self, event: &Event) -> Vec<Value> {
        let said = self.speech.event(event);
        self.tell(said)
    }

    /// Ends all open items and the stream. No parts may follow.
    pub fn end(&mut self, ending: &Ending) -> Vec<Value> {
        let said = self.speech.close();
        let mut told = self.tell(said);
        let finish = match ending {
            Ending::Finished { reason, .. } => match reason {
                ExitReason::Length => "length",
                ExitReason::ContentFilter => "content-filter",
                _ => "stop",
            },
            Ending::Interrupted(questions) => {
                told.extend(questions.iter().filter_map(|question| self.ask(question)));
                if ending.waits_for_client() { "tool-calls" } else { "other" }
            }
            Ending::Paused => "other",
            Ending::Cancelled => {
                self.end_step(&mut told);
                told.push(json!({"type": "abort", "reason": "the run was cancelled"}));
                return told;
            }
            Ending::Failed { message, .. } => {
                told.push(json!({"type": "error", "errorText": message}));
                "error"
            }
        };
        self.end_step(&mut told);
        let usage = json!({"inputTokens": self.usage.prompt(), "outputTokens": self.usage.output, "totalTokens": self.usage.total()});
        told.push(json!({"type": "finish", "finishReason": finish, "messageMetadata": {"usage": usage}}));
        told
    }

    /// Returns the request of a question: an approval refers to its call, any other question is a
    /// separate part.
    fn ask(&self, question: &Question) -> Option<Value> {
        let id = interrupt_id(question);
        let call = question.id.split('/').next().unwrap_or_default();
        match question.kind.as_str() {
            CLIENT_TOOL => None,
            "approval" if self.shown.contains(call) => {
                Some(json!({"type": "tool-approval-request", "approvalId": id, "toolCallId": call}))
            }
            kind => {
                let data = json!({"id": id, "kind": kind, "payload": question.payload, "schema": question.schema});
                Some(json!({"type": "data-question", "id": id, "data": data}))
            }
        }
    }

    fn end_step(&mut self, told: &mut Vec<Value>) {
        if std::mem::take(&mut self.in_step) {
            told.push(json!({"type": "finish-step"}));
        }
    }

    fn tell(&mut self, said: Vec<Said>) -> Vec<Value> {
        let mut told = Vec::new();
        for Said { lane, what } in said {
            if let What::AnswerEnded { usage, .. } = &what {
                self.usage += *usage;
            }
            match lane {
                Some(lane) => told.extend(self.agent(&lane, what)),
                None => self.write(what, &mut told),
            }
        }
        told
    }

    fn write(&mut self, what: What, told: &mut Vec<Value>) {
        match what {
            What::Step(_) => {
                self.end_step(told);
                self.in_step = true;
                told.push(json!({"type": "start-step"}));
            }
            What::TextStarted { message } => told.push(json!({"type": "text-start", "id": message})),
            What::Text { message, delta } => told.push(json!({"type": "text-delta", "id": message, "delta": delta})),
            What::TextEnded { message } => told.push(json!({"type": "text-end", "id": message})),
            What::ThoughtStarted { thought } => told.push(json!({"type": "reasoning-start", "id": thought})),
            What::Thought { thought, delta } => {
                told.push(json!({"type": "reasoning-delta", "id": thought, "delta": delta}));
            }
            What::ThoughtEnded { thought } => told.push(json!({"type": "reasoning-end", "id": thought})),
            What::CallStarted { call, name, .. } => told.push(self.begin_call(call, &name)),
            What::Arguments { call, delta } => told.push(self.add_arguments(&call, &delta)),
            What::CallEnded { call } => told.extend(self.end_call(&call)),
            // A result of a call that the chat does not show would break its stream.
            What::CallAnswered { call, name, output } if self.shown.contains(&call) => {
                told.push(self.answer_call(&call, &name, &output));
            }
            What::Progress { call, progress } if self.shown.contains(&call) => {
                let data = json!({"toolCallId": call, "progress": progress});
                told.push(json!({"type": "data-progress", "id": call, "data": data, "transient": true}));
            }
            What::Retracted { messages, calls } => {
                let data = json!({"messages": messages, "calls": calls});
                told.push(json!({"type": "data-retracted", "data": data}));
            }
            What::Heard { message, text } => {
                told.push(json!({"type": "data-heard", "id": message, "data": {"text": text}}));
            }
            What::Notice(kind) => told.push(notice(kind)),
            _ => {}
        }
    }

    fn begin_call(&mut self, call: String, name: &str) -> Value {
        let part = self.about(&call, name, json!({"type": "tool-input-start"}));
        self.shown.insert(call.clone());
        self.calls.insert(call, (name.to_owned(), String::new()));
        part
    }

    fn add_arguments(&mut self, call: &str, delta: &str) -> Value {
        if let Some((_, arguments)) = self.calls.get_mut(call) {
            arguments.push_str(delta);
        }
        json!({"type": "tool-input-delta", "toolCallId": call, "inputTextDelta": delta})
    }

    fn end_call(&mut self, call: &str) -> Option<Value> {
        let (name, arguments) = self.calls.remove(call)?;
        let input = serde_json::from_str(&arguments).unwrap_or(Value::String(arguments));
        Some(self.about(call, &name, json!({"type": "tool-input-available", "input": input})))
    }

    fn answer_call(&self, call: &str, name: &str, output: &ToolOutput) -> Value {
        let mut part = match output.is_error() {
            true => json!({"type": "tool-output-error", "errorText": output.to_text()}),
            false => {
                let value = output.as_value().cloned().unwrap_or_else(|| output.to_text().into());
                json!({"type": "tool-output-available", "output": value})
            }
        };
        part["toolCallId"] = call.into();
        self.mark(name, &mut part);
        part
    }

    /// Completes a part about a call: with the tool's name, which the client's types lack, and the
    /// place of execution.
    fn about(&self, call: &str, name: &str, mut part: Value) -> Value {
        (part["toolCallId"], part["toolName"]) = (call.into(), name.into());
        self.mark(name, &mut part);
        part
    }

    fn mark(&self, name: &str, part: &mut Value) {
        part["dynamic"] = true.into();
        if !self.client_tools.contains(name) {
            part["providerExecuted"] = true.into();
        }
    }

    /// Updates the part of a sub-agent, and returns it if it changed.
    fn agent(&mut self, lane: &str, what: What) -> Option<Value> {
        let mut changed = Map::new();
        let mut set = |name: &str, value: Value| {
            changed.insert(name.to_owned(), value);
        };
        match what {
            What::LaneStarted { name, parent, call } => {
                set("name", (*name).into());
                set("status", "running".into());
                set("text", "".into());
                set("parent", parent.map_or(Value::Null, |parent| (*parent).into()));
                set("toolCallId", call.map_or(Value::Null, Value::from));
            }
            What::Text { delta, .. } => {
                // Sent when the text has ended.
                if let Some(Value::String(text)) = self.agents.get_mut(lane).and_then(|agent| agent.get_mut("text")) {
                    text.push_str(&delta);
                }
                return None;
            }
            What::TextStarted { .. } => {
                if let Some(agent) = self.agents.get_mut(lane) {
                    agent["text"] = "".into();
                }
                return None;
            }
            What::TextEnded { .. } => {}
            What::CallStarted { name, .. } => set("tool", (*name).into()),
            What::LaneEnded { status, error, .. } => {
                set("status", status_of(&status).into());
                set("error", error.map_or(Value::Null, Value::from));
            }
            _ => return None,
        }
        let agent = self.agents.entry(lane.to_owned()).or_insert_with(|| json!({}));
        agent.as_object_mut()?.extend(changed);
        Some(json!({"type": "data-agent", "id": lane, "data": agent}))
    }
}

/// Converts any other event.
fn notice(kind: EventKind) -> Value {
    match kind {
        EventKind::Custom { name, value } if name == STATE => {
            json!({"type": "data-state", "id": "state", "data": value})
        }
        EventKind::Custom { name, value } => {
            json!({"type": format!("data-{name}"), "data": value, "transient": true})
        }
        kind => json!({"type": "data-notice", "data": kind, "transient": true}),
    }
}

fn status_of(status: &RunStatus) -> &'static str {
    match status {
        RunStatus::Finished(_) => "finished",
        RunStatus::Interrupted => "waiting",
        RunStatus::Paused => "paused",
        RunStatus::Cancelled => "cancelled",
        _ => "failed",
    }
}
