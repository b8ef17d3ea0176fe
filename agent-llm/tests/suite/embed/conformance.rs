//! Properties of embedders of all families.

use std::time::Duration;

use agent_core::{Error, ErrorKind, Result, Retry};
use agent_llm::{EmbedderBuilder, embedder};
use agent_retrieval::embed::{EmbedRequest, EmbedResponse, Embedder};
use serde_json::{Value, json};

use super::{
    families::{FAMILIES, Family},
    provider::{Answer, Provider},
};

const KEY: &str = "sk-a-secret-of-ours";

/// Returns a vector that identifies the text.
fn vector(text: &str) -> Vec<f32> {
    vec![text.len() as f32, text.bytes().map(f32::from).sum()]
}

/// Answers in the family's format.
fn answers(family: &'static Family) -> impl Fn(usize, &Value) -> Answer + Send + Sync {
    move |_, json| {
        let vectors: Vec<_> = (family.texts)(json).iter().map(|text| vector(text)).collect();
        Answer::new(200, (family.answer)(&vectors))
    }
}

fn builder(family: &Family, provider: &Provider) -> EmbedderBuilder {
    let builder = embedder(family.name).api_key(KEY).transport(provider.clone());
    match family.name.split_once(':').expect("a provider").0 {
        "azure" => builder.option("resource", "acme"),
        "vertex" => builder.option("project", "acme").option("location", "europe-west4"),
        "bedrock" => builder.option("region", "eu-west-1"),
        _ => builder,
    }
}

async fn embed(builder: EmbedderBuilder, req: EmbedRequest) -> Result<EmbedResponse> {
    builder.build().expect("an embedder").embed(req).await
}

async fn refused(family: &Family, provider: &Provider) -> Error {
    embed(builder(family, provider), EmbedRequest::documents(["one", "two"])).await.expect_err(family.name)
}

#[tokio::test]
async fn a_request_is_written_as_its_provider_documents_it() {
    for family in FAMILIES {
        let provider = Provider::new(answers(family));
        let req = EmbedRequest::query("hi").dimensions(2);
        let response = embed(builder(family, &provider), req).await.expect(family.name);
        assert_eq!(response.vectors, [vector("hi")], "{}", family.name);
        assert_eq!((response.usage.calls, response.usage.input), (1, 7), "{}", family.name);
        assert_eq!((provider.uri(), &provider.bodies()[0]), (family.uri.to_owned(), &(family.asked)()));
        let (header, before) = family.key;
        assert_eq!(provider.header(header), Some(format!("{before}{KEY}")), "{}", family.name);
    }
}

#[tokio::test(start_paused = true)]
async fn every_text_has_its_own_vector_whichever_call_is_answered_first() {
    for family in FAMILIES {
        let texts: Vec<_> = (0..2 * family.most.min(150) + 3).map(|n| format!("text {n}")).collect();
        let plain = answers(family);
        // The earlier the call, the later its answer.
        let provider = Provider::new(move |before, json| {
            plain(before, json).after(Duration::from_millis(500_u64.saturating_sub(10 * before as u64)))
        });
        let most = family.most.min(150);
        let builder = builder(family, &provider).batch(most).concurrency(3);
        let response = embed(builder, EmbedRequest::documents(&texts)).await.expect(family.name);
        assert_eq!(response.vectors, texts.iter().map(|text| vector(text)).collect::<Vec<_>>(), "{}", family.name);
        assert_eq!(provider.calls(), texts.len().div_ceil(most), "{}", family.name);
        assert_eq!(response.usage.calls as usize, provider.calls());
        assert_eq!(provider.open(), (0, 3), "{}: as many at once as were allowed", family.name);
        assert!(provider.bodies().iter().all(|json| (family.texts)(json).len() <= most));
    }
}

#[tokio::test]
async fn no_call_holds_more_texts_than_its_provider_takes() {
    for family in FAMILIES {
        let texts: Vec<_> = (0..family.most + 1).map(|n| n.to_string()).collect();
        let provider = Provider::new(answers(family));
        embed(builder(family, &provider).batch(usize::MAX), EmbedRequest::documents(texts)).await.expect(family.name);
        let most = provider.bodies().iter().map(|json| (family.texts)(json).len()).max();
        assert_eq!((most, provider.calls()), (Some(family.most), 2), "{}", family.name);
    }
}

