//! Keys that sign what is sent: [`Signer`].

use agent_core::{Result, async_trait};
use bytes::Bytes;
use http::Request;

/// Signs requests, for a provider that is shown no key but a proof that who asks has one: AWS is the best known.
///
/// It is asked for every request and every attempt, when all else of the request is final. What it puts into headers is handled
/// as a key is: it is in no log and no error.
///
/// ```
/// use agent_core::{Result, async_trait};
/// use agent_llm::{Signer, model};
/// use bytes::Bytes;
/// use http::{HeaderValue, Request};
///
/// /// What a gateway of ours wants to see.
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
    /// Signs `request`, which is sent as it is then.
    ///
    /// # Errors
    /// If there is nothing to sign with; the call fails with the error.
    async fn sign(&self, request: &mut Request<Bytes>) -> Result<()>;

    /// The provider refused the last signature. Returns true if there may be another key now: then the request is sent once
    /// more. Default: false.
    async fn refused(&self) -> bool {
        false
    }
}
