//! Long outputs, removed messages, and their retrieval.

use std::sync::Arc;

use agent_core::{
    EventKind, GlobalStorage, History, Media, Message, Middleware, Part, Result, RunCx, RunIds, ToolMessage,
    ToolOutput, async_trait, engine::NO_RESULT,
};
use agent_middleware::{
    ContextCompaction, LongToolOutput, PatchToolCalls,
    archive::{Archive, Archived, DirectoryArchive, Hit, MemoryArchive, SessionArchive},
    compaction::{ClearToolResults, Keep, OffloadToolResults, SlidingWindow, Trigger},
};
use serde_json::{Value, json};
use tower::ServiceExt;

use super::{
    common::{alone, begin, call, restarted, root, run_of, tool_stack},
    world::{World, long, texts, turn},
};

/// Returns the answer of the tool `name` of the middleware.
async fn ask(world: &World, name: &str, args: Value) -> ToolOutput {
    let tool = world.list[0].tools().into_iter().find(|tool| tool.spec().name == name).expect("offered");
    tool.call(call(world.run.cx(), "c", name, args)).await.expect("answers")
}

/// Returns the handle in a text.
fn handle(text: &str) -> String {
    text.split("handle \"").nth(1).and_then(|rest| rest.split('"').next()).expect("a handle").to_owned()
}

#[tokio::test]
async fn a_fact_that_was_removed_is_found_and_read() {
    let fact = "The launch code is 0000.";
    let turns =
        [turn("a", "look", fact)].into_iter().chain((0..12).map(|n| turn(&n.to_string(), "look", &"x".repeat(400))));
    let history = || {
        let all = [Message::user("go")].into_iter().chain(turns.clone().flatten());
        History::from_messages(all).expect("paired")
    };
    let place = tempfile::tempdir().expect("a directory");
    let archives: [Arc<dyn Archive>; 3] = [
        Arc::new(MemoryArchive::new()),
        Arc::new(SessionArchive::new()),
        Arc::new(DirectoryArchive::new(place.path())),
    ];
    for archive in archives {
        let compaction = ContextCompaction::builder().strategy(SlidingWindow::new(1)).archive(archive.clone()).build();
        let world = World::new(compaction.expect("sound"), history());
        world.step(u64::MAX).await.expect("answers");
        assert!(!texts(&world.kept()).iter().any(|text| text.contains(fact)));
        let hint = texts(&world.kept()).iter().filter(|text| text.contains("search_history")).count();
        assert_eq!(hint, 1, "the note says where it is");
        let found = ask(&world, "search_history", json!({"query": "launch CODE"})).await.to_text();
        assert!(found.contains(fact), "{found}");
        let whole = ask(&world, "read_archived", json!({"handle": handle(&found)})).await.to_text();
        assert!(whole.ends_with(fact), "{whole}");
        assert_eq!(ask(&world, "search_history", json!({"query": "unheard"})).await.to_text(), "Nothing was found.");
        assert!(ask(&world, "read_archived", json!({"handle": "?"})).await.is_error());
        // Another agent of the same session has its own archive.
        let other = agent_core::testing::detached_run(History::default());
        assert!(archive.search(other.cx(), "launch", 5).await.expect("searched").is_empty());
    }
}

#[tokio::test]
async fn what_the_session_archived_is_there_after_a_restart() {
    let run = root(|_| {});
    SessionArchive.put(run.cx(), vec![Archived::new("look", "the needle")]).await.expect("kept");
    let later = restarted(&run, |_| {});
    assert_eq!(SessionArchive.search(later.cx(), "needle", 5).await.expect("searched").len(), 1);
}

/// Returns the bytes of a picture that differs from others in its last byte.
fn picture(last: u8) -> Part {
    let data = ["AAAA", "AAAB", "AAAC"][usize::from(last)];
    Part::Image(Media::base64(data, "image/png"))
}

/// Returns three turns that differ only in the picture in their results.
fn pictures() -> History {
    let result = |at: u8| ToolMessage::new(at.to_string(), "look", vec![picture(at)].into(), false);
    let turns = (0..3).map(|at| (turn(&at.to_string(), "look", "")[0].clone(), Message::Tool(result(at))));
    let turns = turns.flat_map(|(call, result)| [call, result]);
    History::from_messages([Message::user("Look.")].into_iter().chain(turns)).expect("paired")
}

