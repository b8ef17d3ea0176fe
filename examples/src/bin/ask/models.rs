//! Which model answers: a real server if there is one, else the embedded stand-in.

use std::sync::Arc;

use agent::{
    Error, Model, Result,
    llm::{OpenAiChat, local, offline::OfflineModel},
};
use clap::Args;

/// How to reach a model.
#[derive(Args, Debug)]
pub(crate) struct ModelArgs {
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

/// The model, and a line that says which it is.
pub(crate) async fn connect(args: &ModelArgs) -> Result<(Arc<dyn Model>, String)> {
    if let Some(base_url) = &args.base_url {
        let name = args.model.as_deref().unwrap_or("gpt-4.1-mini");
        return Ok((server(base_url, name, args.api_key.as_deref())?, format!("Model: {name} at {base_url}.")));
    }
    if let Some(key) = &args.api_key {
        let name = args.model.as_deref().unwrap_or("gpt-4.1-mini");
        let model = OpenAiChat::builder(name).api_key(key).build()?;
        return Ok((Arc::new(model), format!("Model: {name} at the OpenAI API.")));
    }
    if args.local {
        let found = local::find().await;
        let found = found.ok_or_else(|| Error::config("no model server answers on the usual ports of this machine"))?;
        let name = args.model.clone().unwrap_or_else(|| found.models[0].clone());
        let which = format!("Model: {name} at {} ({}).", found.base_url, found.name);
        return Ok((server(&found.base_url, &name, args.api_key.as_deref())?, which));
    }
    let which = "Model: the embedded extractive stand-in (no model is connected; set OPENAI_BASE_URL, or try --local).";
    Ok((Arc::new(OfflineModel), which.into()))
}

fn server(base_url: &str, name: &str, key: Option<&str>) -> Result<Arc<dyn Model>> {
    let builder = OpenAiChat::builder(name).base_url(base_url);
    let builder = match key {
        Some(key) => builder.api_key(key),
        None => builder,
    };
    Ok(Arc::new(builder.build()?))
}
