//! `POST /ag-ui/{agent}`.

use agent::{Checkpoint, Message, RunRequest, WhenWaiting, tool::ToolSpec};
use axum::{
    Json, Router,
    extract::{Path, State},
    response::Response,
    routing::get,
};
use futures::StreamExt;
use serde_json::{Value, json};

use super::{Projection, event::AgUiEvent, input::RunAgentInput, news::News, resume, state::ClientState};
use crate::{
    ApiError, App, Caller, FoundRun, Scope, Start, client_tools,
    extract::JsonBody,
    follow::{self, Teller, WhenGone, follow},
    speech::Ending,
    sse::{self, Frame},
};

pub(crate) fn router() -> Router<App> {
    Router::new().route("/ag-ui/{agent}", get(capabilities).post(run))
}

/// What the agent can do, as the protocol describes it.
async fn capabilities(
    State(app): State<App>,
    caller: Caller,
    Path(agent): Path<String>,
) -> Result<Json<Value>, ApiError> {
    caller.require(Scope::Read)?;
    let served = app.agent(&caller, &agent)?;
    let model = served.agent().model();
    let tools: Vec<_> =
        served.agent().tools().iter().map(|tool| json!({"name": tool.name, "description": tool.description})).collect();
    Ok(Json(json!({
        "identity": {"name": served.name(), "description": served.about()},
        "transport": {"streaming": true, "websocket": false, "httpBinary": false, "pushNotifications": false, "resumable": false},
        "tools": {"supported": model.tools, "items": tools, "clientProvided": model.tools},
        "state": {"snapshots": true, "deltas": true},
        "multiAgent": {"supported": true},
        "reasoning": {"supported": true, "streaming": true, "encrypted": true},
        "humanInTheLoop": {"supported": true, "approvals": true, "interrupts": true, "approveWithEdits": true},
    })))
}

async fn run(
    State(app): State<App>,
    caller: Caller,
    Path(agent): Path<String>,
    JsonBody(input): JsonBody<RunAgentInput>,
) -> Result<Response, ApiError> {
    let gone = match input.forwarded_props["detach"] == true {
        true => WhenGone::GoOn,
        false => WhenGone::Cancel,
    };
    let projection = Projection::new(&input.thread_id, &input.run_id).with_messages(input.messages.clone());
    let (run, after) = begin(&app, &caller, &agent, &input).await?;
    let events = follow(run, after, gone, projection).await?;
    Ok(sse::plain(events.map(|event| Frame::new(event.to_json()))))
}

/// Starts a run, or goes on with the one that waits; gives the place after which it is new.
async fn begin(
    app: &App,
    caller: &Caller,
    agent: &str,
    input: &RunAgentInput,
) -> Result<(FoundRun, Option<agent::event::Position>), ApiError> {
    let own = app.agent(caller, agent)?.agent().tools().to_vec();
    let session = app.sessions().session(&app.session_id(caller, &input.thread_id), agent);
    let news = News::of(input, &session.history().await?)?;
    let resume = input.resume.as_deref().unwrap_or_default();
    let open = session.unfinished().await?;
    let tools = client_tools::tools(specs(input), &own)?;
    let state = input.state.clone();
    let shape = move |request: RunRequest| {
        let request = request.more_tools(tools);
        if state.is_object() { request.resource(ClientState(state)) } else { request }
    };
    if let Some(open) = &open
        && let Some(answers) = goes_on(open, resume, &news)?
    {
        if !resume.is_empty() {
            caller.require(Scope::Answer)?;
        }
        caller.require(Scope::Run)?;
        let run = app.run(caller, &open.ids.run_id, Some(&input.thread_id)).await?;
        let after = follow::at_rest(app, &run).await?;
        let run = app.go_on(caller, &run, answers, shape).await?;
        if let Some(handle) = run.handle() {
            news.messages.into_iter().try_for_each(|message: Message| handle.steer(message))?;
        }
        return Ok((run, Some(after)));
    }
    if !resume.is_empty() {
        return Err(ApiError::conflict("answer_refused", "nothing waits in this thread"));
    }
    if news.messages.is_empty() {
        return Err(ApiError::invalid("there is nothing new: the messages end with the agent's, and no call is open"));
    }
    let mut request = shape(RunRequest::new(news.messages));
    // Who says something else does not answer the calls of his own tools; what a person is asked stays asked.
    if open.is_some_and(|open| open.questions.iter().all(|question| question.kind == client_tools::KIND)) {
        request = request.when_waiting(WhenWaiting::Supersede);
    }
    let start = Start::new(agent, request).session(&input.thread_id);
    let start = news.key.into_iter().fold(start, Start::key);
    Ok((app.start(caller, start).await?, None))
}

/// The answers with which an unfinished run is gone on with; none if the request is about something else.
fn goes_on(
    open: &Checkpoint,
    resume: &[super::input::Resume],
    news: &News,
) -> Result<Option<Vec<(String, agent::run::Answer)>>, ApiError> {
    let mut answers = resume::answers(open, resume)?;
    answers.extend(client_tools::answers(open, &news.results));
    // A run that was paused, cancelled or failed waits for nobody: it is gone on with if nothing else is wanted.
    let is_asked = !resume.is_empty() || !answers.is_empty();
    let is_retried = open.questions.is_empty() && news.messages.is_empty();
    Ok((is_asked || is_retried).then_some(answers))
}

fn specs(input: &RunAgentInput) -> impl Iterator<Item = ToolSpec> {
    let tools = input.tools.iter().flatten();
    tools.map(|tool| ToolSpec::new(tool.name.clone(), tool.description.clone(), tool.parameters.clone()))
}

impl Teller for Projection {
    type Told = AgUiEvent;

    fn start(&mut self) -> Vec<AgUiEvent> {
        Self::start(self)
    }

    fn event(&mut self, event: &agent::Event) -> Vec<AgUiEvent> {
        Self::event(self, event)
    }

    fn end(&mut self, ending: &Ending) -> Vec<AgUiEvent> {
        Self::end(self, ending)
    }
}
