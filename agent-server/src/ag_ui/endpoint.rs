//! AG-UI endpoint `POST /ag-ui/{agent}`.

use agent::RunRequest;
use axum::{
    Json, Router,
    extract::{Path, State},
    response::Response,
    routing::get,
};
use futures::StreamExt;
use http::{HeaderMap, header};
use serde_json::{Value, json};

use super::{Projection, binary, event::AgUiEvent, input::RunAgentInput};
use crate::{
    ApiError, App, Caller, Scope,
    client_tools::ClientState,
    conversation::Began,
    extract::JsonBody,
    follow::{Teller, WhenGone, follow},
    speech::Ending,
    sse::{self, Frame},
};

pub(crate) fn router() -> Router<App> {
    Router::new().route("/ag-ui/{agent}", get(capabilities).post(run))
}

/// Returns the agent's capabilities in the protocol's form.
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
        "transport": {"streaming": true, "websocket": false, "httpBinary": true, "pushNotifications": false, "resumable": false},
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
    headers: HeaderMap,
    JsonBody(input): JsonBody<RunAgentInput>,
) -> Result<Response, ApiError> {
    let gone = match input.forwarded_props["detach"] == true {
        true => WhenGone::GoOn,
        false => WhenGone::Cancel,
    };
    let projection = Projection::new(&input.thread_id, &input.run_id).with_messages(input.messages.clone());
    let state = input.state.clone();
    let shape = |request: RunRequest| match state.is_object() {
        true => request.resource(ClientState(state)),
        false => request,
    };
    let open = app.stream()?;
    let Began { run, after } = input.turn()?.begin(&app, &caller, &agent, &input.thread_id, shape).await?;
    let events = follow(open, run, after, gone, projection).await?;
    let accepted = headers.get_all(header::ACCEPT).iter().filter_map(|accept| accept.to_str().ok());
    if accepted.into_iter().any(|accept| accept.contains(binary::MEDIA_TYPE)) {
        let frames = events.filter_map(async |event| binary::frame(&event));
        return Ok(sse::of_bytes(frames, binary::MEDIA_TYPE));
    }
    Ok(sse::plain(events.map(|event| Frame::json(&event))))
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
