//! Uploaded files, and references to them.

use std::sync::Arc;

use agent::{
    Agent, Message, Model, ModelRequest, ModelResponse, Part, Result, Worker, async_trait, journal::MemoryJournal,
    message::MediaSource, model::ModelInfo, store::MemoryQueue,
};
use agent_server::{ContentStore, DiskFiles, Files, Key, Keys, MemoryFiles, Server, ServerBuilder};
use bytes::Bytes;
use http::{Method, header};
use http_body_util::Full;
use serde_json::{Value, json};

use super::support::{Answer, Client, Serving};

const PNG: &[u8] = b"\x89PNG\r\n\x1a\nnot much of a picture";

/// Model that describes its input.
struct Mirror;

#[async_trait]
impl Model for Mirror {
    fn info(&self) -> ModelInfo {
        ModelInfo::new("mirror")
    }

    async fn call(&self, req: ModelRequest) -> Result<ModelResponse> {
        let Some(Message::User(user)) = req.messages.last() else { panic!("a user spoke last") };
        let seen = user.parts().iter().map(|part| match part {
            Part::Text(text) => text.text.clone(),
            Part::Image(media) | Part::Document(media) => match &media.source {
                MediaSource::Base64(bytes) => format!("{}:{}", media.mime.as_deref().unwrap_or("?"), bytes.len()),
                other => format!("{other:?}"),
            },
            _ => "?".into(),
        });
        Ok(ModelResponse::new(seen.collect::<Vec<_>>().join(" + ").as_str()))
    }
}

fn served(files: Files) -> ServerBuilder {
    Server::builder().agent(Agent::builder("support", Mirror).build().expect("an agent")).files(files)
}

async fn upload(client: &Client, query: &str, kind: &str, bytes: &'static [u8]) -> Answer {
    let request = client.request(Method::POST, &format!("/api/files{query}")).header(header::CONTENT_TYPE, kind);
    client.answer(request.body(Full::new(Bytes::from_static(bytes))).expect("a request")).await
}

#[tokio::test]
async fn a_file_is_named_in_the_journal_and_whole_before_the_model() {
    let dir = tempfile::tempdir().expect("a directory");
    let serving = Serving::new(served(Files::new(DiskFiles::open(dir.path()).expect("a folder")))).await;
    let client = serving.client();
    let file = upload(&client, "?name=..%2Fpot.png", "text/html", PNG).await;
    assert_eq!(file.status, 201, "{}", file.text);
    let file = file.json();
    assert_eq!(
        (&file["mime"], &file["name"], &file["bytes"]),
        (&json!("image/png"), &json!("pot.png"), &json!(PNG.len()))
    );
    let again = upload(&client, "?name=pot.png", "", PNG).await.json();
    assert_eq!(again["id"], file["id"], "it is kept once");

    let form = b"--x\r\nContent-Disposition: form-data; name=\"f\"; filename=\"a.md\"\r\nContent-Type: text/markdown\r\n\r\n# Pots\r\n--x--\r\n";
    let text = upload(&client, "", "multipart/form-data; boundary=x", form).await.json();
    assert_eq!((&text["mime"], &text["name"]), (&json!("text/markdown"), &json!("a.md")));

    let input = json!([{"text": "Look:"}, {"file": file["id"]}, {"file": text["id"]}]);
    let run = client.run(&json!({"input": input, "session": "garden"})).await;
    let shown = PNG.len().div_ceil(3) * 4;
    assert_eq!(run["answer"], format!("Look: + image/png:{shown} + <file name=\"a.md\">\n# Pots\n</file>"));
    let kept = client.get("/api/sessions/garden/entries").await.text;
    assert!(kept.contains(file["id"].as_str().expect("an id")) && !kept.contains("iVBOR"), "{kept}");

    let id = file["id"].as_str().expect("an id");
    let read = client.get(&format!("/api/files/{id}")).await;
    assert_eq!(
        (read.status, &read.headers["content-type"], &read.headers["content-disposition"]),
        (200, &header::HeaderValue::from_static("image/png"), &header::HeaderValue::from_static("attachment"))
    );
    assert_eq!(client.delete(&format!("/api/files/{id}")).await.status, 204);
    assert_eq!(client.get(&format!("/api/files/{id}")).await.status, 404);
    // A conversation survives the deletion of its files.
    let answer = client.post("/api/agents/support/runs", &json!({"input": [{"file": id}]})).await;
    assert_eq!((answer.status, answer.code().as_str()), (404, "not_found"));
}

