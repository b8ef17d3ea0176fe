//! Helpers of the suites: tools made from closures, a log, an event recorder, and shortcuts to
//! inspect a run.
#![allow(dead_code, reason = "each suite uses a part of it")]

pub(crate) mod hooks;

use std::{
    fmt::Debug,
    sync::{Arc, Mutex, MutexGuard},
    time::Duration,
};

use agent_core::{
    BoxFuture, Checkpoint, Effect, Event, EventKind, Finished, History, Message, Middleware, Result, RunCx, RunEnd,
    Tool, ToolOptions, ToolOutput, ToolRequest, ToolSpec, async_trait,
};
use serde_json::{Value, json};

// --- results of a run ---

/// Returns the finished run.
pub(crate) fn finished(end: Result<RunEnd>) -> Finished {
    end.expect("the run does not fail").finished().expect("the run finishes")
}

/// Returns how a run stopped, and its checkpoint as another process would read it.
pub(crate) fn stopped(end: Result<RunEnd>) -> (&'static str, Checkpoint) {
    let end = end.expect("the run does not fail");
    let checkpoint = end.checkpoint().expect("the run does not finish");
    (end.as_str(), carried_over(checkpoint))
}

/// Returns the checkpoint as another process reads it.
pub(crate) fn carried_over(checkpoint: &Checkpoint) -> Checkpoint {
    Checkpoint::from_json(&checkpoint.to_json().expect("serialises")).expect("parses")
}

/// Returns the roles of a conversation's messages.
pub(crate) fn roles(history: &History) -> Vec<&'static str> {
    history.iter().map(Message::role).collect()
}

/// Returns the tool results of a conversation: id, text, and whether it is an error.
pub(crate) fn results(history: &History) -> Vec<(String, String, bool)> {
    let result = |m: &Message| m.as_tool().map(|tool| (tool.call_id().to_owned(), m.text(), tool.is_error()));
    history.iter().filter_map(result).collect()
}

pub(crate) fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

// --- tools ---

type Body = Box<dyn Fn(ToolRequest) -> BoxFuture<'static, Result<ToolOutput>> + Send + Sync>;

/// A tool made from a closure.
pub(crate) struct FnTool {
    spec: ToolSpec,
    options: ToolOptions,
    body: Body,
}

/// Returns a tool that accepts any arguments.
pub(crate) fn tool<F, Fut>(name: &str, body: F) -> FnTool
where
    F: Fn(ToolRequest) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<ToolOutput>> + Send + 'static,
{
    let anything = json!({"type": "object", "additionalProperties": true});
    FnTool {
        spec: ToolSpec::new(name, "", anything),
        options: ToolOptions::default(),
        body: Box::new(move |req| Box::pin(body(req))),
    }
}

impl FnTool {
    /// Accepts these parameters and no others.
    pub(crate) fn takes(mut self, properties: Value, required: &[&str]) -> Self {
        self.spec.parameters = json!({"type": "object", "required": required});
        self.spec.parameters["properties"] = properties;
        self
    }

    /// Declares that the tool may be repeated after a restart without a question.
    pub(crate) fn repeatable(self) -> Self {
        self.with(|options| options.effect(Effect::Idempotent))
    }

    pub(crate) fn with(mut self, change: impl FnOnce(ToolOptions) -> ToolOptions) -> Self {
        self.options = change(self.options);
        self
    }
}

#[async_trait]
impl Tool for FnTool {
    fn spec(&self) -> ToolSpec {
        self.spec.clone()
    }

    fn options(&self) -> ToolOptions {
        self.options.clone()
    }

    async fn call(&self, req: ToolRequest) -> Result<ToolOutput> {
        (self.body)(req).await
    }
}

/// Returns a tool that doubles the integer `x`.
pub(crate) fn double(name: &str) -> FnTool {
    let twice = async |req: ToolRequest| Ok(ToolOutput::value(json!(req.args["x"].as_i64().expect("checked") * 2)));
    tool(name, twice).takes(json!({"x": {"type": "integer"}}), &["x"])
}

/// Returns a tool that always returns this value.
pub(crate) fn gives(name: &str, value: Value) -> FnTool {
    tool(name, move |_| {
        let value = value.clone();
        async { Ok(ToolOutput::value(value)) }
    })
}

/// Returns a tool that fails with this message.
pub(crate) fn fails(name: &str, message: &'static str) -> FnTool {
    tool(name, move |_| async move { Err(agent_core::Error::tool(message)) })
}

/// Returns a tool that takes `millis` milliseconds, and logs its call's id when it begins and when
/// it ends.
pub(crate) fn slow(name: &str, millis: u64, log: &Log) -> FnTool {
    let log = log.clone();
    tool(name, move |req| {
        let (log, id) = (log.clone(), req.call.id.clone());
        async move {
            log.note(format!("{id} begins"));
            tokio::time::sleep(ms(millis)).await;
            log.note(format!("{id} ends"));
            Ok(ToolOutput::text(&*id))
        }
    })
}

/// Returns a tool that never ends, and logs its call's id when it begins and when it is dropped.
pub(crate) fn hangs(name: &str, log: &Log) -> FnTool {
    struct Dropped(Log, String);

    impl Drop for Dropped {
        fn drop(&mut self) {
            self.0.note(format!("{} dropped", self.1));
        }
    }

    let log = log.clone();
    tool(name, move |req| {
        let dropped = Dropped(log.clone(), req.call.id.to_string());
        async move {
            dropped.0.note(format!("{} begins", dropped.1));
            std::future::pending().await
        }
    })
}

// --- observing ---

/// Lines that tools and hooks write, in order. Clones share one log.
#[derive(Clone, Debug, Default)]
pub(crate) struct Log(Arc<Mutex<Vec<String>>>);

impl Log {
    pub(crate) fn note(&self, line: impl Into<String>) {
        self.lock().push(line.into());
    }

    pub(crate) fn seen(&self) -> Vec<String> {
        self.lock().clone()
    }

    fn lock(&self) -> MutexGuard<'_, Vec<String>> {
        self.0.lock().expect("nobody panics with the log")
    }
}

/// A middleware that records the events of each run. Clones share the record.
#[derive(Clone, Debug, Default)]
pub(crate) struct Watch(Arc<Mutex<Vec<Event>>>);

impl Watch {
    pub(crate) fn events(&self) -> Vec<Event> {
        self.0.lock().expect("nobody panics with the events").clone()
    }

    /// Returns the values that `pick` extracts from the events.
    pub(crate) fn pick<T: Debug>(&self, pick: impl Fn(EventKind) -> Option<T>) -> Vec<T> {
        self.events().into_iter().filter_map(|event| pick(event.kind)).collect()
    }

    pub(crate) fn warnings(&self) -> Vec<String> {
        self.pick(|kind| match kind {
            EventKind::Warning { message } => Some(message),
            _ => None,
        })
    }

    /// Returns the answered calls: id, text, and whether it is an error.
    pub(crate) fn answered(&self) -> Vec<(String, String, bool)> {
        self.pick(|kind| match kind {
            EventKind::ToolAnswered { call_id, output, .. } => {
                Some((call_id.to_string(), output.to_text(), output.is_error()))
            }
            _ => None,
        })
    }
}

#[async_trait]
impl Middleware for Watch {
    fn name(&self) -> &str {
        "watch"
    }

    async fn before_agent(&self, cx: &RunCx) -> Result<()> {
        let events = self.0.clone();
        cx.attach(Arc::new(move |event: &Event| events.lock().expect("free").push(event.clone())));
        Ok(())
    }
}
