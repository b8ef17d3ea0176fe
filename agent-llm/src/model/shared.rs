//! Default transport of models without one.

use std::sync::Arc;

use agent_core::Result;

use crate::Transport;

/// Returns the process-wide transport: all models share its connections to a server.
#[cfg(feature = "http")]
pub(crate) fn default_transport() -> Result<Arc<dyn Transport>> {
    Ok(of_runtimes::PROCESS.clone())
}

#[cfg(not(feature = "http"))]
pub(crate) fn default_transport() -> Result<Arc<dyn Transport>> {
    Err(agent_core::Error::config("there is no transport: give one with transport(..), or enable the feature 'http'"))
}

#[cfg(feature = "http")]
mod of_runtimes {
    use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};

    use agent_core::async_trait;
    use bytes::Bytes;
    use http::{Request, Response};
    use tokio::runtime::{Handle, Id};

    use super::{Arc, Result};
    use crate::{Body, HttpTransport, HttpTransportBuilder, Transport};

    /// Instance of the process.
    pub(super) static PROCESS: LazyLock<Arc<Shared>> = LazyLock::new(Arc::default);

    /// Maximum number of runtimes whose connections are kept. An application has one runtime, and
    /// each test has its own.
    const MOST: usize = 16;

    /// One transport per runtime: a connection is driven by the runtime that created it, and dies
    /// with it.
    #[derive(Default)]
    pub(super) struct Shared(Mutex<State>);

    #[derive(Default)]
    struct State {
        settings: HttpTransportBuilder,
        known: Vec<(Id, Arc<HttpTransport>)>,
    }

    impl Shared {
        /// Sets the transport of further requests; calls in flight keep their connections.
        pub(super) fn set(&self, settings: HttpTransportBuilder) {
            *self.lock() = State { settings, known: Vec::new() };
        }

        pub(super) fn here(&self) -> Result<Arc<HttpTransport>> {
            let id = Handle::current().id();
            let State { settings, known } = &mut *self.lock();
            if let Some((_, transport)) = known.iter().find(|(known, _)| *known == id) {
                return Ok(transport.clone());
            }
            if known.len() == MOST {
                known.remove(0); // the oldest; calls in flight keep their transport
            }
            let transport = Arc::new(settings.clone().build()?);
            known.push((id, transport.clone()));
            Ok(transport)
        }

        fn lock(&self) -> MutexGuard<'_, State> {
            self.0.lock().unwrap_or_else(PoisonError::into_inner)
        }
    }

    impl HttpTransportBuilder {
        /// Installs these settings for the transport that the whole process shares: everything
        /// without its own transport uses them for further requests, including models that already
        /// exist.
        ///
        /// ```
        /// use agent_llm::HttpTransport;
        ///
        /// HttpTransport::builder().proxy("http://proxy.example.com:3128").install()?;
        /// # Ok::<(), agent_core::Error>(())
        /// ```
        ///
        /// # Errors
        /// As [`build`](Self::build); then nothing changes.
        pub fn install(self) -> Result<()> {
            self.clone().build()?;
            PROCESS.set(self);
            Ok(())
        }
    }

    #[async_trait]
    impl Transport for Shared {
        async fn send(&self, request: Request<Bytes>) -> Result<Response<Body>> {
            self.here()?.send(request).await
        }
    }
}

#[cfg(all(test, feature = "http"))]
mod tests {
    use super::*;
    use crate::HttpTransport;

    fn runtime() -> tokio::runtime::Runtime {
        tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime")
    }

    #[test]
    fn models_of_a_runtime_have_one_transport_and_those_of_another_one_of_their_own() {
        let shared = of_runtimes::Shared::default();
        let here = |runtime: &tokio::runtime::Runtime| runtime.block_on(async { shared.here() }).expect("valid");
        let (one, other) = (runtime(), runtime());
        let in_one = here(&one);
        assert!(Arc::ptr_eq(&in_one, &here(&one)));
        assert!(!Arc::ptr_eq(&in_one, &here(&other)));
        for _ in 0..20 {
            here(&runtime());
        }
        assert!(!Arc::ptr_eq(&in_one, &here(&one)), "it was the oldest of many");
    }

    #[test]
    fn what_is_set_holds_for_the_requests_that_follow() {
        let (shared, runtime) = (of_runtimes::Shared::default(), runtime());
        let asks = || {
            let request = http::Request::get("http://10.0.0.1/").body(bytes::Bytes::new()).expect("a request");
            runtime.block_on(shared.send(request)).expect_err("there is no proxy")
        };
        for port in [1, 2] {
            shared.set(HttpTransport::builder().proxy(format!("http://127.0.0.1:{port}")));
            let error = asks();
            assert_eq!(error.context("part"), Some("proxy"));
            assert!(error.message().contains(&format!("127.0.0.1:{port}")), "{error}");
        }
    }
}
