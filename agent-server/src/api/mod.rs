//! The Runs API.

mod agents;
mod events;
mod input;
mod questions;
mod runs;
mod sessions;

use axum::Router;

use crate::app::App;

/// Everything below `/api`.
pub(crate) fn router() -> Router<App> {
    Router::new()
        .merge(agents::router())
        .merge(runs::router())
        .merge(events::router())
        .merge(questions::router())
        .merge(sessions::router())
}
