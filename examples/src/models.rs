//! Which model answers: a real server if one is named, else a stand-in that needs neither a key nor a network.

use std::sync::Arc;

use agent::{
    Error, Model, Result,
    llm::{OpenAiChat, local, offline::OfflineModel},
    testing::{ScriptedModel, Turn},
};
use clap::{Args, Parser};

/// How to reach a model.
#[derive(Args, Debug)]
pub struct ModelArgs {
    /// An OpenAI-compatible server, up to and including `/v1`.
    #[arg(long, env = "OPENAI_BASE_URL")]
    base_url: Option<String>,
    /// Its key.
    #[arg(long, env = "OPENAI_API_KEY", hide_env_values = true)]
    api_key: Option<String>,
    /// The model's name there.
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
        if let Some(base_url) = said(&self.base_url) {
            let name = said(&self.model).unwrap_or("gpt-4.1-mini");
            return Ok(Some((self.server(base_url, name)?, format!("Model: {name} at {base_url}."))));
        }
        if let Some(key) = said(&self.api_key) {
            let name = said(&self.model).unwrap_or("gpt-4.1-mini");
            let model = OpenAiChat::builder(name).api_key(key).build()?;
            return Ok(Some((Arc::new(model), format!("Model: {name} at the OpenAI API."))));
        }
        if !self.local {
            return Ok(None);
        }
        let found = local::find().await;
        let found = found.ok_or_else(|| Error::config("no model server answers on the usual ports of this machine"))?;
        let name = said(&self.model).unwrap_or(&found.models[0]);
        let which = format!("Model: {name} at {} ({}).", found.base_url, found.name);
        Ok(Some((self.server(&found.base_url, name)?, which)))
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

    fn server(&self, base_url: &str, name: &str) -> Result<Arc<dyn Model>> {
        let builder = OpenAiChat::builder(name).base_url(base_url);
        let builder = match said(&self.api_key) {
            Some(key) => builder.api_key(key),
            None => builder,
        };
        Ok(Arc::new(builder.build()?))
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
