//! MCP endpoint `/mcp/{agent}`.

use std::{
    collections::{HashMap, VecDeque},
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
use crate::{ApiError, App, Caller, Scope, app::Served, extract, trace};

/// Maximum number of callers of one tenant with open sessions; the least recently active ones are
/// dropped first, and their clients must reconnect.
const MOST: usize = 100;

pub(crate) fn router() -> Router<App> {
    Router::new().route("/mcp/{agent}", any(answer)).layer(Extension(McpSessions::default()))
}

/// MCP services by tenant and caller, most recently active first: no caller reaches the sessions of
/// another, or displaces those of another tenant.
#[derive(Clone, Debug, Default)]
struct McpSessions(Arc<Mutex<HashMap<String, VecDeque<McpService>>>>);

/// MCP service of one caller and agent.
#[derive(Clone, Debug)]
struct McpService {
    caller: Caller,
    agent: String,
    service: HttpService,
    trace: LatestTrace,
}

/// Trace context of the caller's latest request: calls are handled in tasks of their own.
pub(super) type LatestTrace = Arc<Mutex<Option<Arc<str>>>>;

impl McpSessions {
    fn service(&self, app: &App, caller: &Caller, served: &Served) -> Result<HttpService, ApiError> {
        let mut tenants = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let sessions = tenants.entry(caller.tenant().to_owned()).or_default();
        let is_it = |one: &McpService| one.agent == served.name() && one.caller == *caller;
        let session = match sessions.iter().position(is_it).and_then(|at| sessions.remove(at)) {
            Some(session) => session,
            None => {
                let trace = LatestTrace::default();
                let service = server(app, caller, served, trace.clone())?.http_service();
                McpService { caller: caller.clone(), agent: served.name().to_owned(), service, trace }
            }
        };
        *session.trace.lock().unwrap_or_else(PoisonError::into_inner) = trace::current();
        let service = session.service.clone();
        sessions.truncate(MOST - 1);
        sessions.push_front(session);
        Ok(service)
    }
}

fn server(app: &App, caller: &Caller, served: &Served, trace: LatestTrace) -> Result<Server, ApiError> {
    let about = if served.about().is_empty() { "Answers questions." } else { served.about() };
    let runs = Runs { app: app.clone(), caller: caller.clone(), agent: served.name().into(), trace };
    let agent = SubAgent::new(served.name(), about, runs);
    Ok(Server::builder(served.name()).version(env!("CARGO_PKG_VERSION")).agent(agent).build()?)
}

async fn answer(
    State(app): State<App>,
    Extension(sessions): Extension<McpSessions>,
    caller: Caller,
    Path(agent): Path<String>,
    request: Request,
) -> Result<Response, ApiError> {
    caller.require(Scope::Run)?;
    // A client may hold a stream for events open for as long as it likes.
    let open = (request.method() == Method::GET).then(|| app.stream()).transpose()?;
    let service = sessions.service(&app, &caller, &app.agent(&caller, &agent)?)?;
    let (head, body) = request.into_parts();
    let body = extract::body(Request::from_parts(head.clone(), body), &()).await?;
    let answer = service.answer(http::Request::from_parts(head, body)).await;
    let counted = move |chunk| {
        let _ = &open;
        Ok::<_, Infallible>(chunk)
    };
    Ok(answer.map(|body| Body::from_stream(body.map(counted))).into_response())
}
