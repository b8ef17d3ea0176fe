//! `edit_notebook`, images, and several files at once.

use agent_core::{Part, message::MediaSource};
use serde_json::{Value, json};

use super::{fixture, support::call_in};

fn notebook() -> String {
    let code = json!({"cell_type": "code", "id": "a1", "metadata": {}, "source": ["1"], "outputs": [{"x": 1}], "execution_count": 3});
    let text = json!({"cell_type": "markdown", "id": "b2", "metadata": {"k": 1}, "source": ["# Title"]});
    json!({"cells": [code, text], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}).to_string()
}

#[tokio::test]
async fn cells_are_replaced_inserted_and_deleted() {
    let fixture = fixture().with("n.ipynb", notebook());
    let edit = async |args: Value| {
        let mut args = args;
        args["path"] = "n.ipynb".into();
        fixture.call("edit_notebook", args).await
    };
    fixture.call("read_file", json!({"path": "n.ipynb"})).await;
    fixture.next_step();
    let cells = || serde_json::from_str::<Value>(&fixture.content("n.ipynb")).expect("JSON")["cells"].clone();
    assert_eq!(edit(json!({"cell": "a1", "source": "x = 1\nx"})).await, "replaced cell 0 of n.ipynb");
    let expected = json!({"cell_type": "code", "id": "a1", "metadata": {}, "source": ["x = 1\n", "x"], "outputs": [], "execution_count": null});
    assert_eq!(cells()[0], expected);
    assert_eq!(edit(json!({"cell": 1, "source": "text", "cell_type": "raw"})).await, "replaced cell 1 of n.ipynb");
    assert_eq!(cells()[1], json!({"cell_type": "raw", "id": "b2", "metadata": {"k": 1}, "source": ["text"]}));
    assert_eq!(edit(json!({"cell": "b2", "mode": "insert", "source": "new"})).await, "inserted cell 1 of n.ipynb");
    assert_eq!(
        edit(json!({"mode": "insert", "source": "end", "cell_type": "markdown"})).await,
        "inserted cell 3 of n.ipynb"
    );
    assert_eq!(edit(json!({"cell": "0", "mode": "delete"})).await, "deleted cell 0 of n.ipynb");
    let sources: Vec<_> = cells().as_array().expect("a list").iter().map(|cell| cell["source"].clone()).collect();
    assert_eq!(sources, [json!(["new"]), json!(["text"]), json!(["end"])]);
    assert!(cells()[0]["id"].as_str().is_some_and(|id| !id.is_empty()) && cells()[2].get("outputs").is_none());
}

#[tokio::test]
async fn a_cell_that_is_not_there_and_what_is_no_notebook_are_refused() {
    let fixture = fixture().with("n.ipynb", notebook()).with("t", "text").with("j", "{}").with("l", "[]");
    for (args, why) in [
        (json!({"path": "n.ipynb", "cell": "2"}), "there is no cell '2': the notebook has 2 cells, numbered from 0"),
        (json!({"path": "n.ipynb", "cell": "c3"}), "there is no cell 'c3'"),
        (json!({"path": "n.ipynb"}), "say which cell is meant"),
        (json!({"path": "t", "cell": "0"}), "'t' is no notebook"),
        (json!({"path": "j", "cell": "0"}), "'j' is no notebook: missing field `cells`"),
        (json!({"path": "l", "cell": "0"}), "'l' is no notebook"),
        (json!({"path": "n.ipynb", "cell": "a1"}), "say what is to be changed"),
        (json!({"path": "n.ipynb", "cell": "0", "source": ""}), "you have not read all of it"),
    ] {
        let refused = fixture.call("edit_notebook", args).await;
        assert!(refused.starts_with("ERROR ") && refused.contains(why), "{refused}");
    }
    assert_eq!(fixture.content("n.ipynb"), notebook());
}

