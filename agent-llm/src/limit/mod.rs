//! Client-side rate limiting: [`RateLimiter`].

mod allowance;
mod builder;
mod estimate;
mod gate;
mod layer;
mod limiter;
mod log;
mod place;
mod service;
mod shared;

pub use self::{
    builder::RateLimiterBuilder,
    layer::RateLimitLayer,
    limiter::{RATE_LIMIT_EVENT, RateLimitStatus, RateLimiter},
    service::RateLimited,
};