#[tokio::test]
async fn a_model_is_told_of_a_file_that_is_gone() {
    let serving = Serving::new(served(Files::new(MemoryFiles::default()))).await;
    let client = serving.client();
    let file = upload(&client, "?name=pot.png", "", PNG).await.json();
    let body = json!({"input": [{"file": file["id"]}], "session": "garden"});
    client.run(&body).await;
    client.delete(&format!("/api/files/{}", file["id"].as_str().expect("an id"))).await;
    let fork = client.post("/api/sessions/garden/fork", &json!({"step": 0, "into": "later"})).await;
    assert!(fork.status < 300, "{}", fork.text);
    let run = client.rest(&fork.json()).await;
    assert!(run["answer"].as_str().is_some_and(|answer| answer.contains("no longer available")), "{run}");
}

#[tokio::test]
async fn files_of_one_tenant_are_not_there_for_another() {
    let (ada, of_ada) = Key::generate("ada", "teapots").expect("a key");
    let (bob, of_bob) = Key::generate("bob", "kettles").expect("a key");
    let keys = Keys::new([of_ada, of_bob]).expect("keys");
    let serving = Serving::new(served(Files::new(MemoryFiles::default())).keys(keys)).await;
    let (ada, bob) = (serving.client().with_key(&ada), serving.client().with_key(&bob));
    let id = upload(&ada, "", "", PNG).await.json()["id"].as_str().expect("an id").to_owned();
    assert_eq!(bob.get(&format!("/api/files/{id}")).await.status, 404);
    assert_eq!(bob.delete(&format!("/api/files/{id}")).await.status, 404);
    assert_eq!(bob.post("/api/agents/support/runs", &json!({"input": [{"file": id}]})).await.status, 404);
    assert_eq!(ada.get("/api/files/..%2F..%2Fkeys.json").await.status, 404);
}

