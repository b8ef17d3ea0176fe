//! Boxed futures.

use std::{
    any::Any,
    marker::PhantomData,
    panic::{AssertUnwindSafe, catch_unwind},
    pin::Pin,
    task::{Context, Poll},
};

use futures::{FutureExt, future::BoxFuture};

use crate::error::{Error, Result};

/// Boxes the future that `make` returns.
///
/// The future is constructed inside its box. `Box::pin(future)` would construct it on the stack and
/// copy it whole, although most of an unpolled future is uninitialised: for the futures of
/// services, models and hooks this is a kilobyte or more per call.
///
/// ```
/// use agent_core::{BoxFuture, Error, ModelRequest, ModelResponse, boxed};
///
/// async fn answer(req: ModelRequest) -> Result<ModelResponse, Error> {
///     Err(Error::config(format!("nothing answers step {}", req.cx.step())))
/// }
///
/// fn call(req: ModelRequest) -> BoxFuture<'static, Result<ModelResponse, Error>> {
///     boxed(move || answer(req))
/// }
/// ```
#[inline]
pub fn boxed<F: Future>(make: impl FnOnce() -> F) -> Pin<Box<F>> {
    Box::into_pin(Box::write(Box::new_uninit(), make()))
}

/// Runs the future that `make` returns; a panic in either becomes the error that `error` creates.
pub fn catch_panic<'a, T: Send + 'a>(
    make: impl FnOnce() -> BoxFuture<'a, Result<T>>,
    error: impl FnOnce(Box<dyn Any + Send>) -> Error + Send + 'a,
) -> impl Future<Output = Result<T>> + Send + 'a {
    let made = catch_unwind(AssertUnwindSafe(make));
    async move {
        let done = match made {
            Ok(made) => AssertUnwindSafe(made).catch_unwind().await,
            Err(panic) => Err(panic),
        };
        done.unwrap_or_else(|panic| Err(error(panic)))
    }
}

/// A ready future of size zero, so boxing it does not allocate.
struct Nothing<T>(PhantomData<fn() -> T>);

impl<T: Default> Future for Nothing<T> {
    type Output = Result<T>;

    fn poll(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Result<T>> {
        Poll::Ready(Ok(T::default()))
    }
}

pub(crate) fn nothing<'a, T: Default + 'a>() -> BoxFuture<'a, Result<T>> {
    Box::pin(Nothing(PhantomData))
}
