//! [`RateLimited`].

use std::time::Duration;

use agent_core::{BoxError, Error, ErrorKind, ModelRequest, ModelResponse, Result, Retry, model::Spoken};
use tower::{Service, ServiceExt};

use super::{RateLimitLayer, place::Place};
use crate::service::{answers, around, own};

/// The service that [`RateLimitLayer`] makes.
#[derive(Clone)]
pub struct RateLimited<S> {
    layer: RateLimitLayer,
    inner: S,
}

around!(RateLimited { layer: RateLimitLayer });

answers!(RateLimited, always, |layer| in_turn);

async fn in_turn<S>(layer: RateLimitLayer, mut inner: S, req: ModelRequest) -> Result<ModelResponse>
where
    S: Service<ModelRequest, Response = ModelResponse>,
    S::Error: Into<BoxError>,
{
    let tokens = layer.limiter().rules().estimate.as_ref().map_or(0, |estimate| estimate(&req));
    let mut place = Place::take(layer.limiter(), layer.priority_of(&req), tokens)?;
    loop {
        let mut permit = place.wait(&req.cx).await?;
        let share = place.share(&req.cx).await?;
        let ready = inner.ready().await.map_err(own)?;
        permit.send();
        let spoken = Spoken::default();
        let error = match ready.call(spoken.listen(req.clone())).await {
            Ok(response) => {
                permit.answered(&response, share);
                if let Some(counter) = &layer.limiter().rules().learns {
                    counter.learn_from(&req, &response.usage);
                }
                return Ok(response);
            }
            Err(error) => own(error),
        };
        let Some(delay) = refusal(&error) else { return Err(error) };
        let closed = permit.refused(delay);
        if spoken.is_heard() {
            return Err(error);
        }
        place.take_again(&req.cx, error, closed);
    }
}

/// The delay that the provider asks for, if it refused the call for its rate.
fn refusal(error: &Error) -> Option<Option<Duration>> {
    match (error.kind(), error.retry()) {
        (ErrorKind::RateLimited, Retry::Temporary(delay)) => Some(delay),
        _ => None,
    }
}
