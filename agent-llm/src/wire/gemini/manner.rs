//! What decides how messages are written.

use agent_core::message::{Origin, Raw};
use serde_json::value::RawValue;

use super::profile::GeminiGeneration;
use crate::wire::json::{knows, own};

/// What decides how messages are written.
#[derive(Clone, Debug)]
pub(super) struct Manner {
    pub(super) origin: Origin,
    pub(super) generation: GeminiGeneration,
}

impl Manner {
    /// True if `raw` may go back as it came.
    pub(super) fn knows(&self, raw: &Raw) -> bool {
        knows(&self.origin, raw)
    }

    /// The provider's own JSON, if this is the provider.
    pub(super) fn own<'a>(&self, raw: Option<&'a Raw>) -> Option<&'a RawValue> {
        own(&self.origin, raw)
    }
}
