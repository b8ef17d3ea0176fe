use agent_tools::tool;

#[tool(efect = "pure")]
fn misspelt() {}

#[tool(effect = "harmless")]
fn unknown_effect() {}

#[tool(timeout = "5")]
fn no_unit() {}

#[tool(name = "with space")]
fn bad_name() {}

#[tool(serial, serial)]
fn twice() {}

#[tool(concurrency = 0)]
fn never() {}

#[tool(reads(token = "key"))]
fn nothing_to_fill(tokens: String) -> String {
    tokens
}

#[tool(blocking)]
async fn not_blocking() {}

fn main() {}
