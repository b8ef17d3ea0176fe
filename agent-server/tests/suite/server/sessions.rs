//! Sessions: reading, searching, undo and export.

use agent::testing::Turn;
use http::Method;
use serde_json::json;

use super::support::{Serving, call, support};

#[tokio::test]
async fn sessions_are_listed_searched_titled_and_deleted() {
    let serving = Serving::of(support(["Bees hum.", "Hello."].map(Turn::text))).await;
    let client = serving.client();
    client.run(&json!({"input": "What hums?", "session": "a/garden"})).await;
    client.run(&json!({"input": "Hi.", "session": "b"})).await;
    let names = async |query: &str| {
        let sessions = client.get(&format!("/api/sessions{query}")).await.json()["sessions"].clone();
        let names =
            sessions.as_array().expect("a list").iter().map(|s| s["session"].as_str().expect("a name").to_owned());
        names.collect::<Vec<_>>()
    };
    assert_eq!(names("").await, ["b", "a/garden"], "the most recently active first");
    assert_eq!(names("?q=BEES").await, ["a/garden"]);
    assert_eq!(names("?q=nothing").await, Vec::<String>::new());
    let page = client.get("/api/sessions?limit=1").await.json();
    let after = page["after"].as_str().expect("more").replace('/', "%2F");
    assert_eq!(names(&format!("?limit=1&after={after}")).await, ["a/garden"]);
    assert_eq!(client.get("/api/sessions?after=x").await.status, 400);

    let labelled = json!({"ticket": "A-17", "colour": "red"});
    let answer = client.answer(client.json(Method::PUT, "/api/sessions/a%2Fgarden/metadata", &labelled)).await;
    assert_eq!(answer.status, 204, "{}", answer.text);
    assert_eq!(names("?metadata=ticket:A-17,colour:red").await, ["a/garden"]);
    assert_eq!(names("?metadata=ticket:A-18").await, Vec::<String>::new());
    assert_eq!(names("").await, ["a/garden", "b"], "the change of metadata is an activity");
    assert_eq!(client.get("/api/sessions/a%2Fgarden").await.json()["metadata"], labelled);
    assert_eq!(client.get("/api/sessions/a%2Fgarden").await.json()["state"], json!({}));
    for bad in [json!({"a:b": "c"}), json!({"": "c"}), json!({"a": 1}), json!({"a": "x".repeat(501)})] {
        let answer = client.answer(client.json(Method::PUT, "/api/sessions/b/metadata", &bad)).await;
        assert_eq!(answer.status, 400, "{bad}");
    }

    let titled =
        client.answer(client.json(Method::PUT, "/api/sessions/b/title", &json!({"title": "A greeting"}))).await;
    assert_eq!(titled.status, 204, "{}", titled.text);
    assert_eq!(names("?q=greeting").await, ["b"]);
    let one = client.get("/api/sessions/a%2Fgarden").await.json();
    assert_eq!((&one["session"], &one["status"]), (&json!("a/garden"), &json!("finished")));
    assert_eq!(one["messages"].as_array().map(Vec::len), Some(2), "{one}");
    assert_eq!(one["usage"]["calls"], 1);
    assert_eq!(client.delete("/api/sessions/a%2Fgarden").await.status, 204);
    assert_eq!(client.delete("/api/sessions/a%2Fgarden").await.status, 404);
    assert_eq!(names("").await, ["b"]);
}

#[tokio::test]
async fn entries_come_in_pages_and_a_session_as_a_file() {
    let serving = Serving::of(support([Turn::text("Hello <Ada>.")])).await;
    let client = serving.client();
    client.run(&json!({"input": "I am Ada.", "session": "garden"})).await;
    let (mut entries, mut after) = (Vec::new(), json!(0));
    while !after.is_null() {
        let page = client.get(&format!("/api/sessions/garden/entries?after={after}&limit=2")).await.json();
        entries.extend(page["entries"].as_array().expect("a list").clone());
        after = page["after"].clone();
    }
    let seqs: Vec<_> = entries.iter().filter_map(|entry| entry["seq"].as_u64()).collect();
    assert_eq!(seqs, (1..=seqs.len() as u64).collect::<Vec<_>>());
    assert_eq!(entries[0]["body"]["run_started"]["ids"]["session"], "garden", "{}", entries[0]);

    let file = async |format: &str| client.get(&format!("/api/sessions/garden/export?format={format}")).await;
    let lines = file("jsonl").await;
    assert_eq!(lines.text.lines().count(), seqs.len());
    assert!(!lines.text.contains("local/garden"), "the store's names do not go out");
    assert!(file("markdown").await.text.contains("**Assistant**\n\nHello <Ada>."));
    let page = file("html").await;
    assert!(
        page.text.contains("Hello &lt;Ada&gt;.")
            && page.headers["content-disposition"] == "attachment; filename=\"session.html\""
    );
    assert_eq!(file("pdf").await.status, 400);
}

