//! Routes of all protocols, and the layers around them.

use std::time::Duration;

use axum::{Router, extract::DefaultBodyLimit, middleware};
use http::{HeaderName, HeaderValue, Method, header};
use tower_http::{
    catch_panic::CatchPanicLayer,
    cors::{AllowOrigin, CorsLayer},
    timeout::RequestBodyTimeoutLayer,
};

use crate::{
    a2a, ag_ui, api,
    app::App,
    auth::{self, Auth},
    error::ApiError,
    guard::{self, Guard},
    health, mcp, openai,
    teams::{self, Teams},
    ui_stream,
};

/// Maximum silence within a body, in seconds.
const BODY_SILENCE: Duration = Duration::from_secs(15);

/// Settings of the layers around the routes.
#[derive(Clone, Debug)]
pub(crate) struct Guards {
    pub(crate) auth: Auth,
    pub(crate) guard: Guard,
    pub(crate) origins: Vec<String>,
    /// Maximum size of a body in bytes.
    pub(crate) body: usize,
    /// True if the agent cards are public.
    pub(crate) public_cards: bool,
}

/// Builds the router of all protocols with their layers.
pub(crate) fn router(app: &App, teams: &Teams, guards: &Guards) -> Router {
    let (for_all, for_callers) = match guards.public_cards {
        true => (a2a::cards(), Router::new()),
        false => (Router::new(), a2a::cards()),
    };
    let guarded = Router::new()
        .merge(for_callers)
        .nest("/api", api::router(app.files().ok()))
        .merge(ag_ui::router())
        .merge(openai::router())
        .merge(ui_stream::router())
        .merge(a2a::router())
        .merge(mcp::router())
        .merge(teams::router(app, teams))
        .merge(health::metrics(guards.auth.clone()))
        .layer(middleware::from_fn_with_state(guards.auth.clone(), auth::authenticate));
    let guarded = guarded.layer(middleware::from_fn(crate::trace::remembered));
    #[cfg(feature = "telemetry")]
    let guarded = guarded.layer(middleware::from_fn(crate::trace::traced));
    Router::new()
        .merge(health::router())
        .merge(for_all)
        .merge(guarded)
        .with_state(app.clone())
        .merge(auth::router(guards.auth.clone()))
        .fallback(unknown)
        .method_not_allowed_fallback(not_allowed)
        .layer(middleware::from_fn_with_state(app.clone(), health::count))
        .layer(DefaultBodyLimit::max(guards.body))
        .layer(RequestBodyTimeoutLayer::new(BODY_SILENCE))
        .layer(CatchPanicLayer::custom(|_| axum::response::IntoResponse::into_response(ApiError::internal())))
        .layer(cors(&guards.origins))
        .layer(middleware::from_fn_with_state(guards.guard.clone(), guard::guard))
        .merge(health::probes().with_state(app.clone()))
}

async fn unknown() -> ApiError {
    ApiError::not_found("unknown path: see /openapi.json")
}

async fn not_allowed() -> ApiError {
    let message = "method not allowed: see /openapi.json";
    ApiError::new(http::StatusCode::METHOD_NOT_ALLOWED, "method_not_allowed", message)
}

/// Returns the CORS layer for the allowed origins.
fn cors(origins: &[String]) -> CorsLayer {
    let origins = origins.iter().filter_map(|origin| HeaderValue::from_str(origin).ok());
    let (key, last) = (HeaderName::from_static("idempotency-key"), HeaderName::from_static("last-event-id"));
    let session = HeaderName::from_static(openai::SESSION);
    CorsLayer::new()
        .allow_origin(AllowOrigin::list(origins))
        .allow_methods([Method::GET, Method::POST, Method::PUT, Method::DELETE])
        .allow_headers([header::AUTHORIZATION, header::CONTENT_TYPE, header::ACCEPT, key, last, session])
        .expose_headers([HeaderName::from_static("agent-run")])
        .max_age(Duration::from_secs(600))
}
