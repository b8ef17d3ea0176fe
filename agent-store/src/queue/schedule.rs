//! Due times of schedules.

use std::str::FromStr;

use agent_core::{Error, Result};
use agent_dispatch::Schedule;
use chrono::{DateTime, SecondsFormat, Utc};
use croner::Cron;

/// Cron expression of a schedule; its times are milliseconds since 1970, UTC.
pub(crate) struct Times(Cron);

impl Times {
    /// # Errors
    /// [`ErrorKind::Config`](agent_core::ErrorKind::Config) if the cron expression is invalid.
    pub(crate) fn of(schedule: &Schedule) -> Result<Self> {
        let (name, cron) = (&schedule.name, &schedule.cron);
        let unreadable = |e| {
            Error::config(format!(
                "invalid cron expression '{cron}' of schedule '{name}': expected one like '0 6 * * MON-FRI': {e}"
            ))
        };
        Cron::from_str(cron).map(Self).map_err(unreadable)
    }

    /// Returns the first due time after `now`.
    ///
    /// # Errors
    /// [`ErrorKind::Config`](agent_core::ErrorKind::Config) if no such time exists.
    pub(crate) fn after(&self, now: u64) -> Result<u64> {
        let never = || Error::config("the schedule is never due again: change its cron expression");
        let now = i64::try_from(now).ok().and_then(DateTime::from_timestamp_millis).ok_or_else(never)?;
        let next: DateTime<Utc> = self.0.find_next_occurrence(&now, false).map_err(|_| never())?;
        u64::try_from(next.timestamp_millis()).map_err(|_| never())
    }
}

/// Formats a time for the id of a run.
pub(crate) fn in_words(time: u64) -> String {
    let time = i64::try_from(time).ok().and_then(DateTime::<Utc>::from_timestamp_millis).unwrap_or_default();
    time.to_rfc3339_opts(SecondsFormat::Secs, true)
}

#[cfg(test)]
mod tests {
    use agent_core::RunRequest;
    use agent_dispatch::Job;

    use super::*;

    fn times(cron: &str) -> Result<Times> {
        Times::of(&Schedule::new("s", cron, Job::new("a", &RunRequest::user("x")).expect("data")))
    }

    #[test]
    fn the_next_time_comes_after_now_in_utc() {
        let mornings = times("0 6 * * MON-FRI").expect("cron");
        let friday_at_six = 1_764_309_600_000;
        assert_eq!(in_words(friday_at_six), "2025-11-28T06:00:00Z");
        assert_eq!(mornings.after(friday_at_six - 1).expect("comes"), friday_at_six);
        assert_eq!(in_words(mornings.after(friday_at_six).expect("comes")), "2025-12-01T06:00:00Z");
    }

    #[test]
    fn what_is_no_cron_is_refused_with_an_example() {
        let e = times("each morning").map(drop).expect_err("no cron");
        assert!(
            e.message().contains("'each morning' of schedule 's'") && e.message().contains("0 6 * * MON-FRI"),
            "{e}"
        );
    }
}
