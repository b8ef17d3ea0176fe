//! MCP endpoint `/mcp/{agent}`.

use std::{
    collections::VecDeque,
    convert::Infallible,
    sync::{Arc, Mutex, PoisonError},
};

use agent::{
    core::run::SubAgent,
    tools::mcp::{HttpService, Server},
};
use axum::{
    Extension, Router,
    body::Body,
    extract::{Path, Request, State},
    response::{IntoResponse, Response},
    routing::any,
};
use futures::StreamExt;
use http::Method;

use super::runs::Runs;
use crate::{ApiError, App, Caller, Scope, app::Served, extract};

/// Maximum number of callers with open connections; the least recently active ones are dropped
/// first, and their clients must reconnect.
const MOST: usize = 1_000;

pub(crate) fn router() -> Router<App> {
    Router::new().route("/mcp/{agent}", any(answer)).layer(Extension(Doors::default()))
}

/// MCP services by caller: no caller reaches the connections of another.
#[derive(Clone, Debug, Default)]
struct Doors(Arc<Mutex<VecDeque<Door>>>);

#[derive(Debug)]
struct Door {
    caller: Caller,
    agent: String,
    service: HttpService,
}

impl Doors {
    fn service(&self, app: &App, caller: &Caller, served: &Served) -> Result<HttpService, ApiError> {
        let mut doors = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let door = match doors.iter().position(|door| door.agent == served.name() && door.caller == *caller) {
            Some(at) => doors.remove(at).expect("the position was just found"),
            None => {
                let service = server(app, caller, served)?.http_service();
                Door { caller: caller.clone(), agent: served.name().to_owned(), service }
            }
        };
        let service = door.service.clone();
        doors.truncate(MOST - 1);
        doors.push_front(door);
        Ok(service)
    }
}

fn server(app: &App, caller: &Caller, served: &Served) -> Result<Server, ApiError> {
    let about = if served.about().is_empty() { "Answers questions." } else { served.about() };
    let runs = Runs { app: app.clone(), caller: caller.clone(), agent: served.name().into() };
    let agent = SubAgent::new(served.name(), about, runs);
    Ok(Server::builder(served.name()).version(env!("CARGO_PKG_VERSION")).agent(agent).build()?)
}

async fn answer(
    State(app): State<App>,
    Extension(doors): Extension<Doors>,
    caller: Caller,
    Path(agent): Path<String>,
    request: Request,
) -> Result<Response, ApiError> {
    caller.require(Scope::Run)?;
    // A client may hold a stream for events open for as long as it likes.
    let open = (request.method() == Method::GET).then(|| app.stream()).transpose()?;
    let service = doors.service(&app, &caller, &app.agent(&caller, &agent)?)?;
    let (head, body) = request.into_parts();
    let body = extract::body(Request::from_parts(head.clone(), body), &()).await?;
    let answer = service.answer(http::Request::from_parts(head, body)).await;
    let counted = move |chunk| {
        let _ = &open;
        Ok::<_, Infallible>(chunk)
    };
    Ok(answer.map(|body| Body::from_stream(body.map(counted))).into_response())
}
