//! The `#[tool]` attribute of `agent-tools`. Use it through that crate, or through `agent`.

mod crate_path;
mod docs;
mod expand;
mod options;
mod params;

use proc_macro::TokenStream;
use syn::{ItemFn, parse_macro_input};

use self::options::Options;

/// Makes a tool of a function.
///
/// The function becomes a unit struct of the same name that implements `agent_core::Tool`, so that `builder.tool(add)` works.
/// The function itself stays callable as `add::run(..)`, for tests.
///
/// ```
/// use agent_tools::tool;
///
/// /// Adds two numbers.
/// ///
/// /// # Arguments
/// /// * `a` - The first number.
/// #[tool(effect = "pure")]
/// fn add(
///     a: i64,
///     /// The second number.
///     #[tool(default = 1)]
///     b: i64,
/// ) -> i64 {
///     a + b
/// }
///
/// assert_eq!(add::run(2, 3), 5);
/// ```
///
/// # What the model is told
///
/// * The **name** is the function's, or `name = ".."`.
/// * The **description** is the doc comment, or `description = ".."`. Sections that are for readers of the code are left out:
///   `# Arguments`, `# Errors`, `# Panics`, `# Examples`.
/// * The **parameters** are the function's. Their types implement `serde::Deserialize` and `schemars::JsonSchema`; the model
///   may leave out an `Option`, and a parameter with `#[tool(default)]` or `#[tool(default = ..)]`, which is an expression of
///   its type. Their descriptions are
///   their doc comments, or the list in the section `# Arguments`.
///
/// # What the model does not see
///
/// Parameters of these types, by value or by reference, are filled in: `RunCx`, `ToolRequest`, `State`, `GlobalStorage`, and
/// `Resource<T>`. A tool with a `State` runs apart from every tool that writes to it.
///
/// # Functions that are not async
///
/// They are called where they stand and must not block. One that does is marked `blocking`; it runs on a thread of its own, and
/// goes on to its end even if the run is cancelled, unless it looks at `RunCx::cancellation`.
///
/// # Options
///
/// | option | meaning |
/// |---|---|
/// | `name = ".."`, `description = ".."` | in place of the function's |
/// | `effect = ".."` | `pure`, `idempotent`, `reconcilable` or `at_most_once` (the default): what repeating a call would do |
/// | `destructive = true` | whether a call may destroy something; `open_world = true` whether it reaches what nobody here knows |
/// | `serial` | never beside another call of the same message |
/// | `blocking` | runs on a thread where it may block |
/// | `timeout = "5s"`, `timeout_ms = 5000` | longest time of an attempt; units `ms`, `s`, `m`, `h` |
/// | `concurrency = 4` | most calls at once, over all runs of the agent |
/// | `reads(param = "key")` | fills the parameter from the state when the model leaves it out |
/// | `writes(key = "field")`, `writes(key)` | writes the field of the result, or all of it, to the state |
/// | `crate = "path"` | where `agent_tools` is, if it is neither a dependency nor re-exported by `agent` |
///
/// What it returns is anything that implements `IntoToolOutput`.
#[proc_macro_attribute]
pub fn tool(options: TokenStream, item: TokenStream) -> TokenStream {
    let function = parse_macro_input!(item as ItemFn);
    let mut parsed = Options::default();
    let parser = syn::meta::parser(|meta| parsed.read(&meta));
    parse_macro_input!(options with parser);
    expand::expand(&parsed, function).unwrap_or_else(|e| e.to_compile_error()).into()
}
