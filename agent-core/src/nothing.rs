//! The future of what is done at once.

use std::{
    marker::PhantomData,
    pin::Pin,
    task::{Context, Poll},
};

use futures::future::BoxFuture;

use crate::Result;

/// It has no size, so boxing it does not allocate.
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
