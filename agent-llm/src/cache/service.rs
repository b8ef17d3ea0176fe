//! [`Cached`].

use std::{
    fmt,
    task::{Context, Poll},
};

use agent_core::{BoxError, BoxFuture, Error, ModelRequest, ModelResponse, Result};
use tower::{Service, ServiceExt};

use super::{CacheKey, CacheLayer, tee::Tee};

/// The service that [`CacheLayer`] makes.
#[derive(Clone)]
pub struct Cached<S> {
    layer: CacheLayer,
    inner: S,
}

impl<S> Cached<S> {
    pub(super) fn new(layer: CacheLayer, inner: S) -> Self {
        Self { layer, inner }
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

impl<S> Service<ModelRequest> for Cached<S>
where
    S: Service<ModelRequest, Response = ModelResponse> + Clone + Send + 'static,
    S::Error: Into<BoxError>,
    S::Future: Send,
{
    type Response = ModelResponse;
    type Error = Error;
    type Future = BoxFuture<'static, Result<ModelResponse>>;

    /// Always ready: what stands inside is only made ready for a call that it must answer.
    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, req: ModelRequest) -> Self::Future {
        Box::pin(answer(self.layer.clone(), self.inner.clone(), req))
    }
}

async fn answer<S>(layer: CacheLayer, inner: S, mut req: ModelRequest) -> Result<ModelResponse>
where
    S: Service<ModelRequest, Response = ModelResponse>,
    S::Error: Into<BoxError>,
{
    let ask = async |req| inner.oneshot(req).await.map_err(|e| Error::from_boxed(e.into()));
    if layer.skips(&req) {
        return ask(req).await;
    }
    let (cache, cx, key) = (layer.cache(), req.cx.clone(), CacheKey::of(layer.model(), &req));
    if let Some(kept) = cache.get(&cx, &key).await {
        return cache.answer(&req, &kept);
    }
    let (flight, had_to_wait) = cache.flights().begin(key).await;
    if had_to_wait && let Some(kept) = cache.get(&cx, &key).await {
        return cache.answer(&req, &kept);
    }
    let tee = Tee::of(&req.sink);
    let tee = tee.map(|(tee, inner)| {
        req.sink = inner;
        tee
    });
    let mut response = ask(req).await?;
    cache.put(&cx, key, &response).await;
    drop(flight);
    if let Some(tee) = tee {
        tee.apply(&mut response.message);
    }
    Ok(response)
}

impl<S> fmt::Debug for Cached<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cached").field("layer", &self.layer).field("inner", &std::any::type_name::<S>()).finish()
    }
}
