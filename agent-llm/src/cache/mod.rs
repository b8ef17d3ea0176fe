//! Response cache: [`ResponseCache`].

mod bounded;
mod flights;
mod key;
mod layer;
mod memory;
mod service;
mod shared;
mod store;
mod tee;

pub(crate) use self::bounded::Bounded;
pub use self::{
    key::CacheKey,
    layer::CacheLayer,
    memory::{MemoryCache, MemoryCacheBuilder},
    service::Cached,
    shared::{CACHE_MARK, CacheStats, ResponseCache, is_hit},
    store::CacheStore,
};
