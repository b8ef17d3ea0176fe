//! Conformance tests of chat stores.

use agent_core::{AssistantMessage, Block, Message, ToolMessage};
use agent_retrieval::memory::{ChatMessage, ChatMessageStore, ChatQuery};

use super::sample::full_answer;

/// Generates one test per claim about a [`ChatMessageStore`](agent_retrieval::memory::ChatMessageStore)
/// that does not store system messages. Takes a closure that returns a fresh store and a guard that
/// must outlive it.
///
/// ```
/// mod in_memory {
///     agent_store::message_store_conformance!(|| (agent_store::InMemoryChatMessageStore::default(), ()));
/// }
/// ```
#[macro_export]
macro_rules! message_store_conformance {
    ($make:expr) => {
        $crate::claims! { by_reference, $make;
            a_chat_is_given_back_as_it_was_written_with_ids
            what_is_written_again_adds_nothing
            ids_of_the_writer_are_kept_and_never_given_twice
            system_messages_are_left_out
            the_last_rounds_are_whole
            a_note_during_a_turn_stays_in_its_round
            older_rounds_are_found_page_by_page
            rounds_are_found_by_their_text
            chats_do_not_see_each_other
            a_deleted_chat_is_gone
            messages_survive_to_the_last_byte
        }
    };
}

fn turn(call: &str, result: &str) -> Vec<Message> {
    let asks = AssistantMessage::new(vec![Block::tool_call(call, "search", "{}")]);
    vec![Message::Assistant(asks), Message::Tool(ToolMessage::text(call, "search", result, false))]
}

/// Three rounds: a plain one, one with two turns of calls, and one without an answer yet.
fn three_rounds() -> Vec<Message> {
    let mut messages = vec![Message::user("Hi."), Message::assistant("Hello."), Message::user("Find bees.")];
    messages.extend([turn("c1", "none"), turn("c2", "three bees")].concat());
    messages.extend([Message::assistant("Three."), Message::user("And wasps?")]);
    messages.extend(turn("c3", "one wasp"));
    messages
}

async fn write(store: &dyn ChatMessageStore, chat: &str, messages: Vec<Message>) -> usize {
    store.write(chat, messages.into_iter().map(ChatMessage::from).collect()).await.expect("writes")
}

async fn read(store: &dyn ChatMessageStore, chat: &str, query: ChatQuery) -> Vec<ChatMessage> {
    store.retrieve(chat, &query).await.expect("reads")
}

async fn texts(store: &dyn ChatMessageStore, chat: &str, query: ChatQuery) -> Vec<String> {
    read(store, chat, query).await.into_iter().map(|m| m.message.text()).collect()
}

/// In order, over several writes, each message with its own id.
pub async fn a_chat_is_given_back_as_it_was_written_with_ids(store: &dyn ChatMessageStore) {
    assert_eq!(write(store, "c", three_rounds()).await, 11);
    assert_eq!(write(store, "c", vec![Message::assistant("One.")]).await, 1);
    assert_eq!(write(store, "c", vec![]).await, 0);
    let kept = read(store, "c", ChatQuery::default()).await;
    let wanted = three_rounds().into_iter().chain([Message::assistant("One.")]);
    assert!(kept.iter().map(|m| m.message.clone()).eq(wanted));
    let ids: std::collections::HashSet<_> = kept.iter().map(|m| m.id.clone().expect("an id")).collect();
    assert_eq!((ids.len(), store.count("c").await.expect("counts")), (12, 12));
}

/// Writing back a chat that was read, with new messages, stores only the new ones.
pub async fn what_is_written_again_adds_nothing(store: &dyn ChatMessageStore) {
    write(store, "c", three_rounds()).await;
    let mut again = read(store, "c", ChatQuery::default()).await;
    assert_eq!(store.write("c", again.clone()).await.expect("writes"), 0);
    again.push(Message::assistant("One.").into());
    assert_eq!(store.write("c", again).await.expect("writes"), 1);
    assert_eq!(store.count("c").await.expect("counts"), 12);
}

/// The first of two messages with one id wins, also within one write, and generated ids skip those
/// in use.
pub async fn ids_of_the_writer_are_kept_and_never_given_twice(store: &dyn ChatMessageStore) {
    let named = |id: &str| ChatMessage::new(id, Message::user(id));
    let nameless = || ChatMessage::from(Message::user("nameless"));
    let first = vec![named("1"), named("a"), named("a"), nameless(), nameless()];
    assert_eq!(store.write("c", first).await.expect("writes"), 4);
    assert_eq!(store.write("c", vec![nameless(), named("0"), named("zz")]).await.expect("writes"), 2);
    let kept = read(store, "c", ChatQuery::default()).await;
    let mut ids: Vec<_> = kept.iter().filter_map(|m| m.id.clone()).collect();
    assert_eq!((&ids[..2], ids.len()), (&["1".to_owned(), "a".to_owned()][..], 6));
    ids.sort();
    ids.dedup();
    assert_eq!(ids.len(), 6, "{ids:?}");
}

