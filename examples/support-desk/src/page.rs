//! The page: a chat, and the refunds that wait for approval. It is a client of the server's API.

use axum::{
    Router,
    http::header::{CONTENT_SECURITY_POLICY, CONTENT_TYPE},
    response::IntoResponse,
    routing::get,
};

/// The page loads nothing from other hosts, and runs no script but its own.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; \
                      base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// Returns the routes of the page.
pub(crate) fn router() -> Router {
    Router::new()
        .route("/", get(|| file("text/html; charset=utf-8", include_str!("../page/index.html"))))
        .route("/page.css", get(|| file("text/css; charset=utf-8", include_str!("../page/page.css"))))
        .route("/page.js", get(|| file("text/javascript; charset=utf-8", include_str!("../page/page.js"))))
}

async fn file(content_type: &'static str, text: &'static str) -> impl IntoResponse {
    ([(CONTENT_TYPE, content_type), (CONTENT_SECURITY_POLICY, POLICY)], text)
}
