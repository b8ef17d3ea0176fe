//! SearXNG.

use agent_core::{Error, Result, async_trait};

use super::{
    Hit, Query, SearchEngine,
    api::{Api, Fields, hits},
};
use crate::http::Call;

/// SearXNG server, a metasearch engine. It needs no key; its settings must enable the format
/// `json`.
///
/// ```
/// use agent_tools::web::Searxng;
///
/// let engine = Searxng::new("http://localhost:8888")?;
/// assert!(Searxng::new("localhost").is_err());
/// # Ok::<(), agent_core::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Searxng(Api);

impl Searxng {
    /// Creates the engine for the server at this address.
    ///
    /// # Errors
    /// [`ErrorKind::Config`](agent_core::ErrorKind::Config) if `url` is invalid.
    pub fn new(url: &str) -> Result<Self> {
        let mut api = Api::new("SearXNG", url)?;
        let path = format!("{}/search", api.url.path().trim_end_matches('/'));
        api.url.set_path(&path);
        Ok(Self(api))
    }
}

#[async_trait]
impl SearchEngine for Searxng {
    async fn search(&self, query: &Query) -> Result<Vec<Hit>> {
        let mut url = self.0.url.clone();
        url.query_pairs_mut().append_pair("q", &query.text).append_pair("format", "json");
        let answer = self.0.json(Call::get(url)).await.map_err(|e: Error| {
            e.map_message(|said| match said.contains("answered 403") {
                true => {
                    "this SearXNG does not answer programs (its settings must allow the format json): tell the user"
                        .to_owned()
                }
                false => said.to_owned(),
            })
        })?;
        Ok(hits(&answer["results"], &Fields { snippet: "content", date: "publishedDate" }, query.count))
    }
}
