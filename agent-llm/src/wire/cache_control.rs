//! Prompt cache markers in Anthropic's format, which other APIs adopted.

use agent_core::message::Cache;
use serde::Serialize;

/// Marks the end of a prefix to cache.
#[derive(Serialize)]
pub(crate) struct CacheControl {
    r#type: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    ttl: Option<&'static str>,
}

impl From<Cache> for CacheControl {
    fn from(cache: Cache) -> Self {
        Self { r#type: "ephemeral", ttl: (cache == Cache::Long).then_some("1h") }
    }
}