#[tokio::test]
async fn all_but_the_cell_stays_as_it_is_to_the_byte() {
    let text = "{\n \"cells\": [\n  {\"id\": \"a\", \"cell_type\": \"code\", \"source\": []},\n  {\n   \"cell_type\": \"markdown\",\n   \"id\": \"b\", \"metadata\": {\"n\": 12345678901234567890123},\n   \"source\": []\n  }\n ],\n \"z\": 1, \"a\": 1.0e2\n}";
    let fixture = fixture().with("n.ipynb", text);
    let edit = async |mode: &str, cell: Value| {
        let args = json!({"path": "n.ipynb", "cell": cell, "mode": mode, "source": "x", "cell_type": "raw"});
        fixture.call("edit_notebook", args).await;
        fixture.content("n.ipynb")
    };
    let cell = "{\n   \"cell_type\": \"raw\",\n   \"id\": \"a\",\n   \"source\": [\n    \"x\"\n   ]\n  }";
    let replaced = edit("replace", json!("a")).await;
    assert_eq!(replaced, text.replace("{\"id\": \"a\", \"cell_type\": \"code\", \"source\": []}", cell));
    assert_eq!(
        edit("delete", json!("a")).await,
        text.replace("{\"id\": \"a\", \"cell_type\": \"code\", \"source\": []},\n  ", "")
    );
    let empty = edit("delete", json!("b")).await;
    assert_eq!(empty, "{\n \"cells\": [\n  \n ],\n \"z\": 1, \"a\": 1.0e2\n}");
    let one = "[\n  {\n   \"cell_type\": \"raw\",\n   \"metadata\": {},\n   \"source\": [\n    \"x\"\n   ]\n  }\n ]";
    assert_eq!(edit("insert", Value::Null).await, empty.replace("[\n  \n ]", one));
}

#[tokio::test]
async fn a_kind_alone_is_changed_and_the_source_stays() {
    let fixture = fixture().with("n.ipynb", notebook());
    fixture.call("edit_notebook", json!({"path": "n.ipynb", "cell": "a1", "cell_type": "markdown"})).await;
    let cells = serde_json::from_str::<Value>(&fixture.content("n.ipynb")).expect("JSON")["cells"].clone();
    assert_eq!(cells[0], json!({"cell_type": "markdown", "id": "a1", "metadata": {}, "source": ["1"]}));
}

#[tokio::test]
async fn an_image_is_shown_as_one() {
    let fixture =
        fixture().with("i", b"\x89PNG\r\n\x1a\n\0\0").with("large", [b"GIF89a".to_vec(), vec![0; 4 << 20]].concat());
    let output = call_in(fixture.run.cx(), &fixture.tool("read_file"), json!({"path": "i"})).await.expect("reads");
    let [Part::Text(words), Part::Image(image)] = output.content() else { panic!("{output:?}") };
    assert_eq!(words.text, "i (image/png, 10 bytes)");
    assert_eq!(
        (image.mime.as_deref(), &image.source),
        (Some("image/png"), &MediaSource::Base64("iVBORw0KGgoAAA==".into()))
    );
    let refused = fixture.call("read_file", json!({"path": "large"})).await;
    assert!(refused.contains("more than the 3932160 that models take"), "{refused}");
}

#[tokio::test]
async fn several_files_are_read_by_path_and_by_pattern_and_each_has_its_share() {
    let fixture = fixture().with("a.rs", "one\n").with("src/b.rs", "two\n").with(".hidden", "three").with("c", "\0");
    let read = async |paths: &[&str]| fixture.call("read_many_files", json!({"paths": paths})).await;
    assert_eq!(
        read(&["*.rs", ".hidden", "nowhere", "c"]).await,
        "[no file matches 'nowhere']\n\na.rs (lines 1-1 of 1)\n    1| one\n\nsrc/b.rs (lines 1-1 of 1)\n    1| two\n\n.hidden (lines 1-1 of 1)\n    1| three\n\n['c' is not text: it is a binary file of 1 bytes]"
    );
    let lines = "line\n".repeat(100);
    let fixture =
        fixture.with("long", &lines).with("longer", &lines).limited(|workspace| workspace.max_output_bytes(200));
    let both = fixture.call("read_many_files", json!({"paths": ["long*"]})).await;
    assert_eq!(both.matches("[cut: go on with start_line = ").count(), 2, "{both}");
    fixture.next_step();
    let refused = fixture.call("write_file", json!({"path": "long", "content": "x"})).await;
    assert!(refused.contains("you have not read all of it"), "{refused}");
    let named = fixture.workspace.path().join("long*");
    let again = fixture.call("read_many_files", json!({"paths": ["long", named, "../x"]})).await;
    assert_eq!(again.matches(" of 100)").count(), 2, "each once: {again}");
    assert!(again.contains("[no file matches '../x']") || again.contains("outside the workspace"), "{again}");
}
