//! [`Identity`]: cloud identities that replace an API key.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::{Credentials, Signer};

/// Cloud identity whose access tokens replace an API key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Identity {
    /// Google Cloud; requires the feature `gcp`.
    Google,
    /// Microsoft Entra; requires the feature `entra`.
    Entra,
    /// Amazon Web Services, whose credentials sign requests; requires the feature `bedrock`.
    Aws,
}

impl Identity {
    /// Returns the required feature.
    pub(super) fn feature(self) -> &'static str {
        match self {
            Self::Google => "gcp",
            Self::Entra => "entra",
            Self::Aws => "bedrock",
        }
    }

    /// Returns the token source, if the feature is enabled.
    pub(super) fn credentials(self) -> Option<Arc<dyn Credentials>> {
        match self {
            #[cfg(feature = "gcp")]
            Self::Google => Some(Arc::new(crate::GoogleIdentity::new())),
            #[cfg(feature = "entra")]
            Self::Entra => Some(Arc::new(crate::EntraIdentity::new())),
            _ => None,
        }
    }

    /// Returns the signer for requests to `region`, if the feature is enabled.
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

    /// Returns the value of a URL placeholder from the machine's configuration files.
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
