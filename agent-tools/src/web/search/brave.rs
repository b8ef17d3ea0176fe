//! Brave Search.

use agent_core::{Result, async_trait, tool::Secret};

use super::{
    Hit, Query, SearchEngine,
    api::{Api, Fields, hits},
};
use crate::http::Call;

const URL: &str = "https://api.search.brave.com/res/v1/web/search";
/// Maximum of hits per request to Brave.
const MOST: usize = 20;

/// Brave Search; requires a key.
///
/// ```
/// use agent_tools::web::Brave;
///
/// let engine = Brave::new("the key")?;
/// assert!(!format!("{engine:?}").contains("the key"));
/// # Ok::<(), agent_core::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Brave(Api);

impl Brave {
    /// Creates the engine with this key.
    ///
    /// # Errors
    /// [`ErrorKind::Config`](agent_core::ErrorKind::Config) if the key is empty or invalid.
    pub fn new(key: impl Into<Secret>) -> Result<Self> {
        Ok(Self(Api::with_key("Brave", URL, key.into())?))
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
impl SearchEngine for Brave {
    async fn search(&self, query: &Query) -> Result<Vec<Hit>> {
        let mut url = self.0.url.clone();
        let count = query.count.clamp(1, MOST).to_string();
        url.query_pairs_mut().append_pair("q", &query.text).append_pair("count", &count);
        let mut call = Call::get(url);
        call.headers.insert("x-subscription-token", self.0.key_header(""));
        let answer = self.0.json(call).await?;
        Ok(hits(&answer["web"]["results"], &Fields { snippet: "description", date: "page_age" }, query.count))
    }
}
