//! Composes a list of middlewares and layers into one type-erased stack.

use std::{fmt, sync::Arc};

use agent_core::{
    Deadlines, Middleware, Model, ModelService, ToolService,
    engine::{ModelHooksLayer, ModelWrapLayer, ToolHooksLayer, ToolWrapLayer},
    middleware::Middlewares,
};
use tower::Layer;

use super::{core::ToolCore, model_core::ModelCore};

/// One registered middleware or layer.
#[derive(Clone)]
pub(crate) enum Item {
    Middleware(Arc<dyn Middleware>),
    ModelLayer(Arc<str>, Apply<ModelService>),
    ToolLayer(Arc<str>, Apply<ToolService>),
}

type Apply<S> = Arc<dyn Fn(S) -> S + Send + Sync>;

/// Returns the middlewares among `items`, outermost first.
pub(crate) fn middlewares(items: &[Item]) -> Middlewares {
    let middleware = |item: &Item| match item {
        Item::Middleware(m) => Some(m.clone()),
        _ => None,
    };
    items.iter().filter_map(middleware).collect()
}

/// Composes the model's stack: hooks( wraps and layers, as registered ( the journalled call ) )
pub(crate) fn model(items: &[Item], model: Arc<dyn Model>, deadlines: Arc<Deadlines>) -> ModelService {
    let layer = |item: &Item| match item {
        Item::ModelLayer(_, apply) => Some(apply.clone()),
        _ => None,
    };
    let wrap = |list, inner| ModelService::from_boxed(ModelWrapLayer::new(list).layer(inner));
    let inner = onion(items, ModelService::from_boxed(ModelCore::new(model, deadlines)), layer, wrap);
    ModelService::from_boxed(ModelHooksLayer::new(middlewares(items)).layer(inner))
}

/// Composes the same stack around one tool.
pub(super) fn tool(items: &[Item], core: ToolCore, raise: bool) -> ToolService {
    let layer = |item: &Item| match item {
        Item::ToolLayer(_, apply) => Some(apply.clone()),
        _ => None,
    };
    let wrap = |list, inner| ToolService::from_boxed(ToolWrapLayer::new(list).layer(inner));
    let inner = onion(items, ToolService::from_boxed(core), layer, wrap);
    ToolService::from_boxed(ToolHooksLayer::new(middlewares(items), raise).layer(inner))
}

/// Composes from the innermost item outwards: adjacent middlewares become one layer of wraps,
/// between the tower layers.
fn onion<S>(
    items: &[Item],
    core: S,
    layer: impl Fn(&Item) -> Option<Apply<S>>,
    wrap: impl Fn(Middlewares, S) -> S,
) -> S {
    let mut service = core;
    let mut neighbours: Vec<Arc<dyn Middleware>> = Vec::new();
    let close = |neighbours: &mut Vec<Arc<dyn Middleware>>, service| match std::mem::take(neighbours) {
        list if list.is_empty() => service,
        list => wrap(list.into_iter().rev().collect(), service),
    };
    for item in items.iter().rev() {
        if let Item::Middleware(m) = item {
            neighbours.push(m.clone());
        } else if let Some(apply) = layer(item) {
            service = apply(close(&mut neighbours, service));
        }
    }
    close(&mut neighbours, service)
}

/// Returns a type's name without the paths of its parts: `RetryLayer<Policy>`.
pub(crate) fn short_name<T>() -> String {
    let mut out = String::new();
    for part in std::any::type_name::<T>().split_inclusive(|c: char| !c.is_alphanumeric() && c != '_' && c != ':') {
        out.push_str(part.rsplit("::").next().unwrap_or(part));
    }
    out
}

impl fmt::Debug for Item {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Middleware(m) => m.name(),
            Self::ModelLayer(name, _) | Self::ToolLayer(name, _) => name,
        })
    }
}
