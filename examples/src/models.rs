//! Model selection: a real server if one is named, otherwise a stand-in that needs neither a key
//! nor a network.

use std::{env, sync::Arc};

use agent::{
    Error, Model, Result,
    llm::{Providers, local, model, offline::OfflineModel},
    testing::{ScriptedModel, Turn},
};
use clap::{Args, Parser};

/// Default model.
const USUAL: &str = "gpt-4.1-mini";

/// Model selection.
#[derive(Args, Debug)]
pub struct ModelArgs {
    /// Model name at the OpenAI-compatible server in `OPENAI_BASE_URL`, or with a provider:
    /// `anthropic:claude-opus-4-5`.
    #[arg(long, env = "OPENAI_MODEL")]
    model: Option<String>,
    /// Look for a server on this machine (Ollama, llama.cpp, vLLM, LM Studio on their usual ports).
    #[arg(long)]
    local: bool,
}

impl ModelArgs {
    /// Returns the model of a real server as `provider:model`; `None` if none was named.
    ///
    /// # Errors
    /// If a local server was requested and none responds.
    pub async fn name(&self) -> Result<Option<String>> {
        let name = self.model.as_deref().filter(|name| !name.trim().is_empty());
        if self.local {
            let found = local::find().await;
            let found =
                found.ok_or_else(|| Error::config("no model server answers on the usual ports of this machine"))?;
            let provider = found.name.to_lowercase().replace(' ', "");
            return Ok(Some(format!("{provider}:{}", name.unwrap_or(&found.models[0]))));
        }
        let is_whole = |name: &&str| {
            name.split_once(':').is_some_and(|(provider, _)| Providers::builtin().get(provider).is_some())
        };
        if let Some(whole) = name.filter(is_whole) {
            return Ok(Some(whole.to_owned()));
        }
        let is_set = |name| env::var(name).is_ok_and(|value| !value.trim().is_empty());
        let is_there = is_set("OPENAI_API_KEY") || is_set("OPENAI_BASE_URL");
        Ok(is_there.then(|| format!("openai:{}", name.unwrap_or(USUAL))))
    }

    /// Returns the model of a real server, with a line that describes it; `None` if none was named.
    async fn connect(&self) -> Result<Option<(Arc<dyn Model>, String)>> {
        let Some(name) = self.name().await? else { return Ok(None) };
        Ok(Some((Arc::new(model(&name).build()?), format!("Model: {name}."))))
    }

    /// Returns the model of a real server, otherwise a stand-in that answers from the results of
    /// its tools. Prints the choice to standard error.
    ///
    /// # Errors
    /// As [`name`](Self::name), and if the model's name is invalid.
    pub async fn or_offline(&self) -> Result<Arc<dyn Model>> {
        let offline =
            "Model: the embedded extractive stand-in (no model is connected; set OPENAI_BASE_URL, or try --local).";
        let (model, which) = self.connect().await?.unwrap_or_else(|| (Arc::new(OfflineModel), offline.into()));
        eprintln!("{which}");
        Ok(model)
    }

    /// Returns the model of a real server, otherwise one with these scripted turns. Prints the
    /// choice to standard error.
    ///
    /// # Errors
    /// As [`name`](Self::name), and if the model's name is invalid.
    pub async fn or_script(&self, turns: impl IntoIterator<Item = Turn>) -> Result<Arc<dyn Model>> {
        let (model, which): (Arc<dyn Model>, _) = match self.connect().await? {
            Some(found) => found,
            None => {
                let which = "Model: a script (no model is connected; set OPENAI_API_KEY, or try --local).";
                (Arc::new(ScriptedModel::new(turns)), which.into())
            }
        };
        eprintln!("{which}");
        Ok(model)
    }
}

/// Like [`ModelArgs::or_script`], for programs that have no other options.
///
/// # Errors
/// As for [`ModelArgs::or_script`].
pub async fn or_script(turns: impl IntoIterator<Item = Turn>) -> Result<Arc<dyn Model>> {
    #[derive(Parser)]
    struct Options {
        #[command(flatten)]
        model: ModelArgs,
    }
    Options::parse().model.or_script(turns).await
}
