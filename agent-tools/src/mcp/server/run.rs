//! Run of one call.

use std::{collections::BTreeMap, sync::Arc};

use agent_core::{
    Answer, Checkpoint, Error, ErrorKind, Resources, Result, RunEnd, RunIds, RunRequest, SubAgent, Tool, ToolCall,
    ToolOutput, ToolRequest,
    engine::{Emitter, EventHub, RunDriver, RunLog, RunParts},
    journal::MemoryJournal,
    run::Question,
    storage::{GlobalStorage, State},
};
use rmcp::{
    ErrorData, RoleServer,
    model::{
        CallToolRequestParams, CallToolResponse, ElicitRequest, ElicitResult, ErrorCode, InputRequest, InputRequests,
        InputResponses,
    },
    service::RequestContext,
};
use serde::Deserialize;
use serde_json::{Value, json};

use super::{
    Caller,
    ask::{self, Form, MISSING},
    content,
    handler::Handler,
    inputs::Inputs,
    notes::Notes,
    offers::{Entry, What},
    waiting::{Stage, Suspended},
};

/// Runs the tool that the client calls, from its beginning or with input that it requested.
pub(super) async fn call(
    handler: &Handler,
    entry: &Entry,
    params: CallToolRequestParams,
    context: &RequestContext<RoleServer>,
) -> Result<CallToolResponse, ErrorData> {
    let (waiting, tool) = (&handler.server.0.waiting, entry.spec.name.as_str());
    let args = Value::Object(params.arguments.unwrap_or_default());
    let resumed = match params.request_state {
        None => None,
        Some(state) => {
            let known = waiting.take(&state, tool, &args);
            let unknown = "the request state is unknown, expired or of another call: call the tool again without it";
            let mut suspended = known.ok_or_else(|| ErrorData::invalid_params(unknown, None))?;
            suspended.accept(params.input_responses.unwrap_or_default());
            if !suspended.requests.is_empty() {
                return Ok(waiting.keep(*suspended).into());
            }
            Some(suspended)
        }
    };
    let notes = Notes::new(context.peer.clone(), context.meta.get_progress_token());
    let inputs = is_stateless(context).then(Inputs::default);
    let server = &*handler.server.0.about.name;
    let caller = Caller::new(server, &handler.connection, context, &notes, inputs.clone());
    let called = async {
        entry.schema.check(&args, &[])?;
        let call = Call { entry, args: &args, context, notes: &notes, inputs };
        match &entry.what {
            What::Tool(tool) => {
                let mut ids = RunIds::root(server, &*handler.connection.session);
                ids.traceparent = context.meta.get_traceparent().map(Into::into);
                call.of_tool(&**tool, Kept::new(ids, caller), resumed).await
            }
            What::Agent(agent) => call.of_agent(agent, caller, resumed).await,
        }
    };
    let cancelled = async {
        context.ct.cancelled().await;
        Err(Error::new(ErrorKind::Cancelled, "The call was cancelled."))
    };
    let called = futures::future::select(Box::pin(called), Box::pin(cancelled)).await.factor_first().0;
    notes.finish().await;
    match called {
        Ok(Outcome::Suspended(suspended)) => Ok(waiting.keep(*suspended).into()),
        Ok(Outcome::Done(output)) => Ok(content::result(&output, is_stateless(context)).into()),
        Err(error) => match error.context(MISSING).filter(|_| is_stateless(context)) {
            Some(capability) => {
                let data = json!({"requiredCapabilities": {capability: {}}});
                let code = ErrorCode::MISSING_REQUIRED_CLIENT_CAPABILITY;
                Err(ErrorData::new(code, error.message().to_owned(), Some(data)))
            }
            None => Ok(content::failure(&error).into()),
        },
    }
}

/// Returns true if the client speaks a revision in which a server sends no requests.
pub(super) fn is_stateless(context: &RequestContext<RoleServer>) -> bool {
    context.protocol_version().is_some_and(|version| !version.has_initialize())
}

enum Outcome {
    Done(ToolOutput),
    /// The client must send input first.
    Suspended(Box<Suspended>),
}

/// One request of a client to call a tool.
struct Call<'a> {
    entry: &'a Entry,
    args: &'a Value,
    context: &'a RequestContext<RoleServer>,
    notes: &'a Notes,
    /// Inputs requested by a result; without them, the client is sent requests.
    inputs: Option<Inputs>,
}

