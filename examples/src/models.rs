//! Which model answers: a real server if one is named, else a stand-in that needs neither a key nor a network.

use std::{env, sync::Arc};

use agent::{
    Error, Model, Result,
    llm::{OpenAiChat, OpenAiChatBuilder, Profile, local, offline::OfflineModel},
    testing::{ScriptedModel, Turn},
};
use clap::{Args, Parser};

const OPENAI_KEY: &str = "OPENAI_API_KEY";

/// The model that is asked where none is named.
const USUAL: &str = "gpt-4.1-mini";

/// How to reach a model.
#[derive(Args, Debug)]
pub struct ModelArgs {
    /// An OpenAI-compatible server, up to and including `/v1`.
    #[arg(long, env = "OPENAI_BASE_URL")]
    base_url: Option<String>,
    /// Its key. Default: the variable of that server (`GROQ_API_KEY`, ..), or else `OPENAI_API_KEY`.
    #[arg(long)]
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
        if let Some(url) = said(&self.base_url) {
            let profile = Profile::of_url(url);
            let key = self.key(&[&profile.key_variable, OPENAI_KEY]);
            return self.model(profile, key, USUAL, url).map(Some);
        }
        if self.local {
            let found = local::find().await;
            let found =
                found.ok_or_else(|| Error::config("no model server answers on the usual ports of this machine"))?;
            let profile = Profile::of_url(&found.base_url);
            let key = self.key(&[&profile.key_variable]);
            let place = format!("{} ({})", found.base_url, found.name);
            return self.model(profile, key, &found.models[0], &place).map(Some);
        }
        let Some(key) = self.key(&[OPENAI_KEY]) else { return Ok(None) };
        self.model(Profile::openai(), Some(key), USUAL, "the OpenAI API").map(Some)
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

    fn model(
        &self,
        profile: Profile,
        key: Option<String>,
        usual: &str,
        place: &str,
    ) -> Result<(Arc<dyn Model>, String)> {
        let name = said(&self.model).unwrap_or(usual);
        let builder = OpenAiChat::builder(name).profile(profile);
        let model = key.into_iter().fold(builder, OpenAiChatBuilder::api_key).build()?;
        Ok((Arc::new(model), format!("Model: {name} at {place}.")))
    }

    /// The key that was given, or else the one in the first of these variables that is set.
    fn key(&self, variables: &[&str]) -> Option<String> {
        let set = |name: &&str| env::var(name).ok().filter(|key| !key.trim().is_empty());
        said(&self.api_key).map(str::to_owned).or_else(|| variables.iter().find_map(set))
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
