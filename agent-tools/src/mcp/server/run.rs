//! Run of one call.

use std::{collections::BTreeMap, sync::Arc};

use agent_core::{
    Answer, Checkpoint, Error, ErrorKind, Resources, Result, RunEnd, RunIds, RunRequest, SubAgent, Tool, ToolCall,
    ToolOutput, ToolRequest,
    engine::{Emitter, EventHub, RunDriver, RunLog, RunParts},
    journal::MemoryJournal,
    storage::{GlobalStorage, State},
};
use rmcp::{RoleServer, model::CallToolResult, service::RequestContext};
use serde_json::Value;

use super::{
    Caller, ask, content,
    handler::Handler,
    notes::Notes,
    offers::{Entry, What},
};

/// Runs the tool that the client calls.
pub(super) async fn call(
    handler: &Handler,
    entry: &Entry,
    args: Value,
    context: &RequestContext<RoleServer>,
) -> CallToolResult {
    let notes = Notes::new(context.peer.clone(), context.meta.get_progress_token());
    let server = &*handler.server.0.about.name;
    let caller = Caller::new(server, &handler.connection, context, &notes);
    let called = async {
        entry.schema.check(&args, &[])?;
        match &entry.what {
            What::Tool(tool) => {
                let kept = Kept::new(RunIds::root(server, &*handler.connection.session), caller);
                of_tool(kept, entry, &**tool, args, context, &notes).await
            }
            What::Agent(agent) => of_agent(agent, &args, context, caller).await,
        }
    };
    let cancelled = async {
        context.ct.cancelled().await;
        Err(Error::new(ErrorKind::Cancelled, "The call was cancelled."))
    };
    let called = futures::future::select(Box::pin(called), Box::pin(cancelled)).await.factor_first().0;
    notes.finish().await;
    called.map_or_else(|error| content::failure(&error), |output| content::result(&output))
}

async fn of_tool(
    mut kept: Kept,
    entry: &Entry,
    tool: &dyn Tool,
    args: Value,
    context: &RequestContext<RoleServer>,
    notes: &Notes,
) -> Result<ToolOutput> {
    tool.warm_up().await?;
    loop {
        let (run, log) = kept.run(context)?;
        notes.watch(run.cx());
        let name = entry.spec.name.as_str();
        let call = ToolCall { id: "call".into(), name: name.into(), arguments: args.to_string(), raw: None };
        let mut req = ToolRequest::new(run.cx().clone(), call, args.clone());
        (req.effect, req.hints) = (entry.options.effect, entry.options.hints);
        req.resumed = !kept.answers.is_empty();
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
        match called {
            Err(error) if error.kind() == ErrorKind::Interrupted => {
                kept.stood = Some(log.at_rest());
                kept.answers.extend(ask::all(error.questions(), context).await?);
            }
            done => return done,
        }
    }
}

async fn of_agent(
    agent: &SubAgent,
    args: &Value,
    context: &RequestContext<RoleServer>,
    caller: Caller,
) -> Result<ToolOutput> {
    let mut request = RunRequest::user(args["task"].as_str().unwrap_or_default());
    loop {
        match agent.service.run(request.resource(caller.clone())).await? {
            RunEnd::Finished(finished) => return Ok(ToolOutput::text(finished.answer)),
            RunEnd::Interrupted(checkpoint) => {
                let answers = ask::all(&checkpoint.questions, context).await?;
                request = RunRequest::resume_with(*checkpoint, answers);
            }
            other => return Err(Error::tool(format!("The agent's run was {}.", other.as_str()))),
        }
    }
}

/// State of a call while its client's user answers a question.
struct Kept {
    ids: Arc<RunIds>,
    answers: BTreeMap<String, Answer>,
    state: State,
    globals: GlobalStorage,
    resources: Resources,
    /// Checkpoint of the run: its journalled decisions before the question.
    stood: Option<Checkpoint>,
}

impl Kept {
    fn new(ids: RunIds, caller: Caller) -> Self {
        let (answers, state, globals) = (BTreeMap::new(), State::default(), GlobalStorage::default());
        Self { ids: Arc::new(ids), answers, state, globals, resources: Resources::default().with(caller), stood: None }
    }

    /// Creates a run that is cancelled when the client cancels the call.
    fn run(&self, context: &RequestContext<RoleServer>) -> Result<(RunDriver, RunLog)> {
        let (ids, journal) = (self.ids.clone(), Arc::new(MemoryJournal::default()));
        let writer = journal.open_now(&ids.session, &ids.agent_id)?;
        let emitter = Emitter::new(ids.clone(), EventHub::new(journal.clone(), ids.session.clone()), None);
        let (state, globals) = (self.state.clone(), self.globals.clone());
        let log = RunLog::new(ids.clone(), journal, writer, emitter.clone(), state.clone(), globals.clone());
        self.stood.iter().for_each(|stood| log.adopt(stood));
        let mut parts = RunParts::new(ids, emitter, log.clone());
        (parts.state, parts.globals, parts.resources) = (state, globals, self.resources.clone());
        (parts.answers, parts.cancel) = (self.answers.clone(), context.ct.clone());
        Ok((RunDriver::new(parts), log))
    }
}
