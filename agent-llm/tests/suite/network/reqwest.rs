//! A reqwest client as the transport.

use agent_core::{ErrorKind, Model};
use agent_llm::model;

use super::{
    common::{ask, hello},
    server::answering,
};

#[tokio::test]
async fn a_client_of_reqwest_carries_calls_and_says_what_failed_without_the_address() {
    let whole = format!(
        "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{}",
        hello().len(),
        hello()
    );
    let cut = whole[..whole.len() - 9].to_owned();
    let url = answering(move |number| if number == 0 { whole.clone() } else { cut.clone() }.into_bytes()).await;
    let client = || reqwest::Client::builder().no_proxy().pool_max_idle_per_host(0).build().expect("a client");
    let of = |url: &str| model("openai:m").retries(0).base_url(url).transport(client()).build().expect("a model");
    assert_eq!(of(&url).call(ask()).await.expect("an answer").message.text(), "hello");
    let nowhere = of("http://127.0.0.1:9/secret-path").call(ask()).await.expect_err("nobody listens");
    assert_eq!((nowhere.kind(), nowhere.is_retryable()), (ErrorKind::Transport, true));
    assert!(!format!("{nowhere:?}").contains("secret-path"), "{nowhere:?}");
}
