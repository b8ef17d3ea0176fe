//! [`Transport`]: HTTP client abstraction.

#[cfg(feature = "http")]
mod network;
#[cfg(feature = "reqwest")]
mod reqwest;

use std::{
    fmt,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use agent_core::{Result, async_trait, boxed};
use bytes::Bytes;
use futures::{Stream, StreamExt, future::BoxFuture, stream::BoxStream};
use http::{Request, Response};

#[cfg(feature = "http")]
pub use self::network::{HttpTransport, HttpTransportBuilder};

/// Sends requests to a provider. Implement it to use a custom HTTP client, to record traffic, or to
/// test without a network.
///
/// Idle timeouts, size limits and retries are the responsibility of the model and its layers.
#[async_trait]
pub trait Transport: Send + Sync + 'static {
    /// Sends `request` and returns the response once its head has arrived; the body follows as a
    /// stream. Dropping the future or the body cancels the call.
    ///
    /// # Errors
    /// [`ErrorKind::Transport`](agent_core::ErrorKind::Transport) if there is no response,
    /// temporary if a retry may help. A response with an error status is not an error.
    async fn send(&self, request: Request<Bytes>) -> Result<Response<Body>>;
}

#[async_trait]
impl<T: Transport + ?Sized> Transport for Arc<T> {
    async fn send(&self, request: Request<Bytes>) -> Result<Response<Body>> {
        (**self).send(request).await
    }
}

/// Creates a transport from a function.
///
/// ```
/// use agent_llm::{model, transport_fn};
/// use http::Response;
///
/// let hello = r#"{"choices": [{"message": {"role": "assistant", "content": "hello"}, "finish_reason": "stop"}]}"#;
/// let transport = transport_fn(move |_| async move { Ok(Response::new(hello.into())) });
/// let model = model("openai:any").transport(transport).build()?;
/// # Ok::<(), agent_core::Error>(())
/// ```
pub fn transport_fn<F, Fut>(send: F) -> TransportFn
where
    F: Fn(Request<Bytes>) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<Response<Body>>> + Send + 'static,
{
    TransportFn(Box::new(move |request| boxed(|| send(request))))
}

type Send1 = dyn Fn(Request<Bytes>) -> BoxFuture<'static, Result<Response<Body>>> + Send + Sync;

/// Transport created by [`transport_fn`].
pub struct TransportFn(Box<Send1>);

#[async_trait]
impl Transport for TransportFn {
    async fn send(&self, request: Request<Bytes>) -> Result<Response<Body>> {
        (self.0)(request).await
    }
}

impl fmt::Debug for TransportFn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TransportFn").finish_non_exhaustive()
    }
}

/// Body of a response: a stream of bytes.
pub struct Body(BoxStream<'static, Result<Bytes>>);

impl Body {
    /// Creates a body from a stream of chunks.
    pub fn new(stream: impl Stream<Item = Result<Bytes>> + Send + 'static) -> Self {
        Self(stream.boxed())
    }
}

impl<T: Into<Bytes>> From<T> for Body {
    /// Creates a body from bytes in memory.
    fn from(bytes: T) -> Self {
        let bytes = bytes.into();
        Self::new(futures::stream::once(async { Ok(bytes) }))
    }
}

impl Stream for Body {
    type Item = Result<Bytes>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.0.poll_next_unpin(cx)
    }
}

impl fmt::Debug for Body {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Body").finish_non_exhaustive()
    }
}
