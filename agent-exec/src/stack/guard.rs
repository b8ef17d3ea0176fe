//! Converts panics to errors.

use std::{any::Any, panic::AssertUnwindSafe};

use agent_core::{Error, ErrorKind, Result};
use futures::FutureExt;

/// Returns the result of `work`; a panic becomes an error that names `who`.
pub(crate) async fn caught<T>(who: &str, work: impl Future<Output = Result<T>>) -> Result<T> {
    let panicked = |panic: Box<dyn Any + Send>| Err(Error::from_panic(ErrorKind::Unexpected, who, panic));
    AssertUnwindSafe(work).catch_unwind().await.unwrap_or_else(panicked)
}
