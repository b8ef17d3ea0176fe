//! Who may ask: from a request to its [`Caller`](crate::Caller).

use axum::{extract::Request, middleware::Next, response::Response};

use crate::caller::Caller;

/// Everybody is the one tenant of this machine, unless a layer around said who it is.
pub(crate) async fn open(mut request: Request, next: Next) -> Response {
    if request.extensions().get::<Caller>().is_none() {
        request.extensions_mut().insert(Caller::new("local", "local"));
    }
    next.run(request).await
}
