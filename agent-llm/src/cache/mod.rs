//! Answering a request that was answered before: [`ResponseCache`].

mod flights;
mod key;
mod layer;
mod lru;
mod memory;
mod service;
mod shared;
mod store;
mod tee;

pub(crate) use self::lru::Lru;
pub use self::{
    key::CacheKey,
    layer::CacheLayer,
    memory::MemoryCache,
    service::Cached,
    shared::{CACHE_MARK, CacheStats, ResponseCache, is_hit},
    store::CacheStore,
};
