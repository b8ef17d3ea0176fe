//! `agent new`.

use std::{
    fs,
    io::{self, BufRead, IsTerminal, Write},
    path::{Path, PathBuf},
};

use agent::{Error, Result, llm::Providers};
use serde_json::json;

use crate::{
    cli::{Global, New},
    load,
    output::{End, cannot, plain, print, print_json},
};

/// Template of a new file; each value is written as JSON, which YAML reads.
fn template(name: &str, model: &str, system: &str) -> String {
    format!(
        "# An agent. Run it with: agent run {name}.yaml 'Hello.'\n\
         # `agent schema` writes what a file may say, for editors.\n\
         name: {}\n\
         description: What it is good for.\n\
         model: {}\n\
         system: {}\n\
         tools: [{{workspace: {{root: ., read_only: true}}}}]\n\
         middleware: [{{limits: {{model_calls: 50}}}}]\n",
        json!(name),
        json!(model),
        json!(system),
    )
}

/// Writes a file for a new agent.
pub(crate) fn new(wanted: &New, global: &Global) -> Result<End> {
    let (file, text) = match &wanted.from {
        Some(from) => joined(from, wanted.agent.as_deref(), global)?,
        None => {
            let name = wanted.agent.as_deref().unwrap_or_default();
            (file_of(name)?, filled(name, global)?)
        }
    };
    if file.exists() && !wanted.force {
        return Err(Error::config(format!("{} is there already: --force replaces it", file.display())));
    }
    fs::write(&file, text).map_err(|e| cannot(file.display(), e))?;
    if global.json {
        print_json(&json!({"file": file}))?;
    } else {
        print(&format!("{}\n", file.display()))?;
    }
    Ok(End::Finished)
}

fn file_of(name: &str) -> Result<PathBuf> {
    if name.is_empty() || !name.chars().all(|c| c.is_ascii_alphanumeric() || "-_".contains(c)) {
        return Err(Error::config(format!("'{name}' is no name: letters, digits, '-' and '_' make one")));
    }
    Ok(PathBuf::from(format!("{name}.yaml")))
}

/// Returns the text of the template, with the values of the options or the terminal.
fn filled(name: &str, global: &Global) -> Result<String> {
    let model = said(global.model.as_deref(), "model", "offline:any")?;
    if let Some((provider, _)) = model.split_once(':').filter(|(_, model)| !model.is_empty()) {
        known(provider)?;
    } else {
        return Err(Error::config(format!(
            "'{model}' is no model: say PROVIDER:NAME, such as anthropic:claude-opus-4-5"
        )));
    }
    let system = said(global.system.as_deref(), "instructions", "You are a helpful assistant.")?;
    Ok(template(name, &model, &system))
}

/// Returns the file and the text that hold all that the file `from` says. Its paths stay as they
/// are, so the new file is in the same directory.
fn joined(from: &Path, name: Option<&str>, global: &Global) -> Result<(PathBuf, String)> {
    let loaded = load::of_file(from, global)?.0;
    let name = name.unwrap_or(&loaded.definition().name);
    let file = from.with_file_name(file_of(name)?);
    let text =
        format!("# The agent of {}, with its sub-agents and what it extends.\n{}", from.display(), loaded.to_yaml()?);
    Ok((file, text))
}

/// A key may be set later; a provider that there is not never comes.
fn known(provider: &str) -> Result<()> {
    let providers = Providers::builtin();
    let names: Vec<_> = providers.iter().map(|known| known.name.as_str()).collect();
    match provider == "offline" || names.contains(&provider) {
        true => Ok(()),
        false => {
            Err(Error::config(format!("there is no provider '{provider}': there are offline, {}", names.join(", "))))
        }
    }
}

/// Returns the value of the command line, or else of the terminal, or else the default.
fn said(given: Option<&str>, what: &str, usual: &str) -> Result<String> {
    if let Some(given) = given {
        return Ok(given.to_owned());
    }
    if !io::stdin().is_terminal() || !io::stderr().is_terminal() {
        return Ok(usual.to_owned());
    }
    let failed = |e| cannot("the terminal", e);
    eprint!("{}", plain(&format!("{what} [{usual}]: ")));
    io::stderr().flush().map_err(failed)?;
    let mut text = String::new();
    io::stdin().lock().read_line(&mut text).map_err(failed)?;
    Ok(Some(text.trim()).filter(|text| !text.is_empty()).unwrap_or(usual).to_owned())
}
