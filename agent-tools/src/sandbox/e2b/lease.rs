//! Lease of a sandbox, which expires unless it is renewed.

use std::time::Duration;

use tokio::{runtime::Handle, spawn, time::sleep};

use super::{
    link::{Link, State},
    service::Service,
};

/// Renews the lease three times per lease period, until the sandbox is closed or gone.
pub(super) fn keep(service: Service, link: Link, lease: Duration) {
    spawn(async move {
        loop {
            tokio::select! {
                () = link.closed() => return,
                () = sleep(lease / 3) => {}
            }
            // If a renewal fails, the next one may succeed.
            if matches!(link.state(), State::Running(_)) && matches!(service.renew(link.id(), lease).await, Ok(false)) {
                return;
            }
        }
    });
}

/// Removes a sandbox in the background. Outside of a runtime, its lease expires instead.
pub(super) fn remove_later(service: &Service, id: &str) {
    if let Ok(runtime) = Handle::try_current() {
        let (service, id) = (service.clone(), id.to_owned());
        runtime.spawn(async move { service.remove(&id).await });
    }
}
