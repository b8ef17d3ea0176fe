//! A model without a provider, which looks for words.

use agent::{Model, Usage, core::ModelInfo, llm::Catalogue, model::PriceTable, prelude::*};

use crate::classifier::{self, Sentiment, Topic, Voice};

const TOPICS: [(&str, Topic); 6] = [
    ("parcel", Topic::Delivery),
    ("broken", Topic::Quality),
    ("teapot", Topic::Quality),
    ("expensive", Topic::Price),
    ("price", Topic::Price),
    ("support", Topic::Support),
];
const NEGATIVE: [&str; 5] = ["late", "broken", "expensive", "never", "bad"];
const POSITIVE: [&str; 4] = ["great", "love", "friendly", "well"];

/// Classifies a text by its words.
#[derive(Clone, Debug)]
pub(crate) struct Rules {
    prices: Catalogue,
}

impl Rules {
    pub(crate) fn new() -> Result<Self> {
        Ok(Self { prices: classifier::prices()? })
    }

    fn classify(text: &str) -> Voice {
        let lower = text.to_lowercase();
        let has_any = |words: &[&str]| words.iter().any(|word| lower.contains(word));
        let sentiment = match (has_any(&NEGATIVE), has_any(&POSITIVE)) {
            (true, false) => Sentiment::Negative,
            (false, true) => Sentiment::Positive,
            _ => Sentiment::Neutral,
        };
        let topic = TOPICS.iter().find(|(word, _)| lower.contains(word)).map_or(Topic::Other, |(_, topic)| *topic);
        // The last sentence.
        let point = text.trim_end_matches('.').rsplit(". ").next().unwrap_or_default().to_owned();
        Voice { topic, sentiment, point }
    }
}

#[async_trait]
impl Model for Rules {
    fn info(&self) -> ModelInfo {
        ModelInfo::new("rules").with_json_schema()
    }

    async fn call(&self, req: ModelRequest) -> Result<ModelResponse> {
        let text = req.messages.last().map(Message::text).unwrap_or_default();
        let answer = serde_json::to_string(&Self::classify(&text)).expect("a voice is JSON");
        let usage = Usage::new(200 + text.len() as u64 / 4, answer.len() as u64 / 4);
        let message = req.sink.collect(answer.as_str().into())?;
        let cost = self.prices.cost("rules", &usage);
        Ok(ModelResponse::new(message).with_usage(usage.with_cost(cost)))
    }
}
