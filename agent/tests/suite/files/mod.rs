//! Agents as files: what is wrong is said where it is, every key acts, and what is written is read again.

mod bad_input;
mod cookbook;
mod examples;
mod keys;
mod live;
mod loading;
mod nexau;
mod round_trip;
mod spelling;
mod teams;

use agent::{
    config::{Format, Loaded, Loader, Problems, Registry},
    prelude::*,
    testing::{ScriptedModel, Turn},
};

/// Adds two numbers.
#[tool]
async fn add(a: i64, b: i64) -> i64 {
    a + b
}

/// A loader whose only model answers "done", with a tool, and an environment of its own.
fn loader() -> Loader {
    loader_of(&ScriptedModel::new(vec![Turn::text("done"); 20]))
}

fn loader_of(model: &ScriptedModel) -> Loader {
    let registry = Registry::builtin().model("small", model.clone()).tool(add);
    Loader::new().registry(registry).environment(|name| match name {
        "SECRET" => Some("SECRET123".to_owned()),
        "FIVE" => Some("5".to_owned()),
        "MINUS" => Some("-7".to_owned()),
        "YES" => Some("true".to_owned()),
        _ => None,
    })
}

fn read(text: &str) -> Result<Loaded, Problems> {
    loader().read(text, Format::Yaml)
}

/// Returns the problems of a text, as shown to a person.
fn wrong(text: &str) -> String {
    match read(text) {
        Ok(_) => panic!("nothing is wrong with:\n{text}"),
        Err(problems) => problems.to_string(),
    }
}
