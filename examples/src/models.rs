//! Which model answers: a real server if one is named, else a stand-in that needs neither a key nor a network.

use std::{env, sync::Arc};

use agent::{
    Error, Model, Result,
    llm::{ModelBuilder, Providers, local, model, offline::OfflineModel},
    testing::{ScriptedModel, Turn},
};
use clap::{Args, Parser};

/// The model that is asked where none is named.
const USUAL: &str = "gpt-4.1-mini";

/// How to reach a model.
#[derive(Args, Debug)]
pub struct ModelArgs {
    /// An OpenAI-compatible server, up to and including `/v1`. Default: that in `OPENAI_BASE_URL`.
    #[arg(long)]
    base_url: Option<String>,
    /// Its key. Default: the variable of that server (`GROQ_API_KEY`, ..).
    #[arg(long)]
    api_key: Option<String>,
    /// The model's name there, or with its provider: `anthropic:claude-opus-4-5`.
    #[arg(long, env = "OPENAI_MODEL")]
    model: Option<String>,
    /// Look for a server on this machine (Ollama, llama.cpp, vLLM on their usual ports).
    #[arg(long)]
    local: bool,
}

impl ModelArgs {
    /// The model of a real server, with a line that says which it is; none if no server is named.
    ///
    /// # Errors
    /// If a server is to be found on this machine and none answers, or it is named in a way that cannot be.
    pub async fn connect(&self) -> Result<Option<(Arc<dyn Model>, String)>> {
        if self.local {
            let found = local::find().await;
            let found =
                found.ok_or_else(|| Error::config("no model server answers on the usual ports of this machine"))?;
            let name = said(&self.model).unwrap_or(&found.models[0]);
            let builder = model(format!("openai:{name}")).base_url(&found.base_url);
            return self.build(builder, &format!("{} ({})", found.base_url, found.name)).map(Some);
        }
        let name = said(&self.model).unwrap_or(USUAL);
        let is_whole = name.split_once(':').is_some_and(|(provider, _)| Providers::builtin().get(provider).is_some());
        let is_set = |name| env::var(name).is_ok_and(|value| !value.trim().is_empty());
        let is_given = said(&self.base_url).or(said(&self.api_key)).is_some();
        if !is_whole && !is_given && !is_set("OPENAI_API_KEY") && !is_set("OPENAI_BASE_URL") {
            return Ok(None);
        }
        let builder = model(if is_whole { name.to_owned() } else { format!("openai:{name}") });
        let builder = said(&self.base_url).into_iter().fold(builder, ModelBuilder::base_url);
        let place = said(&self.base_url).unwrap_or("its provider").to_owned();
        self.build(builder, &place).map(Some)
    }

    /// The model of a real server, or else a stand-in that answers from what its tools find. Which it is, is said on standard
    /// error.
    ///
    /// # Errors
    /// As [`connect`](Self::connect).
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
    /// As [`connect`](Self::connect).
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

    fn build(&self, builder: ModelBuilder, place: &str) -> Result<(Arc<dyn Model>, String)> {
        let model = said(&self.api_key).into_iter().fold(builder, ModelBuilder::api_key).build()?;
        let info = model.info();
        Ok((Arc::new(model), format!("Model: {} at {place}.", info.name)))
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

/// What is given; a variable of the environment that is set to nothing gives nothing.
fn said(value: &Option<String>) -> Option<&str> {
    value.as_deref().filter(|value| !value.trim().is_empty())
}
