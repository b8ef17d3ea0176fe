//! Which model answers: a real server if one is named, else a stand-in that needs neither a key nor a network.

use std::{env, sync::Arc};

use agent::{
    Error, Model, Result,
    llm::{Providers, local, model, offline::OfflineModel},
    testing::{ScriptedModel, Turn},
};
use clap::{Args, Parser};

/// The model that is asked where none is named.
const USUAL: &str = "gpt-4.1-mini";

/// Which model answers.
#[derive(Args, Debug)]
pub struct ModelArgs {
    /// The model's name at the OpenAI-compatible server in `OPENAI_BASE_URL`, or with its provider: `anthropic:claude-opus-4-5`.
    #[arg(long, env = "OPENAI_MODEL")]
    model: Option<String>,
    /// Look for a server on this machine (Ollama, llama.cpp, vLLM, LM Studio on their usual ports).
    #[arg(long)]
    local: bool,
}

impl ModelArgs {
    /// The model of a real server as `provider:model`; none if nobody named one.
    ///
    /// # Errors
    /// If a server is to be found on this machine and none answers.
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

    /// The model of a real server, with a line that says which it is; none if nobody named one.
    async fn connect(&self) -> Result<Option<(Arc<dyn Model>, String)>> {
        let Some(name) = self.name().await? else { return Ok(None) };
        Ok(Some((Arc::new(model(&name).build()?), format!("Model: {name}."))))
    }

    /// The model of a real server, or else a stand-in that answers from what its tools find. Which it is, is said on standard
    /// error.
    ///
    /// # Errors
    /// As [`name`](Self::name), and if the model is named in a way that cannot be.
    pub async fn or_offline(&self) -> Result<Arc<dyn Model>> {
        let offline =
            "Model: the embedded extractive stand-in (no model is connected; set OPENAI_BASE_URL, or try --local).";
        let (model, which) = self.connect().await?.unwrap_or_else(|| (Arc::new(OfflineModel), offline.into()));
        eprintln!("{which}");
        Ok(model)
    }

    /// The model of a real server, or else one that says these turns. Which it is, is said on standard error.
    ///
    /// # Errors
    /// As [`name`](Self::name), and if the model is named in a way that cannot be.
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

/// As [`ModelArgs::or_script`], for programs that have no other options.
///
/// # Errors
/// As there.
pub async fn or_script(turns: impl IntoIterator<Item = Turn>) -> Result<Arc<dyn Model>> {
    #[derive(Parser)]
    struct Options {
        #[command(flatten)]
        model: ModelArgs,
    }
    Options::parse().model.or_script(turns).await
}
