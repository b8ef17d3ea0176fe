//! [`Report`]: findings of the suite.

use std::{
    fmt,
    panic::{AssertUnwindSafe, catch_unwind},
};

use agent_core::message::Origin;

/// Maximum number of complaints shown per claim.
const SHOWN: usize = 10;

/// Outcome of each claim. [`Display`](fmt::Display) prints it, line by line.
#[derive(Clone, Debug)]
#[must_use = "a report must be looked at: `assert_clean` fails a test"]
pub struct Report {
    codec: String,
    claims: Vec<(&'static str, Vec<String>)>,
}

impl Report {
    pub(super) fn new(origin: &Origin) -> Self {
        Self { codec: format!("{} of {}", origin.wire(), origin.provider()), claims: Vec::new() }
    }

    /// Adds a claim; a panic is a complaint.
    pub(super) fn add(&mut self, claim: &'static str, check: impl FnOnce() -> Vec<String>) {
        let complaints = catch_unwind(AssertUnwindSafe(check)).unwrap_or_else(|panic| vec![panicked(&*panic)]);
        self.claims.push((claim, complaints));
    }

    /// Returns true if every claim holds.
    pub fn is_clean(&self) -> bool {
        self.claims.iter().all(|(_, complaints)| complaints.is_empty())
    }

    /// Returns the claims that do not hold, with their complaints.
    pub fn broken(&self) -> impl Iterator<Item = (&'static str, &[String])> {
        self.claims.iter().filter(|(_, complaints)| !complaints.is_empty()).map(|(claim, all)| (*claim, &all[..]))
    }

    /// Asserts that every claim holds.
    ///
    /// # Panics
    /// With the report, if a claim does not hold.
    #[track_caller]
    pub fn assert_clean(&self) {
        assert!(self.is_clean(), "{self}");
    }
}

/// Returns the message of a panic.
pub(super) fn panicked(panic: &(dyn std::any::Any + Send)) -> String {
    let said = panic.downcast_ref::<String>().map(String::as_str).or(panic.downcast_ref::<&str>().copied());
    format!("panicked: {}", said.unwrap_or("without a message"))
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let broken = self.broken().count();
        writeln!(f, "{}: {} of {} claims hold", self.codec, self.claims.len() - broken, self.claims.len())?;
        for (claim, complaints) in &self.claims {
            writeln!(f, "{} {claim}", if complaints.is_empty() { "  ok  " } else { "BROKEN" })?;
            for complaint in complaints.iter().take(SHOWN) {
                writeln!(f, "         {}", complaint.replace('\n', "\n         "))?;
            }
            if complaints.len() > SHOWN {
                writeln!(f, "         and {} more", complaints.len() - SHOWN)?;
            }
        }
        Ok(())
    }
}