#[tokio::test]
async fn what_is_too_much_is_refused_and_a_server_without_a_store_takes_none() {
    let files = Files::new(MemoryFiles::default()).max_bytes(30).max_files(2).max_room(50);
    let serving = Serving::new(served(files)).await;
    let client = serving.client();
    let texts: [&'static [u8]; 4] = [b"one", b"two", b"three", &[b'x'; 31]];
    let status = async |bytes: &'static [u8]| upload(&client, "", "text/plain", bytes).await.status;
    assert_eq!((status(texts[0]).await, status(texts[1]).await, status(texts[1]).await), (201, 201, 201));
    assert_eq!((status(texts[2]).await, status(texts[3]).await, status(b"").await), (413, 413, 400));
    let huge: &'static [u8] = Box::leak(vec![b'x'; 1 << 20].into_boxed_slice());
    assert_eq!(status(huge).await, 413);
    let none =
        Serving::new(Server::builder().agent(Agent::builder("support", Mirror).build().expect("an agent"))).await;
    assert_eq!(upload(&none.client(), "", "", PNG).await.status, 404);
    assert_eq!(none.client().post("/api/agents/support/runs", &json!({"input": [{"file": "ab"}]})).await.status, 404);
}

#[tokio::test]
async fn stores_agree_and_let_go_of_what_is_old() {
    let dir = tempfile::tempdir().expect("a directory");
    let stores: [Box<dyn ContentStore>; 2] =
        [Box::new(MemoryFiles::default()), Box::new(DiskFiles::open(dir.path()).expect("a folder"))];
    for store in stores {
        let info = |id: char, created: u64| -> Value {
            json!({"id": id.to_string().repeat(64), "mime": "text/plain", "bytes": 3, "created": created})
        };
        for (id, created) in [('a', 1_000), ('b', 2_000)] {
            let info = serde_json::from_value(info(id, created)).expect("an info");
            store.put("t", &info, Bytes::from_static(b"abc")).await.expect("kept");
        }
        let (a, b) = ("a".repeat(64), "b".repeat(64));
        assert_eq!(store.usage("t").await.map(|usage| (usage.files, usage.bytes)).expect("usage"), (2, 6));
        assert!(store.info("../t", &a).await.expect("an answer").is_none());
        assert_eq!(store.sweep(1_500).await.expect("swept"), 1);
        assert!(store.read("t", &a).await.expect("an answer").is_none());
        assert_eq!(store.read("t", &b).await.expect("an answer").as_deref(), Some(&b"abc"[..]));
        store.delete("t", &b).await.expect("deleted");
        store.delete("t", &b).await.expect("deleted before");
        assert_eq!(store.usage("t").await.expect("usage").files, 0);
    }
}

#[tokio::test]
async fn a_folder_is_swept_whatever_else_is_in_it() {
    let dir = tempfile::tempdir().expect("a directory");
    let store = DiskFiles::open(dir.path()).expect("a folder");
    let info = json!({"id": "a".repeat(64), "mime": "text/plain", "bytes": 3, "created": 1_000});
    for tenant in ["broken", "whole"] {
        let info = serde_json::from_value(info.clone()).expect("an info");
        store.put(tenant, &info, Bytes::from_static(b"abc")).await.expect("kept");
    }
    std::fs::create_dir(dir.path().join("lost+found")).expect("a folder");
    std::fs::write(dir.path().join("stray.json"), "{").expect("written");
    let id = "b".repeat(64);
    let folders = std::fs::read_dir(dir.path()).expect("a folder").flatten().map(|entry| entry.path());
    let folders: Vec<_> = folders.filter(|path| path.is_dir() && !path.ends_with("lost+found")).collect();
    std::fs::write(folders[0].join(format!("{id}.json")), "{").expect("written");
    std::fs::write(folders[0].join(&id), "content").expect("written");
    let left = folders[0].join(format!("{id}.left"));
    std::fs::write(&left, "of a crash").expect("written");
    let long_ago = std::time::SystemTime::now() - std::time::Duration::from_secs(7200);
    for path in [&left, &folders[0].join(&id)] {
        std::fs::File::options().append(true).open(path).and_then(|file| file.set_modified(long_ago)).expect("set");
    }
    let mut used = Vec::new();
    for tenant in ["broken", "whole"] {
        used.push(store.usage(tenant).await.map(|usage| usage.bytes).expect("the damaged file is skipped"));
    }
    used.sort_unstable();
    assert_eq!(used, [3, 20], "what has no readable metadata takes room too");
    assert_eq!(store.sweep(2_000).await.expect("swept"), 2);
    assert!(!left.exists() && folders[0].join(&id).exists(), "the content of a damaged file can be rescued");
}

#[tokio::test]
async fn concurrent_uploads_stay_within_the_quota() {
    let dir = tempfile::tempdir().expect("a directory");
    let (one, two) = (DiskFiles::open(dir.path()).expect("a folder"), DiskFiles::open(dir.path()).expect("a folder"));
    let limited = |store| served(Files::new(store).max_files(3));
    let servers = [Serving::new(limited(one)).await, Serving::new(limited(two)).await];
    let texts: Vec<&'static [u8]> = (0..20_u8).map(|n| &*Box::leak(vec![b'a', n + 65].into_boxed_slice())).collect();
    let clients: Vec<_> = servers.iter().map(Serving::client).collect();
    let uploads = texts.iter().enumerate().map(|(n, text)| upload(&clients[n % 2], "", "text/plain", text));
    let taken = futures::future::join_all(uploads).await.iter().filter(|answer| answer.status == 201).count();
    assert_eq!(taken, 3);
}

#[tokio::test]
async fn a_file_reaches_the_model_of_a_worker() {
    let (queue, journal) = (Arc::new(MemoryQueue::default()), MemoryJournal::default());
    let files = Files::new(MemoryFiles::default());
    let of_worker = Agent::builder("support", Mirror).store(journal.clone());
    let without = of_worker.clone().build().expect("an agent");
    let agent = files.attach(of_worker).build().expect("an agent");
    assert_eq!(agent.fingerprint(), without.fingerprint(), "runs resume whether there are uploads or not");
    let worker = Worker::builder(queue.clone()).agent(agent).build().expect("a worker");
    let working = tokio::spawn(async move { worker.run_until(std::future::pending()).await });
    let serving = Serving::new(served(files).store(journal).queue(queue)).await;
    let client = serving.client();
    let file = upload(&client, "?name=pot.png", "image/png", PNG).await.json();
    let run = client.run(&json!({"input": [{"text": "Look:"}, {"file": file["id"]}]})).await;
    assert_eq!(run["answer"], format!("Look: + image/png:{}", PNG.len().div_ceil(3) * 4), "{run}");
    working.abort();
}
