//! Tavily.

use agent_core::{Result, async_trait, tool::Secret};
use reqwest::{
    Method,
    header::{AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderValue},
};
use serde_json::json;

use super::{
    Hit, Query, SearchEngine,
    api::{Api, Fields, hits},
};
use crate::http::Call;

const URL: &str = "https://api.tavily.com/search";
/// Maximum of hits per request to Tavily.
const MOST: usize = 20;

/// Tavily, a search engine for agents; requires a key.
///
/// ```
/// use agent_tools::web::Tavily;
///
/// let engine = Tavily::new("the key")?;
/// assert!(Tavily::new("").is_err());
/// # Ok::<(), agent_core::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Tavily(Api);

impl Tavily {
    /// Creates the engine with this key.
    ///
    /// # Errors
    /// [`ErrorKind::Config`](agent_core::ErrorKind::Config) if the key is empty or invalid.
    pub fn new(key: impl Into<Secret>) -> Result<Self> {
        Ok(Self(Api::with_key("Tavily", URL, key.into())?))
    }

    /// Sets another base address of the service.
    ///
    /// # Errors
    /// [`ErrorKind::Config`](agent_core::ErrorKind::Config) if `url` is invalid.
    pub fn at(mut self, url: &str) -> Result<Self> {
        self.0.at(url)?;
        Ok(self)
    }
}

#[async_trait]
impl SearchEngine for Tavily {
    async fn search(&self, query: &Query) -> Result<Vec<Hit>> {
        let body = json!({"query": query.text, "max_results": query.count.clamp(1, MOST)});
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.insert(AUTHORIZATION, self.0.key_header("Bearer "));
        let body = Some(body.to_string().into_bytes());
        let answer = self.0.json(Call { method: Method::POST, url: self.0.url.clone(), headers, body }).await?;
        Ok(hits(&answer["results"], &Fields { snippet: "content", date: "published_date" }, query.count))
    }
}
