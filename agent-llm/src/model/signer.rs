//! [`Signer`]: request signatures.

use agent_core::{Result, async_trait};
use bytes::Bytes;
use http::Request;

/// Signs requests for a provider that requires proof of a key instead of the key itself, as AWS
/// does.
///
/// Called for every request and every attempt, after all other parts of the request are final. The
/// headers that it adds are treated like a key: they appear in no log and no error.
///
/// ```
/// use agent_core::{Result, async_trait};
/// use agent_llm::{Signer, model};
/// use bytes::Bytes;
/// use http::{HeaderValue, Request};
///
/// /// Adds the checksum that a custom gateway requires.
/// struct Checksum;
///
/// #[async_trait]
/// impl Signer for Checksum {
///     async fn sign(&self, request: &mut Request<Bytes>) -> Result<()> {
///         let sum: u64 = request.body().iter().map(|byte| u64::from(*byte)).sum();
///         request.headers_mut().insert("x-sum", HeaderValue::from(sum));
///         Ok(())
///     }
/// }
///
/// let ours = model("openai:our-llama").base_url("http://10.0.0.7:9000/v1").signer(Checksum).build()?;
/// # Ok::<(), agent_core::Error>(())
/// ```
#[async_trait]
pub trait Signer: Send + Sync + 'static {
    /// Signs `request`, which is sent unchanged afterwards.
    ///
    /// # Errors
    /// If there are no credentials; the call fails with the error.
    async fn sign(&self, request: &mut Request<Bytes>) -> Result<()>;

    /// Handles a rejected signature. Returns true if there may be another key now: then the request
    /// is sent once more. Default: false.
    async fn refused(&self) -> bool {
        false
    }
}
