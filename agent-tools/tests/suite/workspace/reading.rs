//! `read_file`.

use serde_json::{Value, json};

use super::fixture;

#[tokio::test]
async fn lines_are_numbered_and_ranges_are_exact() {
    let fixture =
        fixture().with("ten", (1..=10).map(|n| format!("line {n}\r\n")).collect::<String>()).with("empty", "");
    let read = async |start: Value, end: Value| {
        fixture.call("read_file", json!({"path": "./ten", "start_line": start, "end_line": end})).await
    };
    assert_eq!(read(json!(9), json!(null)).await, "ten (lines 9-10 of 10)\n    9| line 9\n   10| line 10");
    assert_eq!(read(json!(null), json!(1)).await, "ten (lines 1-1 of 10)\n    1| line 1");
    assert_eq!(read(json!(3), json!(3)).await, "ten (lines 3-3 of 10)\n    3| line 3");
    assert_eq!(read(json!(10), json!(99)).await, "ten (lines 10-10 of 10)\n   10| line 10");
    assert_eq!(read(json!(11), json!(null)).await, "ERROR 'ten' has 10 lines: start_line 11 is after the last");
    assert_eq!(read(json!(5), json!(4)).await, "ERROR end_line 4 is before start_line 5");
    assert!(read(json!(0), json!(null)).await.contains("'start_line' must be at least 1, got 0"));
    assert_eq!(fixture.call("read_file", json!({"path": "empty"})).await, "empty (empty)");
}

#[tokio::test]
async fn a_long_file_is_cut_and_says_how_to_go_on() {
    let fixture = fixture().with("long", "0123456789\n".repeat(1_000)).limited(|w| w.max_output_bytes(1_000));
    let read = fixture.call("read_file", json!({"path": "long"})).await;
    assert!(read.starts_with("long (lines 1-56 of 1000)\n"), "{read}");
    assert!(read.ends_with("\n[cut: go on with start_line = 57]"), "{read}");
    let wide = fixture.with("wide", "é".repeat(5_000));
    let read = wide.call("read_file", json!({"path": "wide"})).await;
    let more =
        "é [cut: the line has 10000 bytes]\n[read_file with start_line = 1 and start_byte = 2001 shows more of line 1]";
    assert!(read.ends_with(more), "{read}");
}

#[tokio::test]
async fn the_rest_of_a_line_that_was_cut_is_read_from_a_byte_on() {
    let line: String = (0..1_000).map(|n| format!("{n:03}é")).collect();
    let fixture = fixture().with("wide", format!("one\n{line}\n")).limited(|w| w.max_output_bytes(3_000));
    let read = async |byte: usize| {
        fixture.call("read_file", json!({"path": "wide", "start_line": 2, "start_byte": byte})).await
    };
    assert!(read(2_001).await.starts_with("wide (line 2 of 2, bytes 2001-5000 of 5000)\n400é401é"));
    assert!(read(2_000).await.starts_with("wide (line 2 of 2, bytes 1999-4998 of 5000)\né400"), "a letter is whole");
    assert!(read(1).await.ends_with("599é\n[cut: go on with start_byte = 3001]"));
    assert_eq!(read(5_001).await, "ERROR line 2 of 'wide' has 5000 bytes: start_byte 5001 is after the last");
    let late = fixture.call("read_file", json!({"path": "wide", "start_line": 3, "start_byte": 1})).await;
    assert_eq!(late, "ERROR 'wide' has 2 lines: start_line 3 is after the last");
}

#[tokio::test]
async fn what_is_too_big_or_not_text_is_refused() {
    let fixture = fixture().with("big", [b'a'; 101]).with("binary", b"a\0b").limited(|w| w.max_file_bytes(100));
    let read = async |path: &str| fixture.call("read_file", json!({"path": path})).await;
    assert_eq!(read("big").await, "ERROR 'big' cannot be used: it has 101 bytes, more than the limit of 100");
    assert_eq!(read("binary").await, "ERROR 'binary' is not text: it is a binary file of 3 bytes");
    assert_eq!(read("").await, "ERROR '.' cannot be used: it is a directory: use list_files");
    let written = fixture.call("write_file", json!({"path": "new", "content": "a".repeat(101)})).await;
    assert_eq!(written, "ERROR 'new' cannot be used: it has 101 bytes, more than the limit of 100");
}

#[tokio::test]
async fn what_is_almost_utf8_is_shown_with_a_note() {
    let fixture = fixture().with("latin1", b"caf\xe9\n");
    let read = fixture.call("read_file", json!({"path": "latin1"})).await;
    assert!(read.contains("    1| caf\u{fffd}\n[not all of it is UTF-8"), "{read}");
    let edited = fixture.call("edit_file", json!({"path": "latin1", "old_text": "caf", "new_text": "x"})).await;
    assert_eq!(edited, "ERROR 'latin1' is not UTF-8 text: it cannot be edited");
}

#[tokio::test]
async fn a_path_that_is_not_there_is_told_with_the_nearest_ones() {
    let fixture = fixture().with("src/main.rs", "").with("src/lib.rs", "").with("docs/guide.md", "");
    let read = async |path: &str| fixture.call("read_file", json!({"path": path})).await;
    assert_eq!(read("src/mian.rs").await, "ERROR 'src/mian.rs' does not exist; did you mean src/main.rs?");
    assert_eq!(read("Guide.md").await, "ERROR 'Guide.md' does not exist; did you mean docs/guide.md?");
    assert_eq!(read("zzzzzz").await, "ERROR 'zzzzzz' does not exist");
    let listed = fixture.call("list_files", json!({"path": "scr"})).await;
    assert_eq!(listed, "ERROR 'scr' does not exist");
}
