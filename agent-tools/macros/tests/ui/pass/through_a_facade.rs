//! An application that depends on `agent` alone, or has a facade of its own.

mod facade {
    pub mod tools {
        pub use agent_tools::*;
    }
}

use facade::tools::tool;

/// Adds two numbers.
#[tool(crate = "crate::facade::tools")]
async fn add(a: i64, #[tool(default)] b: i64) -> i64 {
    a + b
}

fn main() {
    fn is_a_tool(_: impl agent_core::Tool) {}
    is_a_tool(add);
}
