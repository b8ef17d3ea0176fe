//! Pause requests.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

/// Request to pause at the next boundary, shared by several runs. Cheap to clone; all clones share
/// the same data.
///
/// ```
/// use agent_core::engine::Pause;
///
/// let tree = Pause::default();
/// let branch = tree.child();
/// branch.request();
/// assert!(branch.is_requested() && !tree.is_requested());
/// branch.request_all();
/// assert!(tree.is_requested());
/// ```
#[derive(Clone, Debug, Default)]
pub struct Pause(Arc<Flag>);

#[derive(Debug, Default)]
struct Flag {
    set: AtomicBool,
    above: Option<Pause>,
}

impl Pause {
    /// Creates a request for a part of the tree: that part pauses with the tree, or alone.
    #[must_use]
    pub fn child(&self) -> Self {
        Self(Arc::new(Flag { set: AtomicBool::new(false), above: Some(self.clone()) }))
    }

    /// Requests a pause of the runs that share this value.
    pub fn request(&self) {
        self.0.set.store(true, Ordering::Release);
    }

    /// Requests a pause of the whole tree.
    pub fn request_all(&self) {
        match &self.0.above {
            Some(above) => above.request_all(),
            None => self.request(),
        }
    }

    /// Withdraws the request, including that of the whole tree: the run was paused, and resumes.
    pub fn withdraw(&self) {
        self.0.set.store(false, Ordering::Release);
        if let Some(above) = &self.0.above {
            above.withdraw();
        }
    }

    /// True if these runs, or the whole tree, must pause.
    pub fn is_requested(&self) -> bool {
        self.0.set.load(Ordering::Acquire) || self.0.above.as_ref().is_some_and(Self::is_requested)
    }
}