// NexAU 49
#[tokio::test]
async fn pictures_that_were_removed_are_kept_as_files_and_shown_again() {
    let place = tempfile::tempdir().expect("a directory");
    let directory = DirectoryArchive::new(place.path());
    let archives: [Arc<dyn Archive>; 3] =
        [Arc::new(MemoryArchive::new()), Arc::new(SessionArchive::new()), Arc::new(directory.clone())];
    for archive in archives {
        let clear = ClearToolResults::new().keep(Keep::Iterations(1));
        let compaction =
            ContextCompaction::builder().trigger(Trigger::Messages(4)).strategy(clear).archive(archive).build();
        let world = World::new(compaction.expect("sound"), pictures());
        world.step(u64::MAX).await.expect("answers");
        for (at, message) in [(0, 2), (1, 4)] {
            let handle = handle(&texts(&world.kept())[message]);
            let shown = ask(&world, "read_archived", json!({"handle": handle})).await;
            assert_eq!(shown.content()[1..], [picture(at)], "not another one that looks alike in words");
        }
    }
    let run = root(|_| {});
    let files = std::fs::read_dir(directory.directory(run.cx())).expect("there").map(|file| file.expect("read").path());
    let files: Vec<_> = files.filter(|file| file.extension().is_some_and(|kind| kind == "png")).collect();
    let mut bytes: Vec<_> = files.iter().map(|file| std::fs::read(file).expect("read")).collect();
    bytes.sort();
    assert_eq!(bytes, [[0, 0, 0], [0, 0, 1]], "what was removed, and as bytes");
}

// NexAU 49
#[tokio::test]
async fn files_of_an_archive_say_what_each_round_removed_and_outlive_the_process() {
    let place = tempfile::tempdir().expect("a directory");
    let (run, text) = (root(|_| {}), |text: &str| Archived::new("user", text));
    let archive = || DirectoryArchive::new(place.path());
    archive().put(run.cx(), vec![text("one"), text("two")]).await.expect("kept");
    archive().put(run.cx(), vec![text("two")]).await.expect("it is there already");
    // its file is not a text of the archive
    let table = Part::Document(Media::base64("AAAA", "application/json"));
    let third = text("three").with_media([picture(0), Part::text("no picture"), table.clone()]);
    archive().put(run.cx(), vec![third]).await.expect("kept");
    let rounds = std::fs::read_to_string(archive().directory(run.cx()).join("rounds.jsonl")).expect("written");
    let rounds: Vec<Value> = rounds.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    let said: Vec<_> =
        rounds.iter().map(|round| (&round["round"], round["handles"].as_array().map_or(0, Vec::len))).collect();
    assert_eq!(said, [(&json!(1), 2), (&json!(2), 1)]);
    let third = archive().search(run.cx(), "three", 5).await.expect("searched").remove(0).handle;
    let third = archive().get(run.cx(), &third).await.expect("read").expect("there");
    assert_eq!((third.text.as_str(), third.media), ("three", vec![picture(0), table]));
    let out = archive().get(run.cx(), "../../etc/passwd").await.expect("no handle");
    assert_eq!(out, None);
}

#[tokio::test]
async fn a_full_archive_forgets_the_oldest() {
    let (run, archive) = (root(|_| {}), MemoryArchive::new().agent_limit(3_000));
    for text in ["old text", "new text"] {
        archive.put(run.cx(), vec![long_text(text)]).await.expect("kept");
    }
    let found = archive.search(run.cx(), "text", 5).await.expect("searched");
    assert_eq!(found.iter().map(|hit| &hit.excerpt[..8]).collect::<Vec<_>>(), ["new text"]);
}

/// Returns a text of more than 2,000 bytes with this beginning.
fn long_text(begins: &str) -> Archived {
    Archived::new("user", format!("{begins}{}", " ".repeat(2_000)))
}