#[tokio::test(start_paused = true)]
async fn an_answer_with_other_vectors_than_were_asked_for_is_no_answer() {
    let wrong = [vec![], vec![vec![1.0]], vec![vec![1.0], vec![2.0], vec![3.0]], vec![vec![1.0, 2.0], vec![1.0]]];
    for family in FAMILIES.iter().filter(|family| family.most > 1) {
        for vectors in wrong.clone() {
            let provider = Provider::new(move |_, _| Answer::new(200, (family.answer)(&vectors)));
            let error = refused(family, &provider).await;
            assert_eq!(error.kind(), ErrorKind::Protocol, "{}: {error}", family.name);
            assert_eq!(provider.calls(), 3, "a broken answer may pass");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_no_answer_at_all_is_a_typed_error() {
    for family in FAMILIES {
        for body in ["", "{}", "[]", "null", "{\"embeddings\": 7}", "{\"data\": [{}]}", "\u{0}\u{1}", "7"] {
            let provider = Provider::new(move |_, _| Answer::new(200, body));
            let error = refused(family, &provider).await;
            assert_eq!(error.kind(), ErrorKind::Protocol, "{} of {body}: {error}", family.name);
        }
        let page = Provider::new(|_, _| Answer::new(200, "<html>"));
        assert!(refused(family, &page).await.message().contains("web page"), "{}", family.name);
        let said = Provider::new(|_, _| Answer::new(200, json!({"error": {"message": "no", "code": 503}})));
        assert_eq!(refused(family, &said).await.kind(), ErrorKind::Overloaded, "{}", family.name);
    }
}

#[tokio::test(start_paused = true)]
async fn refusals_have_kinds_and_only_what_may_pass_is_tried_again() {
    let cases = [
        (400, ErrorKind::InvalidRequest, 1),
        (401, ErrorKind::Authentication, 1),
        (429, ErrorKind::RateLimited, 3),
        (500, ErrorKind::Provider, 3),
        (503, ErrorKind::Overloaded, 3),
    ];
    for family in FAMILIES.iter().filter(|family| family.most > 1) {
        for (status, kind, calls) in cases {
            let provider = Provider::new(move |_, _| Answer::new(status, json!({"message": "why"})));
            let error = refused(family, &provider).await;
            assert_eq!((error.kind(), provider.calls()), (kind, calls), "{} {status}: {error}", family.name);
            let whose = family.name.split_once(':').map(|(provider, _)| provider);
            assert_eq!(error.context("provider"), whose, "{error}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn each_call_is_tried_again_for_itself() {
    for family in FAMILIES {
        let plain = answers(family);
        let provider = Provider::new(move |before, json| match before {
            1 => Answer::new(503, json!({"message": "busy"})).header("retry-after", "1"),
            _ => plain(before, json),
        });
        let builder = builder(family, &provider).batch(1).concurrency(1);
        let response = embed(builder, EmbedRequest::documents(["a", "b", "c"])).await.expect(family.name);
        assert_eq!((response.vectors.len(), provider.calls()), (3, 4), "{}: nothing is asked twice", family.name);
    }
}

#[tokio::test]
async fn a_length_that_the_model_does_not_make_is_an_error_and_not_another_vector() {
    for family in FAMILIES {
        let provider = Provider::new(answers(family));
        let error = embed(builder(family, &provider).dimensions(3), EmbedRequest::query("hi")).await;
        let error = error.expect_err(family.name);
        assert_eq!((error.kind(), error.retry()), (ErrorKind::Protocol, Retry::Permanent), "{}", family.name);
        assert!(error.message().starts_with("3 dimensions were asked for and 2 came"), "{error}");
    }
}

#[tokio::test]
async fn texts_of_nothing_are_refused_before_anything_is_sent() {
    for family in FAMILIES {
        let provider = Provider::new(answers(family));
        let error = embed(builder(family, &provider), EmbedRequest::documents(["a", "", "b"])).await;
        let error = error.expect_err(family.name);
        assert!(error.kind() == ErrorKind::InvalidRequest && error.message().starts_with("text 1 is empty"), "{error}");
        let none = embed(builder(family, &provider), EmbedRequest::documents(Vec::<String>::new())).await;
        assert_eq!((none.expect("nothing").vectors.len(), provider.calls()), (0, 0));
    }
}

#[tokio::test(start_paused = true)]
async fn who_no_longer_waits_ends_all_calls() {
    for family in FAMILIES {
        let plain = answers(family);
        let provider = Provider::new(move |before, json| plain(before, json).after(Duration::from_secs(60)));
        let embedder = builder(family, &provider).batch(1).concurrency(3).build().expect("an embedder");
        let asked = embedder.embed(EmbedRequest::documents(["a", "b", "c", "d", "e"]));
        assert!(tokio::time::timeout(Duration::from_secs(1), asked).await.is_err());
        assert_eq!((provider.open(), provider.calls()), ((0, 3), 3), "{}", family.name);
    }
}

#[tokio::test(start_paused = true)]
async fn a_silent_or_endless_answer_is_ended() {
    for family in FAMILIES {
        let plain = answers(family);
        let silent = Provider::new(move |before, json| plain(before, json).after(Duration::from_secs(600)));
        let timed = builder(family, &silent).retries(0).first_timeout(Duration::from_secs(5));
        let error = embed(timed, EmbedRequest::query("hi")).await.expect_err(family.name);
        assert_eq!(error.kind(), ErrorKind::Timeout, "{}", family.name);
        let long = Provider::new(answers(family));
        let error = embed(builder(family, &long).max_answer(10), EmbedRequest::query("hi")).await;
        assert!(error.expect_err(family.name).message().contains("max_answer"), "{}", family.name);
    }
}

#[tokio::test]
async fn no_secret_is_shown_though_the_provider_repeats_it() {
    for family in FAMILIES {
        for (status, body) in [(400, format!("the key {KEY} is bad")), (200, format!("{{\"x\": \"{KEY}\"}}"))] {
            let provider = Provider::new(move |_, _| Answer::new(status, &body).header("x-request-id", KEY));
            let builder = builder(family, &provider).retries(0);
            assert!(!format!("{builder:?}").contains(KEY), "{}", family.name);
            let embedder = builder.build().expect("an embedder");
            let error = embedder.embed(EmbedRequest::query("hi")).await.expect_err(family.name);
            assert!(!format!("{error} {error:?} {embedder:?}").contains(KEY), "{}: {error:?}", family.name);
        }
    }
}
