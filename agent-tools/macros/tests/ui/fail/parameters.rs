use agent_tools::tool;

#[tool]
fn reserved(raw_arguments: String) -> String {
    raw_arguments
}

#[tool]
fn borrowed(text: &str) -> usize {
    text.len()
}

#[tool]
fn without_a_name((a, b): (i64, i64)) -> i64 {
    a + b
}

#[tool]
fn which_handle(handle: agent_tools::Resource) {}

#[tool]
fn filled_in(#[tool(default)] cx: &agent_core::RunCx) {}

#[tool]
fn misspelt(#[tool(defualt = 1)] n: i64) -> i64 {
    n
}

#[tool]
fn echo(echo: String) -> String {
    echo
}

/// Echoes.
///
/// # Arguments
/// * `txt` - What to say.
#[tool]
fn described(text: String) -> String {
    text
}

fn main() {}
