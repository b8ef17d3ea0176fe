//! A process that serves agents.

use std::net::SocketAddr;

use agent_restate::AgentEndpoint;
use tokio::runtime::Runtime;

/// Process of the service, simulated by a runtime of its own: dropping the runtime ends it like a
/// kill.
pub(crate) struct Process(Option<Runtime>);

impl Process {
    pub(crate) fn start(endpoint: &AgentEndpoint, address: SocketAddr) -> Self {
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().expect("a runtime");
        let endpoint = endpoint.clone();
        let listener = {
            let _inside = runtime.enter();
            AgentEndpoint::listen(address).expect("the address is free")
        };
        runtime.spawn(async move { endpoint.serve(listener, std::future::pending::<()>()).await.expect("serves") });
        Self(Some(runtime))
    }

    #[allow(dead_code, reason = "one of the tests does not")]
    /// Kills the process: afterwards its address is free again.
    pub(crate) async fn kill(mut self) {
        let runtime = self.0.take().expect("it runs");
        let gone = tokio::task::spawn_blocking(move || runtime.shutdown_timeout(std::time::Duration::from_secs(10)));
        gone.await.expect("no panic");
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if let Some(runtime) = self.0.take() {
            runtime.shutdown_background();
        }
    }
}
