//! Operation as a tool.

use std::{sync::Arc, time::Duration};

use agent_core::{Error, Result, Tool, ToolOptions, ToolOutput, ToolRequest, ToolSpec, async_trait};
use reqwest::Method;

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
            let exchange = self.send(call).await?;
            answer::output(&self.operation, exchange, self.client.bytes).await
        };
        bounded(&req.cx, self.client.time, work).await
    }
}

impl ApiTool {
    /// Sends the request. A redirect is followed if it only looks, and to nobody else: the request holds secrets.
    async fn send(&self, mut call: Call) -> Result<Exchange> {
        let mut redirects = Redirects::default();
        loop {
            let (method, headers) = (call.method.clone(), call.headers.clone());
            let exchange = self.client.http.send(call).await?;
            if !matches!(method, Method::GET | Method::HEAD) {
                return Ok(exchange);
            }
            let Some(url) = redirects.next(&exchange)? else { return Ok(exchange) };
            if url.origin() != exchange.url.origin() {
                let to = crate::http::host(&url);
                return Err(Error::tool(format!("the API redirects to another host, '{to}', which is not asked")));
            }
            call = Call { method, url, headers, body: None };
        }
    }
}
