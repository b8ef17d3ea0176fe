//! DuckDuckGo, via its HTML page without scripts.

use std::{
    rc::Rc,
    time::{Duration, Instant},
};

use agent_core::{Result, async_trait};
use markup5ever_rcdom::Node;
use reqwest::{
    Method, StatusCode,
    header::{CONTENT_TYPE, HeaderMap, HeaderValue},
};
use url::{Url, form_urlencoded};

use super::{Hit, Query, SearchEngine, api::Api};
use crate::{
    documents::parser_pool::ParserPool,
    http::Call,
    web::dom::{attribute, has_class, parse, tag, text, walk},
};

const URL: &str = "https://html.duckduckgo.com/html/";
/// Timeout for parsing a result page.
const READING: Duration = Duration::from_secs(10);

/// DuckDuckGo's page for browsers without scripts. It needs no key. The page is meant for people:
/// frequent requests get a CAPTCHA, which is an error here.
///
/// ```
/// use agent_tools::web::DuckDuckGo;
///
/// let engine = DuckDuckGo::new()?;
/// # Ok::<(), agent_core::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct DuckDuckGo {
    api: Api,
    apart: ParserPool,
}

impl DuckDuckGo {
    /// Creates the engine.
    ///
    /// # Errors
    /// [`ErrorKind::Config`](agent_core::ErrorKind::Config) if TLS cannot be set up.
    pub fn new() -> Result<Self> {
        Ok(Self { api: Api::new("DuckDuckGo", URL)?, apart: ParserPool::new(READING) })
    }

    /// Sets another address of the page.
    ///
    /// # Errors
    /// [`ErrorKind::Config`](agent_core::ErrorKind::Config) if `url` is invalid.
    pub fn at(mut self, url: &str) -> Result<Self> {
        self.api.at(url)?;
        Ok(self)
    }
}

#[async_trait]
impl SearchEngine for DuckDuckGo {
    async fn search(&self, query: &Query) -> Result<Vec<Hit>> {
        let body = form_urlencoded::Serializer::new(String::new()).append_pair("q", &query.text).finish();
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/x-www-form-urlencoded"));
        let (url, body) = (self.api.url.clone(), Some(body.into_bytes()));
        let (status, page) = self.api.bytes(Call { method: Method::POST, url, headers, body }).await?;
        let (base, most) = (self.api.url.clone(), query.count);
        let read = self.apart.run("the page of results", move |end| results(&page, &base, most, end)).await?;
        match (read, status) {
            (Some(hits), StatusCode::OK) => Ok(hits),
            _ => Err(self.api.failed("wants to know whether a person asks, since it is asked often")),
        }
    }
}

/// Parses the hits of a page; `None` if it is not a result page.
fn results(page: &[u8], base: &Url, most: usize, end: Instant) -> Result<Option<Vec<Hit>>> {
    let page = parse(&String::from_utf8_lossy(page), end)?;
    let hits: Vec<_> =
        walk(&page).filter(|node| has_class(node, "result")).filter_map(|node| hit(&node, base)).take(most).collect();
    let is_results =
        || walk(&page).any(|node| has_class(&node, "no-results") || attribute(&node, "id").as_deref() == Some("links"));
    Ok(if hits.is_empty() && !is_results() { None } else { Some(hits) })
}

fn hit(result: &Rc<Node>, base: &Url) -> Option<Hit> {
    if has_class(result, "result--ad") {
        return None;
    }
    let of_class = |class: &str| walk(result).find(|node| has_class(node, class));
    let title = of_class("result__a").filter(|node| tag(node) == "a")?;
    let url = target(&base.join(&attribute(&title, "href")?).ok()?);
    let snippet = of_class("result__snippet").map(|node| text(&node)).unwrap_or_default();
    Some(Hit::new(text(&title), url).snippet(snippet))
}

/// Returns the target of a link: links lead through a redirect page of the engine, whose query
/// holds the target.
fn target(link: &Url) -> String {
    let leads = link.path() == "/l/";
    let found = link.query_pairs().find(|(name, _)| leads && name == "uddg").map(|(_, url)| url.into_owned());
    found.unwrap_or_else(|| link.to_string())
}
