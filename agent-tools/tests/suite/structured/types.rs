//! Types of all kinds.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Debug,
};

use agent_core::testing::Turn;
use agent_tools::{AnswerMode, Structured};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize, de::DeserializeOwned};

use super::{City, ask, bern, info, model};

#[derive(Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
enum Plain {
    Yes,
    No,
}

#[derive(Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
enum Shape {
    Circle { radius: f64 },
    Square { side: f64 },
}

#[derive(Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
enum Either {
    City(City),
    Name(String),
    Names(Vec<String>),
}

#[derive(Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
enum Outer {
    Unit,
    New(City),
    Pair(i32, String),
    Named { at: Option<u8> },
}

#[derive(Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
struct Tree {
    name: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    below: Vec<Self>,
}

#[derive(Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
struct Newtype(u64);

#[derive(Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
struct Pair(String, bool);

#[derive(Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
struct Flat {
    #[serde(flatten)]
    city: City,
    #[serde(rename = "seit", default)]
    since: Option<i32>,
    tags: BTreeSet<String>,
    by_name: BTreeMap<String, Vec<Plain>>,
}

/// Checks that the value survives a round trip, in every mode, and with every wrapping.
async fn comes_back<T: Serialize + DeserializeOwned + JsonSchema + Debug + PartialEq + 'static>(value: T) {
    let bare = serde_json::to_value(&value).expect("serialises");
    for mode in [AnswerMode::Native, AnswerMode::Tool, AnswerMode::Prompt] {
        let structured = Structured::<T>::new().expect("a valid schema").mode(mode);
        let wrapped = serde_json::json!({"value": bare});
        let bare_text = bare.to_string();
        for said in [wrapped.to_string(), bare_text.clone(), format!("Well:\n```json\n{wrapped:#}\n```\n")] {
            let model = model([Turn::text(said.clone())], info());
            match structured.clone().retries(0).call(&model, ask()).await {
                Ok(answer) => assert_eq!(answer.value, value, "{mode:?}: {said}"),
                // A value that is an object is not wrapped.
                Err(e) => assert!(bare.is_object() && said != bare_text, "{mode:?}: {said}: {e}"),
            }
        }
    }
}

#[tokio::test]
async fn objects() {
    comes_back(bern()).await;
    comes_back(Tree { name: "a".into(), below: vec![Tree { name: "b".into(), below: vec![] }] }).await;
    comes_back(BTreeMap::from([("a".to_owned(), 1), ("b".to_owned(), 2)])).await;
    let by_name = BTreeMap::from([("x".to_owned(), vec![Plain::Yes, Plain::No])]);
    comes_back(Flat { city: bern(), since: None, tags: ["t".to_owned()].into(), by_name }).await;
}

#[tokio::test]
async fn unions() {
    comes_back(Plain::No).await;
    comes_back(Shape::Circle { radius: 1.5 }).await;
    comes_back(Shape::Square { side: 2.0 }).await;
    comes_back(Either::City(bern())).await;
    comes_back(Either::Name("Bern".into())).await;
    comes_back(Either::Names(vec!["Bern".into()])).await;
    comes_back(Outer::Unit).await;
    comes_back(Outer::New(bern())).await;
    comes_back(Outer::Pair(-1, "a".into())).await;
    comes_back(Outer::Named { at: Some(3) }).await;
    comes_back(Some(bern())).await;
    comes_back(None::<City>).await;
    comes_back(Ok::<u8, String>(7)).await;
}

#[tokio::test]
async fn lists_numbers_and_words() {
    comes_back(vec![bern(), bern()]).await;
    comes_back(Vec::<City>::new()).await;
    comes_back((1u8, "two".to_owned(), 3.5)).await;
    comes_back(Newtype(u64::MAX)).await;
    comes_back(Pair("a".into(), true)).await;
    comes_back("a word".to_owned()).await;
    comes_back('c').await;
    comes_back(true).await;
    comes_back(-2.5f32).await;
    comes_back(serde_json::json!({"any": [1, null]})).await;
}
