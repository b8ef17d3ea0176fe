//! Where everything is mounted.

use axum::{Router, middleware};

use crate::{a2a, ag_ui, api, app::App, auth, health, openai, ui_stream};

/// All protocols, with what guards them around.
pub(crate) fn router(app: App) -> Router {
    let guarded = Router::new()
        .nest("/api", api::router())
        .merge(ag_ui::router())
        .merge(openai::router())
        .merge(ui_stream::router())
        .merge(a2a::router())
        .layer(middleware::from_fn(auth::open));
    Router::new().merge(health::router()).merge(guarded).with_state(app)
}
