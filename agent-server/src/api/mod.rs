//! Runs API.

mod agents;
mod events;
mod files;
mod input;
mod questions;
mod runs;
mod sessions;
mod spending;
mod webhooks;

use axum::Router;

pub(crate) use self::{input::Input, questions::Given};
use crate::{app::App, files::Files};

/// Routes below `/api`; with uploads if `files` is set.
pub(crate) fn router(files: Option<&Files>) -> Router<App> {
    Router::new()
        .merge(agents::router())
        .merge(runs::router())
        .merge(events::router())
        .merge(files::router(files))
        .merge(questions::router())
        .merge(sessions::router())
        .merge(spending::router())
        .merge(webhooks::router())
}
