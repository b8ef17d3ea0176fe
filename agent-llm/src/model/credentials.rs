//! Keys that do not last: [`Credentials`].

use agent_core::{Result, async_trait};

/// Where a model has its key from, if that does not last: an access token of Google or Microsoft is good for an hour.
///
/// It is asked before every request, so it keeps a token for as long as that is good, and fetches the next in time. Any
/// `Fn() -> impl Future<Output = Result<String>>` is one. What it gives is handled as a key is: it is in no log and no error.
///
/// # Example
///
/// ```
/// use std::time::{Duration, Instant};
///
/// use tokio::sync::Mutex;
///
/// # async fn fetch_token() -> agent_core::Result<String> { Ok("ya29.a-token".into()) }
/// // Tokens are good for an hour, and fetched anew after fifty minutes.
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
    /// The key for a request that is sent now.
    ///
    /// # Errors
    /// If there is none to be had; the call fails with the error.
    async fn key(&self) -> Result<String>;

    /// The provider refused the last key. Returns true if there may be another now: then the request is sent once more.
    /// Default: false.
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
