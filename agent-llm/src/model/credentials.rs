//! [`Credentials`]: short-lived keys.

use agent_core::{Result, async_trait};

/// Source of a model's key, if the key expires: access tokens of Google or Microsoft are valid for
/// an hour.
///
/// Called before every request, so the implementation caches a token while it is valid, and
/// refreshes it in time. Implemented for any `Fn() -> impl Future<Output = Result<String>>`. The
/// result is treated like a key: it appears in no log and no error.
///
/// # Example
///
/// ```
/// use std::time::{Duration, Instant};
///
/// use tokio::sync::Mutex;
///
/// # async fn fetch_token() -> agent_core::Result<String> { Ok("ya29.a-token".into()) }
/// // Tokens are valid for an hour, and refreshed after fifty minutes.
/// let kept = std::sync::Arc::new(Mutex::new(None::<(String, Instant)>));
/// let token = move || {
///     let kept = kept.clone();
///     async move {
///         let mut kept = kept.lock().await;
///         match &*kept {
///             Some((token, since)) if since.elapsed() < Duration::from_secs(3_000) => Ok(token.clone()),
///             _ => {
///                 let token = fetch_token().await?;
///                 *kept = Some((token.clone(), Instant::now()));
///                 Ok(token)
///             }
///         }
///     }
/// };
/// let model = agent_llm::model("vertex:gemini-2.5-pro").option("project", "my-project").credentials(token).build()?;
/// # Ok::<(), agent_core::Error>(())
/// ```
#[async_trait]
pub trait Credentials: Send + Sync + 'static {
    /// Returns the key for a request that is about to be sent.
    ///
    /// # Errors
    /// If no key is available; the call fails with the error.
    async fn key(&self) -> Result<String>;

    /// Handles a rejected key. Returns true if there may be another key now: then the request is
    /// sent once more. Default: false.
    async fn refused(&self) -> bool {
        false
    }
}

#[async_trait]
impl<F, Fut> Credentials for F
where
    F: Fn() -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<String>> + Send,
{
    async fn key(&self) -> Result<String> {
        self().await
    }
}
