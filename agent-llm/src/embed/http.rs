//! An [`Embedder`] built from an [`EmbedCodec`] and a transport.

use std::ops::Range;

use agent_core::{Error, ErrorKind, ModelInfo, Result, Retry, async_trait};
use agent_retrieval::embed::{EmbedRequest, EmbedResponse, Embedder, EmbedderInfo};
use futures::{StreamExt, TryStreamExt, stream};

use super::{EmbedCall, EmbedCodec, EmbedLimits, lengths::Lengths, split::split, vectors::misplaced};
use crate::{
    Auth, RetryLayer,
    model::{Caller, HttpSettings},
    models::Pricing,
};

/// Options of a builder, apart from the HTTP settings.
#[derive(Clone, Copy, Debug)]
pub(crate) struct EmbedOptions {
    pub(crate) dimensions: Option<usize>,
    /// Maximum number of texts per call; the provider's limit if unset.
    pub(crate) batch: Option<usize>,
    pub(crate) concurrency: usize,
    pub(crate) retries: u32,
    pub(crate) truncate: bool,
    /// True if the provider can truncate texts that are too long.
    pub(crate) cuts: bool,
}

impl Default for EmbedOptions {
    fn default() -> Self {
        Self { dimensions: None, batch: None, concurrency: 4, retries: 2, truncate: false, cuts: true }
    }
}

/// An embedder behind an [`EmbedCodec`]. Errors never show the key.
pub(crate) struct HttpEmbedder {
    codec: Box<dyn EmbedCodec>,
    info: EmbedderInfo,
    pricing: Pricing,
    caller: Caller,
    lengths: Lengths,
    limits: EmbedLimits,
    retries: RetryLayer,
    options: EmbedOptions,
}

impl HttpEmbedder {
    /// # Errors
    /// [`Config`](agent_core::ErrorKind::Config) for an invalid header, or if there is no
    /// transport.
    pub(crate) fn new(
        codec: Box<dyn EmbedCodec>,
        options: EmbedOptions,
        auth: Auth,
        settings: HttpSettings,
    ) -> Result<Self> {
        let (provider, model) = (codec.provider().to_owned(), codec.model().to_owned());
        let catalogue = settings.catalogue.clone();
        let known = catalogue.find_at(&provider, &model).or_else(|| catalogue.find(&model));
        let longest = known.and_then(|entry| entry.max_context);
        let dimensions = options.dimensions.or_else(|| known.and_then(|entry| usize::try_from(entry.dimensions?).ok()));
        let mut info = EmbedderInfo::new(&provider, &model);
        info.dimensions = dimensions;
        let mut limits = codec.limits();
        limits.texts = options.batch.map_or(limits.texts, |most| most.min(limits.texts)).max(1);
        let pricing = Pricing::new(catalogue, &ModelInfo::new(&model).with_provider(&provider));
        let lengths = Lengths::new(&model, longest);
        let (caller, retries) = (Caller::new(provider, auth, settings)?, RetryLayer::of_model(options.retries));
        Ok(Self { codec, info, pricing, caller, lengths, limits, retries, options })
    }

    /// Embeds the texts of one call, with retries.
    async fn call(&self, req: &EmbedRequest, run: Range<usize>) -> Result<EmbedResponse> {
        let texts = &req.texts[run.clone()];
        let call = EmbedCall {
            texts,
            purpose: req.purpose,
            dimensions: req.dimensions.or(self.options.dimensions),
            truncate: self.options.truncate,
        };
        let answered = self.retries.again(|| self.exchange(&call)).await;
        let mut response = answered.map_err(|e| self.lengths.explained(e, texts, run.start))?;
        response.usage = self.pricing.price(response.usage, None);
        Ok(response)
    }

    async fn exchange(&self, call: &EmbedCall<'_>) -> Result<EmbedResponse> {
        let read = |headers: &_, body: &[u8]| {
            let response = self.codec.decode(call, headers, body)?;
            self.check(call, &response)?;
            Ok(response)
        };
        self.caller.call(self.codec.encode(call)?, read).await
    }

    /// Checks that there is one vector per text, all of one length, of finite numbers.
    fn check(&self, call: &EmbedCall<'_>, response: &EmbedResponse) -> Result<()> {
        let (vectors, texts) = (&response.vectors, call.texts.len());
        if vectors.len() != texts {
            return Err(misplaced(self.codec.provider(), &format!("{} came for {texts} texts", vectors.len())));
        }
        let length = vectors.first().map_or(0, Vec::len);
        if length == 0 || vectors.iter().any(|vector| vector.len() != length) {
            return Err(misplaced(self.codec.provider(), "they are empty, or of different lengths"));
        }
        if vectors.iter().flatten().any(|number| !number.is_finite()) {
            return Err(misplaced(self.codec.provider(), "not all of their numbers are numbers"));
        }
        match call.dimensions {
            Some(asked) if asked != length => {
                let (provider, model) = (self.codec.provider(), self.codec.model());
                let why = format!("{asked} dimensions were asked for and {length} came: {model} has no choice of them");
                Err(Error::new(ErrorKind::Protocol, why)
                    .with_retry(Retry::Permanent)
                    .with_context("provider", provider))
            }
            _ => Ok(()),
        }
    }
}

#[async_trait]
impl Embedder for HttpEmbedder {
    fn info(&self) -> EmbedderInfo {
        self.info.clone()
    }

    async fn embed(&self, mut req: EmbedRequest) -> Result<EmbedResponse> {
        let tokens = self.lengths.prepare(&mut req.texts, self.options.truncate, self.options.cuts)?;
        let limits = self.lengths.with_margin(self.limits);
        let calls: Vec<_> = split(&tokens, limits).into_iter().map(|run| self.call(&req, run)).collect();
        let mut answers = stream::iter(calls).buffered(self.options.concurrency.max(1));
        let mut all = EmbedResponse::default();
        while let Some(answer) = answers.try_next().await? {
            all.vectors.extend(answer.vectors);
            all.usage += answer.usage;
        }
        Ok(all)
    }
}
