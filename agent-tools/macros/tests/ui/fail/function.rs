use agent_tools::tool;

#[tool]
fn generic<T>(value: T) {}

#[tool]
fn method(&self) {}

fn main() {}
