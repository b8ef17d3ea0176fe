//! [`Cached`]: tower service behind a response cache.

use agent_core::{BoxError, ModelRequest, ModelResponse, Result};
use tower::{Service, ServiceExt};

use super::{CacheKey, CacheLayer, tee::Tee};
use crate::service::{answers, around, own};

/// Service created by [`CacheLayer`].
#[derive(Clone)]
pub struct Cached<S> {
    layer: CacheLayer,
    inner: S,
}

around!(Cached { layer: CacheLayer });

answers!(Cached, always, |layer| answer, ModelRequest => ModelResponse);

async fn answer<S>(layer: CacheLayer, inner: S, mut req: ModelRequest) -> Result<ModelResponse>
where
    S: Service<ModelRequest, Response = ModelResponse>,
    S::Error: Into<BoxError>,
{
    let ask = async |req| inner.oneshot(req).await.map_err(own);
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
