//! The run of one call.

use std::{collections::BTreeMap, sync::Arc};

use agent_core::{
    Answer, Checkpoint, Error, ErrorKind, Event, EventKind, Result, RunEnd, RunIds, RunRequest, SubAgent, Tool,
    ToolCall, ToolOutput, ToolRequest,
    engine::{Emitter, EventHub, RunDriver, RunLog, RunParts},
    journal::MemoryJournal,
    storage::{GlobalStorage, State},
};
use rmcp::{
    RoleServer,
    model::{CallToolResult, ProgressNotificationParam},
    service::RequestContext,
};
use serde_json::Value;
use tokio::sync::mpsc;

use super::{Entry, What, ask, content};

/// How much progress may wait for a client that reads slowly; more is left out.
const PROGRESS: usize = 64;

/// Calls what the client asks for.
pub(super) async fn call(
    server: &str,
    entry: &Entry,
    args: Value,
    context: &RequestContext<RoleServer>,
) -> CallToolResult {
    let called = async {
        entry.schema.check(&args, &[])?;
        match &entry.what {
            What::Tool(tool) => of_tool(server, entry, &**tool, args, context).await,
            What::Agent(agent) => of_agent(agent, &args, context).await,
        }
    };
    let cancelled = async {
        context.ct.cancelled().await;
        Err(Error::new(ErrorKind::Cancelled, "The call was cancelled."))
    };
    let called = futures::future::select(Box::pin(called), Box::pin(cancelled)).await.factor_first().0;
    called.map_or_else(|error| content::failure(&error), |output| content::result(&output))
}

async fn of_tool(
    server: &str,
    entry: &Entry,
    tool: &dyn Tool,
    args: Value,
    context: &RequestContext<RoleServer>,
) -> Result<ToolOutput> {
    tool.warm_up().await?;
    let mut kept = Kept::new(RunIds::root(server, "call"));
    loop {
        let (run, log) = kept.run(context)?;
        let told = progress(&run, context);
        let name = entry.spec.name.as_str();
        let call = ToolCall { id: "call".into(), name: name.into(), arguments: args.to_string(), raw: None };
        let mut req = ToolRequest::new(run.cx().clone(), call, args.clone());
        (req.effect, req.resumed) = (entry.options.effect, !kept.answers.is_empty());
        req.tool = Some(Arc::new(entry.spec.clone()));
        let called = match entry.options.timeout {
            None => tool.call(req).await,
            Some(most) => tokio::time::timeout(most, tool.call(req)).await.unwrap_or_else(|_| {
                Err(Error::new(
                    ErrorKind::Timeout,
                    format!("The tool took longer than {} seconds.", most.as_secs_f64()),
                ))
            }),
        };
        drop(told);
        match called {
            Err(error) if error.kind() == ErrorKind::Interrupted => {
                kept.stood = Some(log.at_rest());
                kept.answers.extend(ask::all(error.questions(), context).await?);
            }
            done => return done,
        }
    }
}

async fn of_agent(agent: &SubAgent, args: &Value, context: &RequestContext<RoleServer>) -> Result<ToolOutput> {
    let mut request = RunRequest::user(args["task"].as_str().unwrap_or_default());
    loop {
        match agent.service.run(request).await? {
            RunEnd::Finished(finished) => return Ok(ToolOutput::text(finished.answer)),
            RunEnd::Interrupted(checkpoint) => {
                let answers = ask::all(&checkpoint.questions, context).await?;
                request = RunRequest::resume_with(*checkpoint, answers);
            }
            other => return Err(Error::tool(format!("The agent's run was {}.", other.as_str()))),
        }
    }
}

/// What a call keeps while its client's user is asked.
struct Kept {
    ids: Arc<RunIds>,
    answers: BTreeMap<String, Answer>,
    state: State,
    globals: GlobalStorage,
    /// Where its run stood: what it decided before it asked.
    stood: Option<Checkpoint>,
}

impl Kept {
    fn new(ids: RunIds) -> Self {
        let (answers, state, globals) = (BTreeMap::new(), State::default(), GlobalStorage::default());
        Self { ids: Arc::new(ids), answers, state, globals, stood: None }
    }

    /// A run that ends when the client cancels the call.
    fn run(&self, context: &RequestContext<RoleServer>) -> Result<(RunDriver, RunLog)> {
        let (ids, journal) = (self.ids.clone(), Arc::new(MemoryJournal::default()));
        let writer = journal.open_now(&ids.session, &ids.agent_id)?;
        let emitter = Emitter::new(ids.clone(), EventHub::new(journal.clone(), ids.session.clone()), None);
        let (state, globals) = (self.state.clone(), self.globals.clone());
        let log = RunLog::new(ids.clone(), journal, writer, emitter.clone(), state.clone(), globals.clone());
        self.stood.iter().for_each(|stood| log.adopt(stood));
        let mut parts = RunParts::new(ids, emitter, log.clone());
        (parts.state, parts.globals) = (state, globals);
        (parts.answers, parts.cancel) = (self.answers.clone(), context.ct.clone());
        Ok((RunDriver::new(parts), log))
    }
}

/// Tells the client of the run's progress, if it wants to hear of it, for as long as what is given back lives.
fn progress(run: &RunDriver, context: &RequestContext<RoleServer>) -> Option<mpsc::Sender<Value>> {
    let token = context.meta.get_progress_token()?;
    let (sender, mut told) = mpsc::channel::<Value>(PROGRESS);
    let (notes, peer) = (sender.downgrade(), context.peer.clone());
    run.cx().attach(Arc::new(move |event: &Event| {
        if let (EventKind::ToolProgress { progress, .. }, Some(notes)) = (&event.kind, notes.upgrade()) {
            let _ = notes.try_send(progress.clone());
        }
    }));
    tokio::spawn(async move {
        let mut count = 0.0;
        while let Some(progress) = told.recv().await {
            count += 1.0;
            // What a tool tells has any form; the protocol wants a number that grows.
            let number = progress["progress"].as_f64().unwrap_or(count);
            let mut note = ProgressNotificationParam::new(token.clone(), number);
            note.total = progress["total"].as_f64();
            let message = progress.get("message").unwrap_or(&progress);
            note.message = Some(message.as_str().map_or_else(|| message.to_string(), str::to_owned));
            if peer.notify_progress(note).await.is_err() {
                return;
            }
        }
    });
    Some(sender)
}
