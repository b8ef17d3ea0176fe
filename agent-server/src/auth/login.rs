//! Routes `/api/login` and `/api/logout`: pages of this server keep their key in an `HttpOnly`
//! cookie.

use axum::{
    Router,
    extract::{DefaultBodyLimit, State},
    response::{IntoResponse, Response},
    routing::post,
};
use http::{HeaderMap, StatusCode, header};
use serde::Deserialize;

use super::{AUDIT, Auth};
use crate::{error::ApiError, extract::JsonBody};

/// Name of the cookie.
const COOKIE: &str = "agent_session";

/// Cookie attributes: not sent with cross-site requests, not readable by scripts.
const TERMS: &str = "HttpOnly; SameSite=Strict; Path=/";

/// Maximum size of a body in bytes: these routes need no authentication.
const LONGEST: usize = 4096;

/// Routes of login and logout.
pub(crate) fn router(auth: Auth) -> Router {
    let router = Router::new().route("/api/login", post(login)).route("/api/logout", post(logout));
    router.layer(DefaultBodyLimit::max(LONGEST)).with_state(auth)
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Login {
    key: String,
}

async fn login(
    State(auth): State<Auth>,
    headers: HeaderMap,
    JsonBody(said): JsonBody<Login>,
) -> Result<Response, ApiError> {
    let Some(caller) = auth.0.keys.as_ref().and_then(|keys| keys.caller(&said.key)) else {
        tracing::warn!(target: AUDIT, "login rejected");
        return Err(ApiError::unauthenticated("invalid or expired key"));
    };
    tracing::info!(target: AUDIT, tenant = caller.tenant(), subject = caller.subject(), "logged in");
    let secure = if is_https(&headers) { "; Secure" } else { "" };
    Ok(with_cookie(&format!("{COOKIE}={}; Max-Age=604800; {TERMS}{secure}", said.key)))
}

async fn logout() -> Response {
    with_cookie(&format!("{COOKIE}=; Max-Age=0; {TERMS}"))
}

/// True if the page was loaded over HTTPS, according to its origin or a proxy.
fn is_https(headers: &HeaderMap) -> bool {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default();
    text("origin").starts_with("https://")
        || text("x-forwarded-proto") == "https"
        || text("forwarded").contains("proto=https")
}

fn with_cookie(cookie: &str) -> Response {
    (StatusCode::NO_CONTENT, [(header::SET_COOKIE, cookie.to_owned())]).into_response()
}

/// Returns the key in a request's cookie.
pub(super) fn cookie(headers: &HeaderMap) -> Option<&str> {
    let cookies = headers.get_all(header::COOKIE).iter().filter_map(|value| value.to_str().ok());
    let pairs = cookies.flat_map(|cookies| cookies.split(';'));
    pairs.filter_map(|pair| pair.trim().split_once('=')).find(|(name, _)| *name == COOKIE).map(|(_, key)| key)
}