/// System messages belong to the agent and may change.
pub async fn system_messages_are_left_out(store: &dyn ChatMessageStore) {
    assert_eq!(write(store, "c", vec![Message::system("Be kind."), Message::user("Hi.")]).await, 1);
    assert_eq!(texts(store, "c", ChatQuery::default()).await, ["Hi."]);
}

/// A round is never split, whatever the limit; a limit of zero returns no messages.
pub async fn the_last_rounds_are_whole(store: &dyn ChatMessageStore) {
    for message in three_rounds() {
        write(store, "c", vec![message]).await; // one by one, as in a run
    }
    let starts = [(0, 11), (1, 8), (2, 2), (3, 0), (4, 0)];
    for (k, from) in starts {
        let kept = read(store, "c", ChatQuery::default().last_k(k)).await;
        assert!(kept.into_iter().map(|m| m.message).eq(three_rounds().into_iter().skip(from)), "the last {k}");
    }
}

/// A user message between a call's result and the answer.
pub async fn a_note_during_a_turn_stays_in_its_round(store: &dyn ChatMessageStore) {
    let mut messages = vec![Message::user("Hi."), Message::assistant("Hello."), Message::user("Find bees.")];
    messages.extend(turn("c1", "none"));
    messages.extend([Message::user("You may buy some."), Message::assistant("Bought.")]);
    write(store, "c", messages.clone()).await;
    let last = read(store, "c", ChatQuery::default().last_k(1)).await;
    assert!(last.into_iter().map(|m| m.message).eq(messages.into_iter().skip(2)));
}

/// Each page ends where the next one begins.
pub async fn older_rounds_are_found_page_by_page(store: &dyn ChatMessageStore) {
    write(store, "c", three_rounds()).await;
    let mut pages = Vec::new();
    let mut query = ChatQuery::default().last_k(1);
    loop {
        let page = read(store, "c", query.clone()).await;
        let Some(first) = page.first() else { break };
        query = query.before(first.id.clone().expect("an id"));
        pages.push(page.len());
    }
    assert_eq!(pages, [3, 6, 2]);
    let inside = read(store, "c", ChatQuery::default()).await[5].id.clone().expect("an id");
    assert_eq!(
        texts(store, "c", ChatQuery::default().before(inside)).await,
        ["Hi.", "Hello."],
        "not half of its round"
    );
    assert!(read(store, "c", ChatQuery::default().before("no such id")).await.is_empty());
}

/// Returns the whole round of a matching message, whatever its role.
pub async fn rounds_are_found_by_their_text(store: &dyn ChatMessageStore) {
    write(store, "c", three_rounds()).await;
    assert_eq!(read(store, "c", ChatQuery::default().containing("three bees")).await.len(), 6);
    assert_eq!(texts(store, "c", ChatQuery::default().containing("Hello")).await, ["Hi.", "Hello."]);
    let either = ChatQuery::default().containing("e");
    assert_eq!(read(store, "c", either.clone().last_k(1)).await.len(), 3);
    assert_eq!(read(store, "c", either).await.len(), 11);
    assert!(read(store, "c", ChatQuery::default().containing("hello")).await.is_empty(), "case-sensitive");
    assert!(read(store, "c", ChatQuery::default().containing("%")).await.is_empty());
}

/// An unknown chat is empty.
pub async fn chats_do_not_see_each_other(store: &dyn ChatMessageStore) {
    for chat in ["", "a", "a' OR 1=1 --", "A", "a%"] {
        write(store, chat, vec![Message::user(chat)]).await;
    }
    for chat in ["", "a", "a' OR 1=1 --", "A", "a%"] {
        assert_eq!(texts(store, chat, ChatQuery::default()).await, [chat]);
    }
    assert!(read(store, "b", ChatQuery::default()).await.is_empty());
    assert_eq!(store.count("b").await.expect("counts"), 0);
}

/// Deletes one chat or all of them; a deleted chat can be started again.
pub async fn a_deleted_chat_is_gone(store: &dyn ChatMessageStore) {
    for chat in ["a", "b", "c"] {
        write(store, chat, three_rounds()).await;
    }
    assert!(store.delete("a").await.expect("deletes"));
    assert!(!store.delete("a").await.expect("deletes"));
    assert_eq!((store.count("a").await.expect("counts"), store.count("b").await.expect("counts")), (0, 11));
    write(store, "a", vec![Message::user("again")]).await;
    assert_eq!(texts(store, "a", ChatQuery::default()).await, ["again"]);
    assert_eq!(store.delete_all().await.expect("deletes"), 3);
    assert_eq!(store.delete_all().await.expect("deletes"), 0);
    assert!(read(store, "b", ChatQuery::default()).await.is_empty());
}

/// Including a provider's raw JSON.
pub async fn messages_survive_to_the_last_byte(store: &dyn ChatMessageStore) {
    let messages = vec![Message::user("\u{0}\u{1f600} 'quoted' \\ \n"), Message::Assistant(full_answer())];
    write(store, "c", messages.clone()).await;
    let kept = read(store, "c", ChatQuery::default()).await;
    assert!(kept.into_iter().map(|m| m.message).eq(messages));
}
