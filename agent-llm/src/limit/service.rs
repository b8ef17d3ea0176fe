//! [`RateLimited`]: tower service behind a rate limiter.

use std::time::Duration;

use agent_core::{BoxError, Error, ErrorKind, Result, Retry, model::Spoken};
use tower::{Service, ServiceExt};

use super::{RateLimitLayer, place::QueueTicket};
use crate::{
    call::Call,
    service::{answers, around, own},
};

/// Service created by [`RateLimitLayer`].
#[derive(Clone)]
pub struct RateLimited<S> {
    layer: RateLimitLayer,
    inner: S,
}

around!(RateLimited { layer: RateLimitLayer });

answers!(RateLimited, always, |layer| in_turn);

async fn in_turn<S, R>(layer: RateLimitLayer, mut inner: S, req: R) -> Result<R::Answer>
where
    R: Call,
    S: Service<R, Response = R::Answer>,
    S::Error: Into<BoxError>,
{
    let tokens = layer.limiter().rules().estimate.as_ref().map_or(0, |estimate| estimate.of(&req));
    let mut place = QueueTicket::take(layer.limiter(), layer.priority_of(&req), tokens)?;
    loop {
        let mut permit = place.wait(req.run()).await?;
        let share = place.share(req.run()).await?;
        let ready = inner.ready().await.map_err(own)?;
        permit.send();
        let spoken = Spoken::default();
        let error = match ready.call(req.clone().map_model(|req| spoken.listen(req))).await {
            Ok(response) => {
                permit.answered(R::usage(&response), share);
                if let (Some(counter), Some(req)) = (&layer.limiter().rules().learns, req.of_model()) {
                    counter.learn_from(req, R::usage(&response));
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
        place.take_again(req.run(), error, closed);
    }
}

/// Returns the delay that the provider asks for, if it refused the call for its rate.
fn refusal(error: &Error) -> Option<Option<Duration>> {
    match (error.kind(), error.retry()) {
        (ErrorKind::RateLimited, Retry::Temporary(delay)) => Some(delay),
        _ => None,
    }
}
