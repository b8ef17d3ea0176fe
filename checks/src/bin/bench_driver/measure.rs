//! Measurements of the driver: CPU time, memory, deltas.

use std::{
    path::Path,
    sync::{Mutex, PoisonError},
    time::Instant,
};

use nix::sys::resource::{UsageWho, getrusage};
use serde_json::{Value, json};

static TICKS: Mutex<Vec<f64>> = Mutex::new(Vec::new());

/// Records the CPU time so far: once per tool call, so that the cost of single steps can be
/// derived.
pub(crate) fn tick() {
    TICKS.lock().unwrap_or_else(PoisonError::into_inner).push(cpu());
}

/// Returns the user and system time of this process in seconds.
fn cpu() -> f64 {
    let seconds = |t: nix::sys::time::TimeVal| t.tv_sec() as f64 + t.tv_usec() as f64 / 1e6;
    getrusage(UsageWho::RUSAGE_SELF).map_or(0.0, |usage| seconds(usage.user_time()) + seconds(usage.system_time()))
}

/// Returns the number on the line of a `/proc/self` file that begins with `key`.
fn proc_number(file: &str, key: &str) -> u64 {
    let text = std::fs::read_to_string(format!("/proc/self/{file}")).unwrap_or_default();
    let line = text.lines().find(|line| line.starts_with(key));
    line.and_then(|line| line.split_whitespace().nth(1)?.parse().ok()).unwrap_or(0)
}

/// Observations of runs.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Seen {
    /// Seconds until the first text delta of the first run.
    pub(crate) first_delta_s: Option<f64>,
    /// Number of text deltas of all runs.
    pub(crate) deltas: u64,
}

impl Seen {
    pub(crate) fn and(self, other: &Self) -> Self {
        Self { first_delta_s: self.first_delta_s.or(other.first_delta_s), deltas: self.deltas + other.deltas }
    }
}

/// Point in time: wall and CPU seconds, and bytes written.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Mark {
    wall: Instant,
    elapsed: f64,
    cpu: f64,
    written: u64,
}

impl Mark {
    pub(crate) fn now() -> Self {
        Self { wall: Instant::now(), elapsed: 0.0, cpu: cpu(), written: proc_number("io", "write_bytes") }
    }

    pub(crate) fn since(self, start: &Self) -> Self {
        Self {
            elapsed: (self.wall - start.wall).as_secs_f64(),
            cpu: self.cpu - start.cpu,
            written: self.written - start.written,
            ..self
        }
    }
}

/// Measurements before a batch.
#[derive(Debug)]
pub(crate) struct Before {
    mark: Mark,
    rss: u64,
}

/// Report of the driver.
#[derive(Debug)]
pub(crate) struct Report {
    idle_rss: u64,
    warm_rss: u64,
    setup_s: f64,
    reps: Vec<Value>,
}

impl Report {
    pub(crate) fn begin() -> Self {
        Self { idle_rss: proc_number("status", "VmRSS"), warm_rss: 0, setup_s: 0.0, reps: Vec::new() }
    }

    pub(crate) fn warm(&mut self, started: Instant) {
        (self.warm_rss, self.setup_s) = (proc_number("status", "VmRSS"), started.elapsed().as_secs_f64());
    }

    pub(crate) fn before_batch(&self) -> Before {
        let rss = proc_number("status", "VmRSS");
        let _ = std::fs::write("/proc/self/clear_refs", "5"); // resets the peak
        TICKS.lock().unwrap_or_else(PoisonError::into_inner).clear();
        Before { mark: Mark::now(), rss }
    }

    pub(crate) fn after_batch(&mut self, before: &Before, seen: &Seen, marks: &[Mark], db: Option<&Path>) {
        let used = Mark::now().since(&before.mark);
        let ticks = std::mem::take(&mut *TICKS.lock().unwrap_or_else(PoisonError::into_inner));
        let ticks = if ticks.len() > 100 { ticks } else { Vec::new() };
        let size = |path: &Path| std::fs::metadata(path).map_or(0, |m| m.len());
        let marks: Vec<_> = marks.iter().map(|m| json!([m.elapsed, m.cpu, m.written])).collect();
        self.reps.push(json!({
            "wall_s": used.elapsed, "cpu_s": used.cpu, "ticks": ticks,
            "rss_before_kb": before.rss, "rss_peak_kb": proc_number("status", "VmHWM"),
            "first_delta_s": seen.first_delta_s, "deltas": seen.deltas,
            "marks": marks, "db_bytes": db.map_or(0, size),
        }));
    }

    pub(crate) fn to_json(&self) -> Value {
        let mut report = json!({
            "ok": true, "idle_rss_kb": self.idle_rss, "warm_rss_kb": self.warm_rss, "setup_s": self.setup_s,
            "reps": self.reps,
        });
        for rep in report["reps"].as_array_mut().into_iter().flatten().filter_map(Value::as_object_mut) {
            if rep["marks"].as_array().is_some_and(Vec::is_empty) {
                rep.remove("marks");
            }
        }
        report
    }
}
