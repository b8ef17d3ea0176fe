//! A model without a provider, which repairs the sample repository.

use agent::testing::{ScriptedModel, Turn};
use serde_json::json;

use crate::repository::TEST;

/// Returns the repair as a call of `edit_file`.
pub(crate) fn edit() -> Turn {
    let (old, new) = ("if amount > FREE_FROM:", "if amount >= FREE_FROM:");
    Turn::call("c3", "edit_file", json!({"path": "shipping.py", "old_text": old, "new_text": new}))
}

/// Runs the tests, reads the code, repairs it, and runs the tests again.
pub(crate) fn repairing() -> ScriptedModel {
    ScriptedModel::new([
        Turn::call("c1", "bash", json!({"command": TEST})),
        Turn::call("c2", "read_file", json!({"path": "shipping.py"})),
        edit(),
        Turn::call("c4", "bash", json!({"command": TEST})),
        Turn::text("An order of exactly the limit paid for its shipping. The comparison now includes the limit."),
    ])
}
