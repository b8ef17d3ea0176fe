//! The lease of a sandbox: it ends by itself, unless it is renewed.

use std::time::Duration;

use tokio::{runtime::Handle, spawn, time::sleep};

use super::{
    link::{Link, State},
    service::Service,
};

/// Renews the lease three times in its length, until the sandbox is closed, or is gone.
pub(super) fn keep(service: Service, link: Link, lease: Duration) {
    spawn(async move {
        loop {
            tokio::select! {
                () = link.closed() => return,
                () = sleep(lease / 3) => {}
            }
            // A lease that could not be renewed now may be the next time.
            if matches!(link.state(), State::Running(_)) && matches!(service.renew(link.id(), lease).await, Ok(false)) {
                return;
            }
        }
    });
}

/// Removes a sandbox, when nobody can wait for it. Outside of a runtime, its lease ends it.
pub(super) fn remove_later(service: &Service, id: &str) {
    if let Ok(runtime) = Handle::try_current() {
        let (service, id) = (service.clone(), id.to_owned());
        runtime.spawn(async move { service.remove(&id).await });
    }
}
