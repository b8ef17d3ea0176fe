//! [`Identity`].

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::Credentials;

/// Whose access tokens stand in for a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Identity {
    /// Google's cloud; needs the feature `gcp`.
    Google,
    /// Microsoft Entra; needs the feature `entra`.
    Entra,
}

impl Identity {
    /// The feature that it needs.
    pub(super) fn feature(self) -> &'static str {
        match self {
            Self::Google => "gcp",
            Self::Entra => "entra",
        }
    }

    /// Where tokens come from, if the feature is there.
    pub(super) fn credentials(self) -> Option<Arc<dyn Credentials>> {
        match self {
            #[cfg(feature = "gcp")]
            Self::Google => Some(Arc::new(crate::GoogleIdentity::new())),
            #[cfg(feature = "entra")]
            Self::Entra => Some(Arc::new(crate::EntraIdentity::new())),
            #[cfg(not(all(feature = "gcp", feature = "entra")))]
            _ => None,
        }
    }
}
