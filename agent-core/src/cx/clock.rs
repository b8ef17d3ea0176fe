//! Wall-clock time of runs.

use std::{
    fmt,
    sync::Arc,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

/// Wall clock of runs: the system clock, unless an agent or a request provides another one as a
/// resource.
///
/// ```
/// use agent_core::{RunRequest, run::Clock};
/// use std::time::{Duration, SystemTime};
///
/// let tomorrow = Clock::new(|| SystemTime::now() + Duration::from_secs(86_400));
/// let request = RunRequest::user("hello").resource(tomorrow);
/// ```
#[derive(Clone)]
pub struct Clock(Arc<dyn Fn() -> SystemTime + Send + Sync>);

impl Clock {
    /// Creates a clock that returns the values of `now`.
    pub fn new(now: impl Fn() -> SystemTime + Send + Sync + 'static) -> Self {
        Self(Arc::new(now))
    }

    /// Current time, in milliseconds since 1970, UTC.
    pub fn now(&self) -> u64 {
        millis((self.0)().duration_since(UNIX_EPOCH).unwrap_or_default())
    }
}

impl Default for Clock {
    fn default() -> Self {
        Self::new(SystemTime::now)
    }
}

impl fmt::Debug for Clock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Clock").field(&self.now()).finish()
    }
}

pub(crate) fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
