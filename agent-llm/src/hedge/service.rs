//! [`Hedge`]: tower service that hedges slow calls.

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

/// Service created by [`HedgeLayer`](super::HedgeLayer).
#[derive(Clone)]
pub struct Hedge<S> {
    slow: Arc<Slow>,
    inner: S,
}

around!(Hedge { slow: Arc<Slow> });

answers!(Hedge, ready, |slow| hedged);

/// Calls `inner`, which is ready, and also a clone of it if the first call is slow.
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
                // A dropped call counts as used. If neither was dropped, nothing of the second
                // reservation remains to be counted.
                if let Some(reserved) = reserved.filter(|_| !cut_off)
                    && let Err(e) = reserved.settle(Amounts::none()).await
                {
                    let message = format!("the reservation of a hedged call was not released: {}", e.message());
                    tell(req.run(), EventKind::Warning { message });
                }
                result
            }
        },
    };
    if result.is_ok() {
        // Time the first call was silent. If the second was faster, the first was silent for at
        // least that long.
        let heard = gate.heard().map_or_else(Instant::now, |(_, since)| since);
        slow.learn(heard - began);
    }
    result
}

/// Reserves budget for the second call; reserves nothing if there is no limit, or if an inner layer
/// reserves per call.
async fn reserve(req: &impl Call) -> Result<Option<Reservation>> {
    match req.of_model().filter(|req| req.is_reserved()) {
        Some(req) => {
            let budget = req.cx.budget();
            budget.reserve(budget.estimate(req)?).await.map(Some)
        }
        None => Ok(None),
    }
}
