//! What holds of all wires.

#[path = "../samples/mod.rs"]
mod samples;

mod fuzz;
mod liar;

use agent_llm::conformance::{Report, check};

use crate::samples::ROWS;

#[test]
fn every_wire_conforms() {
    let reports: Vec<_> = ROWS.iter().map(|row| check((row.codec)(), &(row.samples)())).collect();
    assert!(reports.iter().all(Report::is_clean), "\n{}", reports.iter().map(ToString::to_string).collect::<String>());
}
