//! [`Hedge`].

use std::sync::Arc;

use agent_core::{
    BoxError, EventKind, Result,
    budget::{Amounts, Reservation},
};
use futures::{FutureExt, TryFutureExt};
use tokio::time::{Instant, timeout};
use tower::{Service, ServiceExt};

use super::{
    gate::{Gate, Side},
    latency::Slow,
    race::race,
};
use crate::{
    call::{Call, tell},
    service::{answers, around, own},
};

/// The service that [`HedgeLayer`](super::HedgeLayer) makes.
#[derive(Clone)]
pub struct Hedge<S> {
    slow: Arc<Slow>,
    inner: S,
}

around!(Hedge { slow: Arc<Slow> });

answers!(Hedge, ready, |slow| hedged);

/// Calls `inner`, which is ready, and a clone of it too if that is slow.
async fn hedged<S, R>(slow: Arc<Slow>, mut inner: S, req: R) -> Result<R::Answer>
where
    R: Call,
    S: Service<R, Response = R::Answer> + Clone + Send,
    S::Error: Into<BoxError>,
    S::Future: Send,
{
    let (spare, began, gate) = (inner.clone(), Instant::now(), Gate::default());
    let mut first = inner.call(gate.guard(&req, Side::First)).map_err(own).boxed();
    let alone = match slow.after() {
        Some(delay) => timeout(delay, &mut first).await.ok(),
        None => Some((&mut first).await),
    };
    let result = match alone {
        Some(result) => result,
        None if gate.heard().is_some() => first.await,
        None => match reserve(&req).await {
            Err(_) => first.await,
            Ok(reserved) => {
                tell(req.run(), EventKind::Hedge { delay: began.elapsed().as_secs_f64() });
                let mut reserved = reserved;
                reserved.iter_mut().for_each(Reservation::begin);
                let second = spare.oneshot(gate.guard(&req, Side::Second)).map_err(own).boxed();
                let (result, cut_off) = race(&gate, first, second).await;
                // What was cut off counts as used. If neither was, nothing of the second is left to be counted.
                if let Some(reserved) = reserved.filter(|_| !cut_off) {
                    reserved.settle(Amounts::none()).await?;
                }
                result
            }
        },
    };
    if result.is_ok() {
        // How long the first call was silent. If the second was faster, the first was so for at least that long.
        let heard = gate.heard().map_or_else(Instant::now, |(_, since)| since);
        slow.learn(heard - began);
    }
    result
}

/// Sets aside what the second call may use; nothing if nothing is limited, or if each call does that for itself further in.
async fn reserve(req: &impl Call) -> Result<Option<Reservation>> {
    match req.of_model().filter(|req| req.reserved) {
        Some(req) => {
            let budget = req.cx.budget();
            budget.reserve(budget.estimate(req)?).await.map(Some)
        }
        None => Ok(None),
    }
}
