//! Operation as a tool.

use std::{sync::Arc, time::Duration};

use agent_core::{Error, Result, Tool, ToolOptions, ToolOutput, ToolRequest, ToolSpec, async_trait};
use reqwest::{Method, StatusCode, header::CONTENT_TYPE};
use url::Url;

use super::{answer, operation::Operation};
use crate::http::{Call, Exchange, Http, Redirects, bounded};

/// State shared by the tools of one API.
#[derive(Debug)]
pub(super) struct Client {
    pub(super) http: Http,
    pub(super) time: Duration,
    pub(super) bytes: usize,
}

#[derive(Debug)]
pub(super) struct ApiTool {
    pub(super) client: Arc<Client>,
    pub(super) operation: Arc<Operation>,
}

#[async_trait]
impl Tool for ApiTool {
    fn spec(&self) -> ToolSpec {
        let Operation { name, description, schema, .. } = &*self.operation;
        ToolSpec::new(name.as_str(), description.as_str(), schema.clone())
    }

    fn options(&self) -> ToolOptions {
        ToolOptions::default().effect(self.operation.effect)
    }

    async fn call(&self, req: ToolRequest) -> Result<ToolOutput> {
        let call = self.operation.request(&req)?;
        let work = async {
            let (exchange, see) = self.send(call).await?;
            answer::output(&self.operation, exchange, see, self.client.bytes).await
        };
        bounded(&req.cx, self.client.time, work).await
    }
}

impl ApiTool {
    /// Sends the request. A redirect is followed with a request that only reads, and at the same origin: the request holds secrets.
    /// With the answer, the address at which the result of a request that was carried out is, if the answer says so.
    async fn send(&self, mut call: Call) -> Result<(Exchange, Option<Url>)> {
        let (mut redirects, mut see) = (Redirects::default(), None);
        loop {
            let (mut method, mut headers) = (call.method.clone(), call.headers.clone());
            let exchange = self.client.http.send(call).await?;
            if !matches!(method, Method::GET | Method::HEAD) {
                let is_done = match exchange.status {
                    StatusCode::SEE_OTHER => true,
                    // What all clients make of it after a POST.
                    StatusCode::MOVED_PERMANENTLY | StatusCode::FOUND => method == Method::POST,
                    _ => false,
                };
                see = redirects.next(&exchange)?.filter(|_| is_done);
                if see.as_ref().is_none_or(|url| url.origin() != exchange.url.origin()) {
                    return Ok((exchange, see));
                }
                method = Method::GET;
                headers.remove(CONTENT_TYPE);
                let url = see.clone().unwrap_or_else(|| exchange.url.clone());
                call = Call { method, url, headers, body: None };
                continue;
            }
            let Some(url) = redirects.next(&exchange)? else { return Ok((exchange, see)) };
            if url.origin() != exchange.url.origin() && see.is_some() {
                return Ok((exchange, Some(url)));
            }
            if url.origin() != exchange.url.origin() {
                let to = crate::http::host(&url);
                return Err(Error::tool(format!("the API redirects to another host, '{to}', which is not asked")));
            }
            call = Call { method, url, headers, body: None };
        }
    }
}