#[tokio::test]
async fn a_process_of_many_sessions_keeps_those_that_were_used_last() {
    let archive = MemoryArchive::new().total_limit(10_000);
    let session = |n: u32| RunIds::root("main", format!("s{n}"));
    let runs: Vec<_> = (0..100).map(|n| run_of(session(n), GlobalStorage::default(), |_| {})).collect();
    for run in &runs {
        archive.put(run.cx(), vec![long_text("a text")]).await.expect("kept");
        let first = archive.search(runs[0].cx(), "text", 1).await.expect("searched");
        assert_eq!(first.len(), 1, "what is used stays");
    }
    let mut kept = 0;
    for run in &runs {
        kept += archive.search(run.cx(), "text", 1).await.expect("searched").len();
    }
    assert_eq!(kept, 4);
    assert!(format!("{archive:?}").contains("agents: 4"), "{archive:?}");
}

#[test]
fn a_search_leaves_the_thread_and_the_archive_to_others() {
    let runtime = tokio::runtime::Builder::new_current_thread().max_blocking_threads(1).build().expect("starts");
    runtime.block_on(async {
        let (run, archive) = (root(|_| {}), MemoryArchive::new());
        archive.put(run.cx(), vec![long_text("a text")]).await.expect("kept");
        let (let_go, occupied) = std::sync::mpsc::channel::<()>();
        let other = tokio::task::spawn_blocking(move || occupied.recv());
        let mut search = archive.search(run.cx(), "text", 5);
        assert!(futures::poll!(search.as_mut()).is_pending(), "it waits for the thread that it works on");
        archive.put(run.cx(), vec![long_text("a later text")]).await.expect("kept");
        drop(let_go);
        assert_eq!(search.await.expect("searched").len(), 1);
        other.await.expect("ends").expect_err("was let go");
    });
}

#[tokio::test]
async fn cleared_and_offloaded_results_name_the_handle_that_gives_them_back() {
    let builder = || ContextCompaction::builder().archive(MemoryArchive::new());
    let clear = builder().strategy(ClearToolResults::new().keep(Keep::Iterations(1))).build().expect("sound");
    let offload = builder().strategy(OffloadToolResults::new().over(300).preview(20)).build().expect("sound");
    for (compaction, preview) in [(clear, ""), (offload, "0:xxxxxxxxxxxxxxxxxx\n")] {
        let world = World::new(compaction, long(10, 400));
        world.step(u64::MAX).await.expect("answers");
        let shown = &texts(&world.kept())[2];
        assert!(shown.starts_with(preview) && shown.len() < 200, "{shown}");
        let page = json!({"handle": handle(shown), "offset": 2, "limit": 5});
        let whole = ask(&world, "read_archived", page).await.to_text();
        assert_eq!(whole, "[Characters 2 to 7 of 402; offset 7 shows more]\nxxxxx");
    }
}

/// An archive that stores nothing.
struct Broken;

#[async_trait]
impl Archive for Broken {
    async fn put(&self, _: &RunCx, _: Vec<Archived>) -> Result<()> {
        Err(agent_core::Error::tool("the disk is full"))
    }

    async fn get(&self, _: &RunCx, _: &str) -> Result<Option<Archived>> {
        Ok(None)
    }

    async fn search(&self, _: &RunCx, _: &str, _: usize) -> Result<Vec<Hit>> {
        Ok(Vec::new())
    }
}

#[tokio::test]
async fn an_archive_that_fails_is_reported_and_the_run_goes_on() {
    let compaction = ContextCompaction::builder().archive(Broken).build().expect("sound");
    let world = World::new(compaction, long(10, 400));
    world.step(u64::MAX).await.expect("answers");
    let warned =
        |kind: &EventKind| matches!(kind, EventKind::Warning { message } if message.contains("the disk is full"));
    assert!(world.events.lock().expect("free").iter().any(warned));
}

/// Returns an output as the model receives it.
async fn shown(
    middleware: LongToolOutput,
    tool: &str,
    output: ToolOutput,
) -> (ToolOutput, Vec<Arc<dyn agent_core::Tool>>) {
    let list = alone(middleware);
    let run = root(|_| {});
    let stack = tool_stack(&list, move |_| {
        let output = output.clone();
        async move { Ok(output) }
    });
    let out = stack.oneshot(call(run.cx(), "c", tool, json!({}))).await.expect("answers");
    (out, list[0].tools())
}