#[tokio::test]
async fn pages_of_entries_are_bounded_in_bytes_and_exports_are_streamed() {
    let large = "x".repeat(3 << 20);
    let serving = Serving::of(support([&*large, &*large, "End."].map(Turn::text))).await;
    let client = serving.client();
    for input in ["One.", "Two.", "Three."] {
        client.run(&json!({"input": input, "session": "garden"})).await;
    }
    let (mut count, mut after, mut pages) = (0, json!(0), 0);
    while !after.is_null() {
        let page = client.get(&format!("/api/sessions/garden/entries?after={after}&limit=5000")).await;
        assert!(page.text.len() < 9 << 20, "{}", page.text.len());
        let page = page.json();
        count += page["entries"].as_array().expect("a list").len();
        (after, pages) = (page["after"].clone(), pages + 1);
    }
    assert!(pages > 1, "{pages}");
    let lines = client.get("/api/sessions/garden/export").await;
    assert!(!lines.headers.contains_key("content-length"), "its length is not known in advance");
    assert_eq!(lines.text.lines().count(), count);
}

#[tokio::test]
async fn entries_and_exports_hide_the_notes_of_the_server() {
    let serving = Serving::of(support([call("c1", "A-1"), Turn::text("Hello.")])).await;
    let client = serving.client();
    let run = json!({"input": "Refund A-1.", "session": "garden", "params": {"max_tokens": 9}});
    assert_eq!(client.run(&run).await["status"], "waiting");
    for path in ["", "/entries", "/export"] {
        let shown = client.get(&format!("/api/sessions/garden{path}")).await;
        assert_eq!(shown.status, 200);
        assert!(!shown.text.contains("agent-server/"), "{path}: {}", shown.text);
    }
}

#[tokio::test]
async fn a_session_is_undone_forked_with_an_edit_and_replayed() {
    let serving = Serving::of(support(["Paris.", "To the lake.", "Rome."].map(Turn::text))).await;
    let client = serving.client();
    let first = client.run(&json!({"input": "Where shall we go?", "session": "trip"})).await;
    let replayed = client.post("/api/sessions/trip/replay", &json!({})).await.json();
    assert_eq!(replayed, json!({"status": "finished", "answer": "Paris."}));

    let edit = json!({"step": 0, "into": "trip-2", "edit": {"text": "Where, without a train?"}});
    let forked = client.post("/api/sessions/trip/fork", &edit).await;
    assert_eq!(forked.status, 202, "{}", forked.text);
    let ended = client.rest(&forked.json()).await;
    assert_eq!((&ended["session"], &ended["answer"]), (&json!("trip-2"), &json!("To the lake.")));
    let again = client.post("/api/sessions/trip/fork", &edit).await;
    assert_eq!((again.status, again.code().as_str()), (400, "invalid_request"), "there is a session of this name");
    assert!(!again.text.contains("local/"), "{}", again.text);

    let second = client.run(&json!({"input": "And then?", "session": "trip"})).await;
    assert_eq!(second["answer"], "Rome.");
    let undone = client.post("/api/sessions/trip/undo", &json!({"run": second["run"]})).await.json();
    assert_eq!(undone["messages"].as_array().map(Vec::len), Some(2));
    assert_eq!(undone["newest"]["run"], first["run"]);
    assert_eq!(client.post("/api/sessions/trip/undo", &json!({"run": "none"})).await.status, 400);
}

#[tokio::test]
async fn a_session_whose_run_waits_refuses_a_new_message_with_the_questions() {
    let serving = Serving::of(support([call("c1", "A-1"), Turn::text("Hello.")])).await;
    let client = serving.client();
    client.run(&json!({"input": "Refund A-1.", "session": "garden"})).await;
    let refused = client.post("/api/agents/support/runs", &json!({"input": "Hi.", "session": "garden"})).await;
    assert_eq!((refused.status, refused.code().as_str()), (409, "busy"));
    assert_eq!(refused.json()["error"]["questions"][0]["id"], "c1/approval");
    let over = json!({"input": "Hi.", "session": "garden", "when_waiting": "supersede"});
    assert_eq!(client.run(&over).await["answer"], "Hello.");
}

#[tokio::test]
async fn sessions_beyond_the_retention_are_deleted_while_the_server_serves() {
    let journal = agent::journal::MemoryJournal::default();
    let old = agent::journal::EntryBody::MessageAppended { message: agent::Message::user("x") };
    let writer = journal.open_now("local/old", "support").expect("is free");
    writer.append(vec![agent::journal::Entry::new("r".into(), 1, old)]).await.expect("appends");
    drop(writer);
    let agent = support([Turn::text("Hello.")]).build().expect("an agent");
    let day = std::time::Duration::from_secs(86_400);
    let serving =
        Serving::new(agent_server::Server::builder().agent(agent).store(journal.clone()).retention(day)).await;
    serving.client().run(&json!({"input": "Hi.", "session": "new"})).await;
    while agent::journal::Journal::sessions(&journal).await.expect("lists") != ["local/new"] {
        tokio::task::yield_now().await;
    }
}
