//! [`GoogleIdentity`]: Google Cloud access tokens.

use std::{fmt, sync::Arc};

use agent_core::{Error, Result, async_trait};
use gcp_auth::TokenProvider;
use tokio::sync::OnceCell;

use crate::Credentials;

/// OAuth scope of Google's models.
const SCOPE: &str = "https://www.googleapis.com/auth/cloud-platform";

/// Google Cloud access tokens, from the first source that is available: the service account in the
/// file that `GOOGLE_APPLICATION_CREDENTIALS` names, the user of
/// `gcloud auth application-default login`, the metadata server of a machine in Google Cloud, or
/// the `gcloud` program. Tokens are cached until shortly before they expire.
///
/// A model of `vertex` uses this identity if no key is set. It contacts Google's token servers
/// directly, not through the model's transport: if only a proxy reaches them, supply tokens with
/// [`ModelBuilder::credentials`](crate::ModelBuilder::credentials).
///
/// ```
/// use agent_llm::{GoogleIdentity, model};
///
/// let gemini = model("vertex:gemini-2.5-pro").option("project", "my-project").credentials(GoogleIdentity::new()).build()?;
/// # Ok::<(), agent_core::Error>(())
/// ```
#[derive(Clone, Default)]
pub struct GoogleIdentity(Arc<OnceCell<Arc<dyn TokenProvider>>>);

impl GoogleIdentity {
    /// Creates an identity from the machine's configuration. Looks for credentials at the first
    /// call.
    pub fn new() -> Self {
        Self::default()
    }
}

#[async_trait]
impl Credentials for GoogleIdentity {
    async fn key(&self) -> Result<String> {
        let provider = self.0.get_or_try_init(gcp_auth::provider).await.map_err(|e| {
            Error::config(
                "no identity for Google's cloud was found: run `gcloud auth application-default login`, or name the file of a \
                 service account in GOOGLE_APPLICATION_CREDENTIALS",
            )
            .with_source(e)
        })?;
        let token = provider.token(&[SCOPE]).await;
        token.map(|token| token.as_str().to_owned()).map_err(|e| {
            Error::new(agent_core::ErrorKind::Authentication, "Google's cloud gave no access token").with_source(e)
        })
    }
}

impl fmt::Debug for GoogleIdentity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GoogleIdentity").finish_non_exhaustive()
    }
}
