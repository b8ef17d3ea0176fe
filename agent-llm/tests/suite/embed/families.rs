//! Families of embedders, each with an independent description of its requests and answers.

use serde_json::{Value, json};

/// Embedding API of one provider.
pub(crate) struct Family {
    /// Name of the embedder.
    pub(crate) name: &'static str,
    /// URL of the requests.
    pub(crate) uri: &'static str,
    /// Header with the key, and the prefix of its value.
    pub(crate) key: (&'static str, &'static str),
    /// Maximum number of texts per call.
    pub(crate) most: usize,
    /// The whole request for the query "hi" with 2 dimensions.
    pub(crate) asked: fn() -> Value,
    /// Extracts the texts of a request.
    pub(crate) texts: fn(&Value) -> Vec<String>,
    /// Builds the answer with these vectors and a usage of 7 tokens.
    pub(crate) answer: fn(&[Vec<f32>]) -> Value,
}

fn list(texts: &Value) -> Vec<String> {
    texts.as_array().expect("a list").iter().map(|text| text.as_str().expect("a text").to_owned()).collect()
}

fn openai(vectors: &[Vec<f32>]) -> Value {
    let item = |(index, embedding)| json!({"object": "embedding", "index": index, "embedding": embedding});
    // The order of the list is not guaranteed.
    let data: Vec<_> = vectors.iter().enumerate().map(item).rev().collect();
    json!({"object": "list", "data": data, "model": "m", "usage": {"prompt_tokens": 7, "total_tokens": 7}})
}

fn cohere(vectors: &[Vec<f32>]) -> Value {
    json!({"id": "1", "embeddings": {"float": vectors}, "response_type": "embeddings_by_type",
        "meta": {"billed_units": {"input_tokens": 7}}})
}

