//! [`Identity`].

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::{Credentials, Signer};

/// Whose access tokens stand in for a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Identity {
    /// Google's cloud; needs the feature `gcp`.
    Google,
    /// Microsoft Entra; needs the feature `entra`.
    Entra,
    /// Amazon Web Services, whose keys sign what is sent; needs the feature `bedrock`.
    Aws,
}

impl Identity {
    /// The feature that it needs.
    pub(super) fn feature(self) -> &'static str {
        match self {
            Self::Google => "gcp",
            Self::Entra => "entra",
            Self::Aws => "bedrock",
        }
    }

    /// Where tokens come from, if the feature is there.
    pub(super) fn credentials(self) -> Option<Arc<dyn Credentials>> {
        match self {
            #[cfg(feature = "gcp")]
            Self::Google => Some(Arc::new(crate::GoogleIdentity::new())),
            #[cfg(feature = "entra")]
            Self::Entra => Some(Arc::new(crate::EntraIdentity::new())),
            _ => None,
        }
    }

    /// Who signs requests that go to `region`, if the feature is there.
    pub(super) fn signer(self, region: Option<&str>, may_lack: bool) -> Option<Arc<dyn Signer>> {
        match self {
            #[cfg(feature = "bedrock")]
            Self::Aws => Some(Arc::new(crate::AwsIdentity::found(region, may_lack))),
            _ => {
                let _ = (region, may_lack);
                None
            }
        }
    }

    /// What files of the machine say of a place of the provider's address.
    pub(super) fn place(self, name: &str, env: &dyn Fn(&str) -> Option<String>) -> Option<String> {
        match (self, name) {
            #[cfg(feature = "bedrock")]
            (Self::Aws, "region") => crate::identity::aws_region(env),
            _ => {
                let _ = env;
                None
            }
        }
    }
}
