//! The Runs API.

mod agents;

use axum::Router;

use crate::app::App;

/// Everything below `/api`.
pub(crate) fn router() -> Router<App> {
    Router::new().merge(agents::router())
}
