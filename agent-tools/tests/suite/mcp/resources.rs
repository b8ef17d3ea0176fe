//! Resources and prompts.

use agent_core::{Effect, ErrorKind, Message};
use futures::StreamExt;
use serde_json::json;

use super::{double::Double, support::*};

#[tokio::test]
async fn resources_are_listed_and_read_and_their_changes_are_told() {
    let double = Double::new();
    let client = double.client();
    let resources = client.resources().await.expect("listed");
    assert_eq!((resources.len(), &*resources[0].uri), (1, "zoo://lion"));
    assert_eq!(client.resource_templates().await.expect("listed")[0].uri, "zoo://{animal}");
    let parts = client.read_resource("zoo://lion").await.expect("read");
    assert_eq!(parts[0].as_text(), Some("[resource zoo://lion]\nIt roars."));
    let error = client.read_resource("zoo://unicorn").await.expect_err("none");
    assert_eq!((error.kind(), error.message()), (ErrorKind::Tool, "there is no zoo://unicorn"));

    let mut updates = client.resource_updates();
    client.subscribe("zoo://lion").await.expect("subscribed");
    assert_eq!(updates.next().await.as_deref(), Some("zoo://lion"));
    double.kill();
    tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    client.resources().await.expect("connects anew");
    assert_eq!(updates.next().await.as_deref(), Some("zoo://lion"), "subscribed again");
    client.unsubscribe("zoo://lion").await.expect("unsubscribed");
    assert_eq!((double.count("subscribed"), double.count("unsubscribed")), (2, 1));
}

#[tokio::test]
async fn a_resource_that_is_too_large_is_an_error() {
    let client = Double::new().builder().max_result(50_000).build().expect("builds");
    let error = client.read_resource("zoo://big").await.expect_err("too large");
    assert!(error.message().contains("the limit is 50000"), "{error}");
}

#[tokio::test]
async fn a_model_reads_resources_with_two_tools_if_that_is_wanted() {
    let double = Double::new();
    assert!(!names(&double.client()).await.contains(&"double_read_resource".to_owned()));
    let client = double.builder().resource_tools().build().expect("builds");
    assert_eq!(tool(&client, "double_read_resource").await.options().effect, Effect::Pure);
    let listed = call(&client, "double_list_resources", json!({})).await.expect("listed").to_text();
    assert_eq!(listed, "zoo://lion: lion, text/plain, A cat.\nzoo://{animal}: animal\n");
    let read = call(&client, "double_read_resource", json!({"uri": "zoo://lion"})).await.expect("read");
    assert!(read.to_text().contains("It roars."));
}

#[tokio::test]
async fn a_prompt_is_made_of_its_arguments() {
    let client = Double::new().client();
    let prompts = client.prompts().await.expect("listed");
    assert!(prompts[0].name == "story" && prompts[0].arguments[0].required);
    let messages = client.prompt("story", [("animal", "lion")]).await.expect("made");
    assert!(matches!(&messages[..], [Message::User(_), Message::Assistant(_)]));
    assert_eq!(messages[0].text(), "Tell of a lion.");
}
