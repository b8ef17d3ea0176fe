//! A type-erased service is a tower service: readiness propagates through it.

use std::{
    future::{Ready, ready},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    task::{Context, Poll},
};

use agent_core::{Error, ErrorKind, middleware::SharedService};
use futures::FutureExt;
use tokio::sync::Notify;
use tower::{Service, ServiceBuilder, ServiceExt, service_fn};

type Shared = SharedService<u32, u32>;

/// A service that answers on demand.
fn held(
    gate: &Arc<Notify>,
) -> impl Service<u32, Response = u32, Error = Error, Future: Send> + Clone + Send + Sync + 'static {
    let gate = gate.clone();
    service_fn(move |n: u32| {
        let gate = gate.clone();
        async move {
            gate.notified().await;
            Ok::<_, Error>(n)
        }
    })
}

/// Two calls through clones of a service with a concurrency of one: the second is shed, and
/// accepted once the first has completed.
async fn sheds_the_second(
    service: impl Service<u32, Response = u32, Error = Error, Future: Send> + Clone,
    gate: &Notify,
) {
    let mut first = Box::pin(service.clone().oneshot(1));
    assert!(first.as_mut().now_or_never().is_none(), "it waits at the gate");
    let e = service.clone().oneshot(2).await.expect_err("one is running");
    assert_eq!(e.kind(), ErrorKind::Overloaded);
    assert!(e.is_retryable());
    gate.notify_one();
    assert_eq!(first.await.expect("answers"), 1);
    gate.notify_one();
    assert_eq!(service.oneshot(3).await.expect("is free again"), 3);
}

#[tokio::test]
async fn load_shed_over_a_concurrency_limit_sheds_inside_of_an_erased_service() {
    let gate = Arc::new(Notify::new());
    let stack = ServiceBuilder::new().load_shed().concurrency_limit(1).service(held(&gate));
    sheds_the_second(Shared::new(stack), &gate).await;
}

#[tokio::test]
async fn load_shed_sheds_when_the_limit_is_behind_an_erased_service() {
    let gate = Arc::new(Notify::new());
    let limited = Shared::new(ServiceBuilder::new().concurrency_limit(1).service(held(&gate)));
    sheds_the_second(Shared::new(ServiceBuilder::new().load_shed().service(limited)), &gate).await;
}

#[tokio::test]
async fn a_limit_counts_the_calls_of_all_clones() {
    let gate = Arc::new(Notify::new());
    let service = Shared::new(ServiceBuilder::new().concurrency_limit(1).service(held(&gate)));
    let mut first = Box::pin(service.clone().oneshot(1));
    let mut second = Box::pin(service.clone().oneshot(2));
    assert!(first.as_mut().now_or_never().is_none());
    assert!(second.as_mut().now_or_never().is_none());
    gate.notify_one();
    assert_eq!(first.await.expect("answers"), 1);
    assert!(second.as_mut().now_or_never().is_none(), "only now does it come to the gate");
    gate.notify_one();
    assert_eq!(second.await.expect("answers"), 2);
}

/// Counts its clones, and fails to become ready at first.
struct Counted {
    clones: Arc<AtomicUsize>,
    failures: Arc<AtomicUsize>,
}

impl Clone for Counted {
    fn clone(&self) -> Self {
        self.clones.fetch_add(1, Ordering::SeqCst);
        Self { clones: self.clones.clone(), failures: self.failures.clone() }
    }
}

impl Service<u32> for Counted {
    type Response = u32;
    type Error = Error;
    type Future = Ready<Result<u32, Error>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Error>> {
        let failing =
            self.failures.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1)).is_ok();
        Poll::Ready(if failing { Err(Error::tool("not ready")) } else { Ok(()) })
    }

    fn call(&mut self, n: u32) -> Self::Future {
        ready(Ok(n))
    }
}

fn counted(failures: usize) -> (Shared, Arc<AtomicUsize>) {
    let clones = Arc::<AtomicUsize>::default();
    let service = Counted { clones: clones.clone(), failures: Arc::new(AtomicUsize::new(failures)) };
    (Shared::new(service), clones)
}

#[tokio::test]
async fn a_clone_shares_the_stack_and_a_call_copies_it_once() {
    let (service, clones) = counted(0);
    let mut copies: Vec<_> = (0..100).map(|_| service.clone()).collect();
    assert_eq!(clones.load(Ordering::SeqCst), 0);
    for _ in 0..5 {
        copies[0].ready().await.expect("ready").call(1).await.expect("answers");
    }
    assert_eq!(clones.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn twenty_levels_cost_one_copy_of_each() {
    let (mut service, clones) = counted(0);
    for _ in 0..20 {
        service = Shared::new(service.map_request(|n: u32| n + 1));
    }
    assert_eq!(service.clone().oneshot(0).await.expect("answers"), 20);
    assert_eq!(clones.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn a_service_that_failed_to_become_ready_is_made_anew() {
    let (mut service, clones) = counted(1);
    assert_eq!(service.ready().await.expect_err("not ready").message(), "not ready");
    assert_eq!(service.ready().await.expect("ready").call(7).await.expect("answers"), 7);
    assert_eq!(clones.load(Ordering::SeqCst), 2);
}

#[tokio::test]
#[should_panic(expected = "poll_ready must return ready before call")]
async fn a_call_without_readiness_is_a_bug_of_the_caller() {
    let (mut service, _) = counted(0);
    drop(service.call(1));
}
