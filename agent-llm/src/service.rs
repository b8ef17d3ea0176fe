//! Helpers shared by this crate's tower services.

use agent_core::{BoxError, Error};

/// Converts the error of an inner service into this framework's error type.
pub(crate) fn own(error: impl Into<BoxError>) -> Error {
    Error::from_boxed(error.into())
}

/// Defines the inherent methods and the `Debug` implementation of a service with one field of its
/// own and a field `inner`.
macro_rules! around {
    ($Service:ident { $own:ident: $Own:ty }) => {
        impl<S> $Service<S> {
            pub(super) fn new($own: $Own, inner: S) -> Self {
                Self { $own, inner }
            }

            /// Returns a reference to the inner service.
            pub fn get_ref(&self) -> &S {
                &self.inner
            }

            /// Returns a mutable reference to the inner service.
            pub fn get_mut(&mut self) -> &mut S {
                &mut self.inner
            }

            /// Returns the inner service, consuming `self`.
            pub fn into_inner(self) -> S {
                self.inner
            }
        }

        impl<S> std::fmt::Debug for $Service<S> {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.debug_struct(stringify!($Service))
                    .field(stringify!($own), &self.$own)
                    .field("inner", &std::any::type_name::<S>())
                    .finish()
            }
        }
    };
}

/// Implements `Service` with `$answer(own, inner, request)`, an async function over
/// [calls](crate::call::Call) of both kinds, or over those of one.
///
/// With `ready`, the service is ready when its inner service is, and passes that readiness on. With
/// `always`, the service is always ready: the function itself makes the inner service ready, only
/// for calls that need it.
macro_rules! answers {
    ($Service:ident, $readiness:ident, |$own:ident| $answer:ident) => {
        $crate::service::answers!(
            @ $Service, $readiness, |$own| $answer, [S, R: $crate::call::Call], R => R::Answer
        );
    };
    ($Service:ident, $readiness:ident, |$own:ident| $answer:ident, $Request:ty => $Response:ty) => {
        $crate::service::answers!(@ $Service, $readiness, |$own| $answer, [S], $Request => $Response);
    };
    (@ $Service:ident, $readiness:ident, |$own:ident| $answer:ident, [$($of:tt)*], $Request:ty => $Response:ty) => {
        impl<$($of)*> tower::Service<$Request> for $Service<S>
        where
            S: tower::Service<$Request, Response = $Response> + Clone + Send + 'static,
            S::Error: Into<agent_core::BoxError>,
            S::Future: Send,
        {
            type Response = $Response;
            type Error = agent_core::Error;
            type Future = agent_core::BoxFuture<'static, agent_core::Result<$Response>>;

            $crate::service::answers!(@ $readiness, $own, $answer, $Request);
        }
    };
    (@ ready, $own:ident, $answer:ident, $Request:ty) => {
        fn poll_ready(&mut self, cx: &mut std::task::Context<'_>) -> std::task::Poll<agent_core::Result<()>> {
            self.inner.poll_ready(cx).map_err($crate::service::own)
        }

        fn call(&mut self, req: $Request) -> Self::Future {
            // The ready service makes this call; its clone becomes ready for the next one.
            let clone = self.inner.clone();
            let inner = std::mem::replace(&mut self.inner, clone);
            agent_core::boxed(|| $answer(self.$own.clone(), inner, req))
        }
    };
    (@ always, $own:ident, $answer:ident, $Request:ty) => {
        fn poll_ready(&mut self, _: &mut std::task::Context<'_>) -> std::task::Poll<agent_core::Result<()>> {
            std::task::Poll::Ready(Ok(()))
        }

        fn call(&mut self, req: $Request) -> Self::Future {
            agent_core::boxed(|| $answer(self.$own.clone(), self.inner.clone(), req))
        }
    };
}

pub(crate) use {answers, around};
