//! Version of a push notification.

use serde::{Deserialize, Serialize};

/// Version of the Agent2Agent protocol in which a notification is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Version {
    /// Objects name their `kind`.
    #[default]
    #[serde(rename = "0.3")]
    V03,
    /// JSON form of the protocol buffers.
    #[serde(rename = "1.0")]
    V10,
}
