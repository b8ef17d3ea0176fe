//! Endpoint `POST /ui/{agent}`.

use agent::Event;
use axum::{
    Router,
    extract::{Path, State},
    response::Response,
    routing::post,
};
use futures::{StreamExt, stream};
use http::HeaderValue;
use serde_json::Value;

use super::{UiStream, input::ChatInput};
use crate::{
    ApiError, App, Caller,
    conversation::Began,
    extract::JsonBody,
    follow::{Teller, WhenGone, follow},
    speech::Ending,
    sse::{self, Frame},
};

pub(crate) fn router() -> Router<App> {
    Router::new().route("/ui/{agent}", post(run))
}

async fn run(
    State(app): State<App>,
    caller: Caller,
    Path(agent): Path<String>,
    JsonBody(input): JsonBody<ChatInput>,
) -> Result<Response, ApiError> {
    let turn = input.turn();
    let mut projection =
        UiStream::new().client_tools(turn.tools.iter().map(|tool| tool.name.clone())).calls(input.calls());
    let open = app.stream()?;
    let Began { run, after } = turn.begin(&app, &caller, &agent, &input.id, |request| request).await?;
    if !input.goes_on() {
        projection = projection.message(run.id());
    }
    let gone = if input.detach { WhenGone::GoOn } else { WhenGone::Cancel };
    let parts = follow(open, run, after, gone, projection).await?;
    let done = stream::once(async { Frame::done() });
    let mut response = sse::plain(parts.map(|part| Frame::json(&part)).chain(done));
    response.headers_mut().insert("x-vercel-ai-ui-message-stream", HeaderValue::from_static("v1"));
    Ok(response)
}

impl Teller for UiStream {
    type Told = Value;

    fn start(&mut self) -> Vec<Value> {
        Self::start(self)
    }

    fn event(&mut self, event: &Event) -> Vec<Value> {
        Self::event(self, event)
    }

    fn end(&mut self, ending: &Ending) -> Vec<Value> {
        Self::end(self, ending)
    }
}