impl Call<'_> {
    async fn of_tool(&self, tool: &dyn Tool, fresh: Kept, resumed: Option<Box<Suspended>>) -> Result<Outcome> {
        tool.warm_up().await?;
        let mut kept = match resumed {
            None => fresh,
            Some(suspended) => {
                let (answers, others) = answers(&suspended)?;
                let Stage::Tool(mut kept) = suspended.stage else { return Err(changed()) };
                kept.resources = fresh.resources;
                kept.answers.extend(answers);
                kept.given.extend(others);
                *kept
            }
        };
        if let Some(inputs) = &self.inputs {
            inputs.begin(kept.given.clone());
        }
        loop {
            let (run, log) = kept.run(self.context)?;
            self.notes.watch(run.cx());
            let called = tokio::select! {
                biased;
                called = self.attempt(tool, &run, !kept.answers.is_empty()) => called,
                () = self.wanted() => Err(Error::new(ErrorKind::Interrupted, "the client must send input")),
            };
            match called {
                Err(error) if error.kind() == ErrorKind::Interrupted => {
                    kept.stood = Some(log.at_rest());
                    let Some(inputs) = &self.inputs else {
                        kept.answers.extend(ask::all(error.questions(), self.context).await?);
                        continue;
                    };
                    let mut questions = run.take_questions();
                    questions.extend(error.questions().iter().cloned());
                    let open = inputs.take_open();
                    return self.suspend(questions, open, Stage::Tool(Box::new(kept)));
                }
                done => return done.map(Outcome::Done),
            }
        }
    }

    /// Enters the tool once.
    async fn attempt(&self, tool: &dyn Tool, run: &RunDriver, is_resumed: bool) -> Result<ToolOutput> {
        let name = self.entry.spec.name.as_str();
        let call = ToolCall { id: "call".into(), name: name.into(), arguments: self.args.to_string(), raw: None };
        let mut req = ToolRequest::new(run.cx().clone(), call, self.args.clone());
        (req.effect, req.hints) = (self.entry.options.effect, self.entry.options.hints);
        req.resumed = is_resumed;
        req.tool = Some(Arc::new(self.entry.spec.clone()));
        let Some(most) = self.entry.options.timeout else { return tool.call(req).await };
        tokio::time::timeout(most, tool.call(req)).await.unwrap_or_else(|_| {
            let message = format!("The tool took longer than {} seconds.", most.as_secs_f64());
            Err(Error::new(ErrorKind::Timeout, message))
        })
    }

    /// Waits for a request of the tool that goes to the client by a result.
    async fn wanted(&self) {
        match &self.inputs {
            Some(inputs) => inputs.wanted().await,
            None => std::future::pending().await,
        }
    }

    async fn of_agent(&self, agent: &SubAgent, caller: Caller, resumed: Option<Box<Suspended>>) -> Result<Outcome> {
        let mut request = match resumed {
            None => {
                let mut request = RunRequest::user(self.args["task"].as_str().unwrap_or_default());
                request.traceparent = self.context.meta.get_traceparent().map(Into::into);
                request
            }
            Some(suspended) => {
                let (answers, _) = answers(&suspended)?;
                let Stage::Agent(checkpoint) = suspended.stage else { return Err(changed()) };
                RunRequest::resume_with(*checkpoint, answers)
            }
        };
        loop {
            match agent.service.run(request.resource(caller.clone())).await? {
                RunEnd::Finished(finished) => return Ok(Outcome::Done(ToolOutput::text(finished.answer))),
                RunEnd::Interrupted(checkpoint) if self.inputs.is_some() => {
                    let questions = checkpoint.questions.clone();
                    return self.suspend(questions, InputRequests::new(), Stage::Agent(checkpoint));
                }
                RunEnd::Interrupted(checkpoint) => {
                    let answers = ask::all(&checkpoint.questions, self.context).await?;
                    request = RunRequest::resume_with(*checkpoint, answers);
                }
                other => return Err(Error::tool(format!("The agent's run was {}.", other.as_str()))),
            }
        }
    }

    /// Suspends the call until the client sends the answers to these questions, and these inputs.
    fn suspend(&self, asked: Vec<Question>, mut requests: InputRequests, stage: Stage) -> Result<Outcome> {
        let mut questions = BTreeMap::<String, (Question, Form)>::new();
        for question in asked {
            if questions.values().any(|(known, _)| known.id == question.id) {
                continue;
            }
            let (elicitation, form) = ask::request(&question, self.context)?;
            // The kind of a question is unique in most calls, and says more than its id.
            let key = if requests.contains_key(&question.kind) { &question.id } else { &question.kind }.clone();
            requests.insert(key.clone(), InputRequest::Elicitation(ElicitRequest::new(elicitation)));
            questions.insert(key, (question, form));
        }
        let (tool, args) = (self.entry.spec.name.clone(), self.args.clone());
        let responses = InputResponses::new();
        Ok(Outcome::Suspended(Box::new(Suspended { tool, args, requests, questions, responses, stage })))
    }
}

type Answers = Vec<(String, Answer)>;

/// Returns the answers to a call's questions, and its other inputs.
fn answers(suspended: &Suspended) -> Result<(Answers, InputResponses)> {
    let (mut answers, mut others) = (Vec::new(), InputResponses::new());
    for (key, response) in &suspended.responses {
        match suspended.questions.get(key) {
            None => drop(others.insert(key.clone(), response.clone())),
            Some((question, form)) => {
                let given = ElicitResult::deserialize(response);
                let given = given.map_err(|e| Error::tool("The answer cannot be read.").with_source(e))?;
                answers.push(question.answer(form.answer(given)?));
            }
        }
    }
    Ok((answers, others))
}

fn changed() -> Error {
    Error::tool("The tool was replaced since it requested input: call it again.")
}

/// State of a call while its client's user answers a question.
pub(super) struct Kept {
    ids: Arc<RunIds>,
    answers: BTreeMap<String, Answer>,
    /// Inputs of the client that are no answers.
    given: InputResponses,
    state: State,
    globals: GlobalStorage,
    resources: Resources,
    /// Checkpoint of the run: its journalled decisions before the question.
    stood: Option<Checkpoint>,
}

impl Kept {
    fn new(ids: RunIds, caller: Caller) -> Self {
        let (answers, state, globals) = (BTreeMap::new(), State::default(), GlobalStorage::default());
        let (given, resources) = (InputResponses::new(), Resources::default().with(caller));
        Self { ids: Arc::new(ids), answers, given, state, globals, resources, stood: None }
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
