//! A [`Reranker`] over HTTP.

use agent_core::{Error, ErrorKind, ModelInfo, Result, Retry, async_trait};
use agent_retrieval::rank::{RankRequest, RankResponse, Reranker, RerankerInfo};

use super::{RankProfile, wire::Codec};
use crate::{
    Auth, RetryLayer,
    model::{Caller, HttpSettings},
    models::Pricing,
};

/// A reranker over HTTP. Errors never show the key.
pub(crate) struct HttpReranker {
    codec: Codec,
    pricing: Pricing,
    caller: Caller,
    retries: RetryLayer,
}

impl HttpReranker {
    /// # Errors
    /// [`Config`](agent_core::ErrorKind::Config) for an invalid URL or header, or if there is no
    /// transport.
    pub(crate) fn new(
        provider: String,
        model: String,
        profile: RankProfile,
        retries: u32,
        auth: Auth,
        settings: HttpSettings,
    ) -> Result<Self> {
        let info = ModelInfo::new(&model).with_provider(&provider);
        let pricing = Pricing::new(settings.catalogue.clone(), &info);
        let codec = Codec::new(provider.clone(), model, profile)?;
        let caller = Caller::new(provider, auth, settings)?;
        Ok(Self { codec, pricing, caller, retries: RetryLayer::of_model(retries) })
    }
}

#[async_trait]
impl Reranker for HttpReranker {
    fn info(&self) -> RerankerInfo {
        RerankerInfo::new(&self.codec.provider, &self.codec.model)
    }

    async fn rank(&self, req: RankRequest) -> Result<RankResponse> {
        if req.documents.is_empty() || req.top == Some(0) {
            return Ok(RankResponse::default());
        }
        let empty = |why: String| Error::new(ErrorKind::InvalidRequest, why).with_retry(Retry::Permanent);
        if req.query.trim().is_empty() {
            return Err(empty("the query is empty: there is nothing to rank documents by".to_owned()));
        }
        if let Some(at) = req.documents.iter().position(|text| text.trim().is_empty()) {
            return Err(empty(format!("document {at} is empty: there is nothing to rank")));
        }
        let read = |_: &_, body: &[u8]| self.codec.decode(&req, body);
        let mut response = self.retries.again(|| self.caller.call(self.codec.encode(&req), read)).await?;
        response.usage = self.pricing.price(response.usage, None);
        Ok(response)
    }
}
