//! [`Snapshots`]: lets the application store the checkpoints of stopped runs.

use std::{fmt, sync::Arc};

use agent_core::{BoxFuture, Checkpoint, EventKind, Middleware, Result, RunCx, RunEnd};
use async_trait::async_trait;

type Save = dyn Fn(Checkpoint) -> BoxFuture<'static, Result<String>> + Send + Sync;

/// Passes the checkpoint of each unfinished run to the application: of a run that waits, was paused
/// or cancelled, or failed. The location that the application returns is in
/// [`saved_as`](agent_core::Checkpoint::saved_as) of the run's end.
///
/// An instance among a request's resources replaces the agent's own. If storing fails, there is a
/// warning event, and the run still returns its checkpoint.
///
/// # Order
///
/// Outermost, so that no other middleware changes the end after it was stored.
///
/// ```text
/// // right: the stored checkpoint is the final one
/// builder.middleware(Snapshots::new(save)).middleware(change_the_end)
/// // wrong: the end changes after its checkpoint was stored
/// builder.middleware(change_the_end).middleware(Snapshots::new(save))
/// ```
///
/// # Example
///
/// ```
/// use agent_core::{Checkpoint, RunRequest};
/// use agent_middleware::Snapshots;
///
/// let always = Snapshots::new(|checkpoint: Checkpoint| async move { Ok(format!("{}.json", checkpoint.ids.run_id)) });
/// let this_time = RunRequest::user("go").resource(Snapshots::new(|_| async { Ok("here".to_owned()) }));
/// # drop((always, this_time));
/// ```
#[derive(Clone, Default)]
pub struct Snapshots {
    save: Option<Arc<Save>>,
}

impl Snapshots {
    /// Stores checkpoints with `save`, which returns their location.
    pub fn new<F, Fut>(save: F) -> Self
    where
        F: Fn(Checkpoint) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<String>> + Send + 'static,
    {
        Self { save: Some(Arc::new(move |checkpoint| Box::pin(save(checkpoint)))) }
    }
}

#[async_trait]
impl Middleware for Snapshots {
    fn name(&self) -> &str {
        "snapshots"
    }

    async fn after_agent(&self, cx: &RunCx, end: &mut Result<RunEnd>) -> Result<()> {
        let of_run = cx.resources().get::<Self>().ok().and_then(|given| given.save.clone());
        let checkpoint = match end {
            Ok(RunEnd::Interrupted(c) | RunEnd::Paused(c) | RunEnd::Cancelled(c)) => Some(&mut **c),
            Ok(_) => None,
            Err(e) => e.checkpoint_mut(),
        };
        let (Some(save), Some(checkpoint)) = (of_run.or_else(|| self.save.clone()), checkpoint) else { return Ok(()) };
        match save(checkpoint.clone()).await {
            Ok(place) => checkpoint.saved_as = Some(place),
            Err(e) => cx.emit(EventKind::Warning { message: format!("the checkpoint could not be kept: {e}") }),
        }
        Ok(())
    }
}

impl fmt::Debug for Snapshots {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Snapshots").field("save", &self.save.is_some()).finish()
    }
}
