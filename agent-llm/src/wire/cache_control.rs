//! The marks up to which a prompt is cached, in the form that Anthropic's API gave to those that came after it.

use agent_core::message::Cache;
use serde::Serialize;

/// Asks for the prompt to be cached up to here.
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
