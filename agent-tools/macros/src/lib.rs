//! The `#[tool]` attribute of `agent-tools`. Use it through that crate, or through `agent`.

mod crate_path;
mod docs;
mod expand;
mod options;
mod params;

use proc_macro::TokenStream;
use syn::{ItemFn, parse_macro_input};

use self::options::Options;

/// Turns a function into a tool.
///
/// The function becomes a unit struct of the same name that implements `agent_core::Tool`, so that
/// `builder.tool(add)` works. The function itself stays callable as `add::run(..)`, for tests.
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
/// # Visible to the model
///
/// * The **name** is the function's, or `name = ".."`.
/// * The **description** is the doc comment, or `description = ".."`. Sections for readers of the
///   code are left out: `# Arguments`, `# Errors`, `# Panics`, `# Examples`.
/// * The **parameters** are those of the function. Their types implement `serde::Deserialize` and
///   `schemars::JsonSchema`; the model may omit an `Option`, and a parameter with
///   `#[tool(default)]` or `#[tool(default = ..)]`, which is an expression of the parameter's type.
///   Their descriptions are their doc comments, or the list in the section `# Arguments`.
///
/// # Hidden from the model
///
/// Parameters of these types, by value or by reference, are injected: `RunCx`, `ToolRequest`,
/// `State`, `GlobalStorage` and `Resource<T>`. A tool with a `State` parameter never runs
/// concurrently with a tool that writes to the state.
///
/// # Functions that are not async
///
/// They run on the executor's thread and must not block. Mark a blocking function `blocking`: it
/// then runs on a thread for blocking work, and runs to its end even if the run is cancelled,
/// unless it checks `RunCx::cancellation`.
///
/// # Options
///
/// | option | meaning |
/// |---|---|
/// | `name = ".."`, `description = ".."` | override the function's name and doc comment |
/// | `effect = ".."` | `pure`, `idempotent`, `reconcilable` or `at_most_once` (the default): the effect of repeating a call |
/// | `destructive = true` | a call may destroy something; `open_world = true`: a call may reach systems outside the application |
/// | `serial` | never runs concurrently with another call of the same message |
/// | `blocking` | runs on a thread for blocking work |
/// | `timeout = "5s"`, `timeout_ms = 5000` | timeout of one attempt; units `ms`, `s`, `m`, `h` |
/// | `concurrency = 4` | maximum of concurrent calls, across all runs of the agent |
/// | `reads(param = "key")` | fills the parameter from the state when the model omits it |
/// | `writes(key = "field")`, `writes(key)` | writes the field of the result, or all of the result, to the state |
/// | `crate = "path"` | path of `agent_tools`, if it is neither a dependency nor re-exported by `agent` |
///
/// The function returns any type that implements `IntoToolOutput`.
#[proc_macro_attribute]
pub fn tool(options: TokenStream, item: TokenStream) -> TokenStream {
    let function = parse_macro_input!(item as ItemFn);
    let mut parsed = Options::default();
    let parser = syn::meta::parser(|meta| parsed.read(&meta));
    parse_macro_input!(options with parser);
    expand::expand(&parsed, function).unwrap_or_else(|e| e.to_compile_error()).into()
}
