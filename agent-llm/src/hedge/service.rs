//! [`Hedge`].

use std::{
    fmt,
    sync::Arc,
    task::{Context, Poll},
};

use agent_core::{Amounts, BoxError, BoxFuture, Error, EventKind, ModelRequest, ModelResponse, Reservation, Result};
use futures::{FutureExt, TryFutureExt};
use tokio::time::{Instant, timeout};
use tower::{Service, ServiceExt};

use super::{
    gate::{Gate, Side},
    latency::Slow,
    race::race,
};

/// The service that [`HedgeLayer`](super::HedgeLayer) makes.
#[derive(Clone)]
pub struct Hedge<S> {
    slow: Arc<Slow>,
    inner: S,
}

impl<S> Hedge<S> {
    pub(super) fn new(slow: Arc<Slow>, inner: S) -> Self {
        Self { slow, inner }
    }

    /// The service around which it stands.
    pub fn get_ref(&self) -> &S {
        &self.inner
    }

    /// The service around which it stands, to be changed.
    pub fn get_mut(&mut self) -> &mut S {
        &mut self.inner
    }

    /// The service around which it stood.
    pub fn into_inner(self) -> S {
        self.inner
    }
}

impl<S> Service<ModelRequest> for Hedge<S>
where
    S: Service<ModelRequest, Response = ModelResponse> + Clone + Send + 'static,
    S::Error: Into<BoxError>,
    S::Future: Send,
{
    type Response = ModelResponse;
    type Error = Error;
    type Future = BoxFuture<'static, Result<ModelResponse>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<()>> {
        self.inner.poll_ready(cx).map_err(|e| Error::from_boxed(e.into()))
    }

    fn call(&mut self, req: ModelRequest) -> Self::Future {
        // The service that is ready makes the first call; its clones are made ready for a second one and for the next.
        let spare = self.inner.clone();
        let inner = std::mem::replace(&mut self.inner, spare.clone());
        Box::pin(hedged(self.slow.clone(), inner, spare, req))
    }
}

/// Calls `inner`, which is ready, and `spare` too if that is slow.
async fn hedged<S>(slow: Arc<Slow>, mut inner: S, spare: S, req: ModelRequest) -> Result<ModelResponse>
where
    S: Service<ModelRequest, Response = ModelResponse> + Send,
    S::Error: Into<BoxError>,
    S::Future: Send,
{
    let (began, gate) = (Instant::now(), Gate::default());
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
                req.cx.emit(EventKind::Hedge { delay: began.elapsed().as_secs_f64() });
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

fn own(error: impl Into<BoxError>) -> Error {
    Error::from_boxed(error.into())
}

/// Sets aside what the second call may use; nothing if nothing is limited, or if each call does that for itself further in.
async fn reserve(req: &ModelRequest) -> Result<Option<Reservation>> {
    let budget = req.cx.budget();
    match req.reserved {
        true => budget.reserve(budget.estimate(req)?).await.map(Some),
        false => Ok(None),
    }
}

impl<S> fmt::Debug for Hedge<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Hedge").field("slow", &self.slow).field("inner", &std::any::type_name::<S>()).finish()
    }
}
