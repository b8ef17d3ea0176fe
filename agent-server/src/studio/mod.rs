//! Studio: web UI to inspect agents, chat with them and answer their questions. A client of the
//! Runs API and nothing else.

mod assets;
mod one_tenant;

use axum::{
    Json, Router,
    extract::{Path, Request},
    middleware::{Next, from_fn},
    response::{IntoResponse, Redirect, Response},
    routing::get,
};
use http::{HeaderMap, Method};
use serde_json::json;

pub use self::one_tenant::OneTenant;
use crate::error::ApiError;

/// Web UI beside the API: chats, traces, flame charts, approvals, forks, comparison of runs.
///
/// All files are embedded in the binary, and nothing is loaded from elsewhere. Asks for a key if
/// the server requires one.
///
/// ```
/// use agent::{Agent, testing::{ScriptedModel, Turn}};
/// use agent_server::{Server, Studio};
///
/// # fn main() -> agent::Result<()> {
/// let agent = Agent::builder("greeter", ScriptedModel::new([Turn::text("Hello!")])).build()?;
/// let server = Server::builder().agent(agent).studio(Studio::new()).build()?;
/// let app: axum::Router = server.router(); // the page is at `/studio/`, beside the API
/// # let _ = app;
/// # Ok(()) }
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct Studio {
    read_only: bool,
}

impl Studio {
    /// Creates a studio with everything that the caller may do.
    pub fn new() -> Self {
        Self::default()
    }

    /// Makes the studio read-only for all callers: requests that would start or change something
    /// are rejected with 403, and the web UI does not offer them.
    #[must_use]
    pub fn read_only(mut self, yes: bool) -> Self {
        self.read_only = yes;
        self
    }

    /// Mounts the web UI at `/studio/` beside the API; `/studio` redirects there. `keeps_files`
    /// enables uploads.
    pub(crate) fn beside(self, api: Router, keeps_files: bool) -> Router {
        let api = if self.read_only { api.layer(from_fn(only_reading)) } else { api };
        let settings = json!({"read_only": self.read_only, "files": keeps_files, "version": env!("CARGO_PKG_VERSION")});
        let config = || async move { ([(http::header::CACHE_CONTROL, "no-store")], Json(settings)) };
        let index = |headers: HeaderMap| async move { assets::serve("index.html", &headers) };
        let page = Router::new()
            .route("/studio", get(|| async { Redirect::permanent("/studio/") }))
            .route("/studio/", get(index))
            .route("/studio/config.json", get(config))
            .route("/studio/{*file}", get(asset))
            .layer(from_fn(assets::secured));
        api.merge(page)
    }
}

async fn asset(Path(file): Path<String>, headers: HeaderMap) -> Response {
    assets::serve(&file, &headers)
}

/// Middleware that rejects requests other than reads.
async fn only_reading(request: Request, next: Next) -> Response {
    match *request.method() {
        Method::GET | Method::HEAD | Method::OPTIONS => next.run(request).await,
        _ => ApiError::forbidden("this studio is read-only: start it without --read-only to change something")
            .into_response(),
    }
}