#[tokio::test]
async fn a_long_output_is_cut_in_the_middle_and_the_whole_can_be_read() {
    let text: String = (0..2_000).map(|n| format!("line {n:04}\n")).collect();
    let (out, tools) = shown(LongToolOutput::new(), "look", ToolOutput::text(&text)).await;
    let cut = out.to_text();
    assert!(cut.len() < 10_200 && cut.starts_with("line 0000\n") && cut.ends_with("line 1999\n"), "{}", cut.len());
    assert!(cut.contains("of 20000 characters are left out") && tools.is_empty(), "without an archive too");

    let archive = MemoryArchive::new();
    let list = alone(LongToolOutput::builder().archive(archive.clone()).build().expect("sound"));
    let run = root(|_| {});
    let stack = tool_stack(&list, move |_| {
        let text = text.clone();
        async move { Ok(ToolOutput::text(text)) }
    });
    let cut = stack.oneshot(call(run.cx(), "c", "look", json!({}))).await.expect("answers").to_text();
    let part = json!({"handle": handle(&cut), "offset": 10_000, "limit": 9});
    let read = list[0].tools()[0].call(call(run.cx(), "d", "read_output", part)).await.expect("reads").to_text();
    assert!(read.ends_with("\nline 1000"), "{read}");
}

#[tokio::test]
async fn what_is_not_too_long_or_not_to_be_cut_is_left_alone() {
    let long = || ToolOutput::text("x".repeat(20_000));
    let bypass = LongToolOutput::builder().bypass("skill").build().expect("sound");
    assert_eq!(shown(bypass, "skill", long()).await.0, long());
    assert_eq!(shown(LongToolOutput::new(), "read_output", long()).await.0, long());
    let value = ToolOutput::value(json!({"log": "x".repeat(20_000)})).shown_as(vec![Part::text("short")]);
    assert_eq!(shown(LongToolOutput::new(), "look", value.clone()).await.0, value, "the model is shown little");
    let exactly = ToolOutput::text("x".repeat(10_000));
    assert_eq!(shown(LongToolOutput::new(), "look", exactly.clone()).await.0, exactly);
}

#[tokio::test]
async fn images_and_errors_stay_what_they_are() {
    let image = Part::Image(Media::url("https://example.org/cat.png"));
    let output = ToolOutput::parts(vec![Part::text("é".repeat(20_000)), image.clone()]).failed();
    let (out, _) = shown(LongToolOutput::new(), "look", output).await;
    assert!(out.is_error() && out.content().len() == 2 && out.content()[1] == image);
}

#[tokio::test]
async fn tokens_can_be_the_limit() {
    let limited = LongToolOutput::builder().max_tokens(100).build().expect("sound");
    let (out, _) = shown(limited, "look", ToolOutput::text("word ".repeat(1_000))).await;
    assert!(out.to_text().len() < 500, "{}", out.to_text());
}

#[test]
fn showing_more_than_is_allowed_is_refused() {
    let e = LongToolOutput::builder().max_chars(100).show(80, 30).build().expect_err("too much");
    assert!(e.message().contains("show less"), "{e}");
}

#[tokio::test]
async fn interrupted_calls_are_reported_and_said_in_other_words() {
    let call = turn("a", "look", "x").into_iter().next().expect("a call");
    let (history, _) = History::import([Message::user("go"), call]);
    assert!(texts(&history)[2].contains(NO_RESULT));
    for (patch, words) in [(PatchToolCalls::new(), NO_RESULT), (PatchToolCalls::new().text("Cut off."), "Cut off.")] {
        let world = World::new(patch, history.clone());
        begin(&world.list, world.run.cx()).await;
        assert_eq!(texts(&world.kept())[2], words);
        assert!(world.kept().get(2).and_then(Message::as_tool).is_some_and(ToolMessage::is_error));
        let warned = |kind: &EventKind| matches!(kind, EventKind::Warning { message } if message.contains("look"));
        assert!(world.events.lock().expect("free").iter().any(warned));
    }
    let quiet: &dyn Middleware = &PatchToolCalls::new().text("Cut off.");
    let world = World::with(alone(PatchToolCalls::new()), long(2, 5), |_| {});
    quiet.before_agent(world.run.cx()).await.expect("nothing to do");
    assert_eq!(world.kept(), long(2, 5));
}
