//! Outputs of a solver.

use std::str::FromStr;

use agent_core::{Error, Result};
use serde::{Deserialize, Serialize};

use crate::Slot;

/// Output of a solver.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Output {
    /// Answer of the planner's main model without any step: one model call.
    Base,
    /// Step-by-step solution.
    Final,
    /// Short answer.
    Direct,
}

impl Output {
    /// Parses a list such as `base,final,direct`; spaces and case are ignored.
    ///
    /// # Errors
    /// [`ErrorKind::Config`](agent_core::ErrorKind::Config) for an unknown name or an empty list.
    ///
    /// ```
    /// use agent_flow::Output;
    ///
    /// assert_eq!(Output::list("Base, final")?, [Output::Base, Output::Final]);
    /// assert!(Output::list("foo").is_err());
    /// # Ok::<(), agent_core::Error>(())
    /// ```
    pub fn list(text: &str) -> Result<Vec<Self>> {
        text.split(',').map(Self::from_str).collect()
    }

    /// The slots needed for these outputs.
    pub(crate) fn slots(outputs: &[Self]) -> Vec<Slot> {
        match outputs.iter().all(|output| *output == Self::Base) {
            true => vec![Slot::PlannerMain],
            false => Slot::ALL.to_vec(),
        }
    }
}

impl FromStr for Output {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        match text.trim().to_ascii_lowercase().as_str() {
            "base" => Ok(Self::Base),
            "final" => Ok(Self::Final),
            "direct" => Ok(Self::Direct),
            other => Err(Error::config(format!("there is no output '{other}': name base, final or direct"))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outputs_are_read_with_spaces_and_unknown_ones_are_refused() {
        assert_eq!(
            Output::list(" Base,final ,  direct").expect("known"),
            [Output::Base, Output::Final, Output::Direct]
        );
        for unknown in ["foo", "base,foo", "", "base,"] {
            let e = Output::list(unknown).expect_err("unknown");
            assert!(e.message().ends_with("name base, final or direct"), "{unknown}: {e}");
        }
    }
}
