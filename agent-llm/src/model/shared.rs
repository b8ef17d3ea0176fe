//! The transport of models that were given none.

use std::sync::Arc;

use agent_core::Result;

use crate::Transport;

/// One transport for all models of the process: calls to the same server use the same connections, whatever model makes them.
#[cfg(feature = "http")]
pub(crate) fn default_transport() -> Result<Arc<dyn Transport>> {
    static SHARED: std::sync::LazyLock<Arc<of_runtimes::Shared>> = std::sync::LazyLock::new(Arc::default);
    Ok(SHARED.clone())
}

#[cfg(not(feature = "http"))]
pub(crate) fn default_transport() -> Result<Arc<dyn Transport>> {
    Err(agent_core::Error::config("there is no transport: give one with transport(..), or enable the feature 'http'"))
}

#[cfg(feature = "http")]
mod of_runtimes {
    use std::sync::{Mutex, PoisonError};

    use agent_core::async_trait;
    use bytes::Bytes;
    use http::{Request, Response};
    use tokio::runtime::{Handle, Id};

    use super::{Arc, Result};
    use crate::{Body, HttpTransport, Transport};

    /// The most runtimes whose connections are kept. An application has one, and tests have one each.
    const MOST: usize = 16;

    /// A transport for each runtime: a connection is moved by the runtime in which it was made, and dies with it.
    #[derive(Default)]
    pub(super) struct Shared(Mutex<Vec<(Id, Arc<HttpTransport>)>>);

    impl Shared {
        pub(super) fn here(&self) -> Arc<HttpTransport> {
            let id = Handle::current().id();
            let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some((_, transport)) = known.iter().find(|(known, _)| *known == id) {
                return transport.clone();
            }
            if known.len() == MOST {
                known.remove(0); // the oldest; calls that are under way keep theirs
            }
            let transport = Arc::new(HttpTransport::new());
            known.push((id, transport.clone()));
            transport
        }
    }

    #[async_trait]
    impl Transport for Shared {
        async fn send(&self, request: Request<Bytes>) -> Result<Response<Body>> {
            self.here().send(request).await
        }
    }
}

#[cfg(all(test, feature = "http"))]
mod tests {
    use super::*;

    #[test]
    fn models_of_a_runtime_have_one_transport_and_those_of_another_one_of_their_own() {
        let shared = of_runtimes::Shared::default();
        let runtime = || tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
        let (one, other) = (runtime(), runtime());
        let in_one = one.block_on(async { shared.here() });
        assert!(Arc::ptr_eq(&in_one, &one.block_on(async { shared.here() })));
        assert!(!Arc::ptr_eq(&in_one, &other.block_on(async { shared.here() })));
        for _ in 0..20 {
            runtime().block_on(async { shared.here() });
        }
        assert!(!Arc::ptr_eq(&in_one, &one.block_on(async { shared.here() })), "it was the oldest of many");
    }
}
