//! Where everything is mounted.

use axum::{Router, middleware};

use crate::{api, app::App, auth, health};

/// All protocols, with what guards them around.
pub(crate) fn router(app: App) -> Router {
    let guarded = Router::new().nest("/api", api::router()).layer(middleware::from_fn(auth::open));
    Router::new().merge(health::router()).merge(guarded).with_state(app)
}