pub(crate) const FAMILIES: &[Family] = &[
    Family {
        name: "openai:text-embedding-3-small",
        uri: "https://api.openai.com/v1/embeddings",
        key: ("authorization", "Bearer "),
        most: 2_048,
        asked: || json!({"model": "text-embedding-3-small", "input": ["hi"], "dimensions": 2, "encoding_format": "base64"}),
        texts: |json| list(&json["input"]),
        answer: openai,
    },
    Family {
        name: "azure:our-deployment",
        uri: "https://acme.openai.azure.com/openai/v1/embeddings",
        key: ("api-key", ""),
        most: 2_048,
        asked: || json!({"model": "our-deployment", "input": ["hi"], "dimensions": 2, "encoding_format": "base64"}),
        texts: |json| list(&json["input"]),
        answer: openai,
    },
    Family {
        name: "mistral:codestral-embed",
        uri: "https://api.mistral.ai/v1/embeddings",
        key: ("authorization", "Bearer "),
        most: 256,
        asked: || json!({"model": "codestral-embed", "input": ["hi"], "output_dimension": 2}),
        texts: |json| list(&json["input"]),
        answer: openai,
    },
    Family {
        name: "voyage:voyage-3.5",
        uri: "https://api.voyageai.com/v1/embeddings",
        key: ("authorization", "Bearer "),
        most: 1_000,
        asked: || {
            json!({"model": "voyage-3.5", "input": ["hi"], "output_dimension": 2, "input_type": "query",
                "truncation": false, "encoding_format": "base64"})
        },
        texts: |json| list(&json["input"]),
        answer: |vectors| {
            let mut answer = openai(vectors);
            answer["usage"] = json!({"total_tokens": 7});
            answer
        },
    },
    Family {
        name: "jina:jina-embeddings-v4",
        uri: "https://api.jina.ai/v1/embeddings",
        key: ("authorization", "Bearer "),
        most: 512,
        asked: || {
            json!({"model": "jina-embeddings-v4", "input": ["hi"], "dimensions": 2, "task": "retrieval.query",
                "truncate": false, "embedding_type": "base64"})
        },
        texts: |json| list(&json["input"]),
        answer: openai,
    },
    Family {
        name: "gemini:gemini-embedding-001",
        uri: "https://generativelanguage.googleapis.com/v1beta/models/gemini-embedding-001:batchEmbedContents",
        key: ("x-goog-api-key", ""),
        most: 100,
        asked: || {
            json!({"requests": [{"model": "models/gemini-embedding-001", "content": {"parts": [{"text": "hi"}]},
                "taskType": "RETRIEVAL_QUERY", "outputDimensionality": 2}]})
        },
        texts: |json| {
            let requests = json["requests"].as_array().expect("a list").iter();
            requests.map(|one| one["content"]["parts"][0]["text"].as_str().expect("a text").to_owned()).collect()
        },
        answer: |vectors| {
            let all: Vec<_> = vectors.iter().map(|values| json!({"values": values})).collect();
            json!({"embeddings": all, "usageMetadata": {"promptTokenCount": 7}})
        },
    },
    Family {
        name: "vertex:text-embedding-005",
        uri: "https://europe-west4-aiplatform.googleapis.com/v1/projects/acme/locations/europe-west4/publishers/google/\
              models/text-embedding-005:predict",
        key: ("authorization", "Bearer "),
        most: 250,
        asked: || {
            json!({"instances": [{"content": "hi", "task_type": "RETRIEVAL_QUERY"}],
                "parameters": {"autoTruncate": false, "outputDimensionality": 2}})
        },
        texts: |json| {
            let instances = json["instances"].as_array().expect("a list").iter();
            instances.map(|one| one["content"].as_str().expect("a text").to_owned()).collect()
        },
        answer: |vectors| {
            let tokens = |at| if at == 0 { 7 } else { 0 };
            let one = |(at, values)| json!({"embeddings": {"values": values, "statistics": {"token_count": tokens(at), "truncated": false}}});
            json!({"predictions": vectors.iter().enumerate().map(one).collect::<Vec<_>>()})
        },
    },
    Family {
        name: "bedrock:amazon.titan-embed-text-v2:0",
        uri: "https://bedrock-runtime.eu-west-1.amazonaws.com/model/amazon.titan-embed-text-v2%3A0/invoke",
        key: ("authorization", "Bearer "),
        most: 1,
        asked: || json!({"inputText": "hi", "dimensions": 2}),
        texts: |json| vec![json["inputText"].as_str().expect("a text").to_owned()],
        answer: |vectors| json!({"embedding": vectors.first().unwrap_or(&Vec::new()), "inputTextTokenCount": 7}),
    },
    Family {
        name: "bedrock:cohere.embed-v4:0",
        uri: "https://bedrock-runtime.eu-west-1.amazonaws.com/model/cohere.embed-v4%3A0/invoke",
        key: ("authorization", "Bearer "),
        most: 96,
        asked: || {
            json!({"texts": ["hi"], "input_type": "search_query", "embedding_types": ["float"], "truncate": "NONE",
                "output_dimension": 2})
        },
        texts: |json| list(&json["texts"]),
        answer: cohere,
    },
    Family {
        name: "cohere:embed-v4.0",
        uri: "https://api.cohere.com/v2/embed",
        key: ("authorization", "Bearer "),
        most: 96,
        asked: || {
            json!({"model": "embed-v4.0", "texts": ["hi"], "input_type": "search_query", "embedding_types": ["float"],
                "truncate": "NONE", "output_dimension": 2})
        },
        texts: |json| list(&json["texts"]),
        answer: cohere,
    },
    Family {
        name: "ollama:nomic-embed-text",
        uri: "http://localhost:11434/api/embed",
        key: ("authorization", "Bearer "),
        most: 256,
        asked: || json!({"model": "nomic-embed-text", "input": ["hi"], "truncate": false, "dimensions": 2}),
        texts: |json| list(&json["input"]),
        answer: |vectors| json!({"model": "m", "embeddings": vectors, "prompt_eval_count": 7}),
    },
];
