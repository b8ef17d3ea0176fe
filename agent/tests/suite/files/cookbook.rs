//! The agent files of the cookbook.

use std::fs;

use agent::{
    config::{Loader, Registry},
    testing::ScriptedModel,
};

/// Agent files of the page, each with its name, which its first line has.
fn files() -> Vec<(String, String)> {
    let page = include_str!("../../../../docs/cookbook.md");
    let blocks = page.split("```yaml\n").skip(1).map(|rest| rest.split("```").next().expect("a block ends"));
    let named = blocks.map(|block| {
        let name = block.lines().next().and_then(|line| line.strip_prefix("# ")).expect("a name in its first line");
        (name.to_owned(), block.to_owned())
    });
    named.filter(|(_, block)| block.contains("\nmodel:")).collect()
}

#[test]
fn every_agent_file_of_the_cookbook_is_built() {
    let folder = tempfile::tempdir().expect("a folder");
    for below in ["docs", "work"] {
        fs::create_dir(folder.path().join(below)).expect("creates");
    }
    fs::write(folder.path().join("docs/warranty.md"), "The warranty lasts two years.").expect("writes");
    let files = files();
    assert!(files.len() >= 8, "{}", files.len());
    let registry = Registry::builtin().model("small", ScriptedModel::new([]));
    let loader = Loader::new().registry(registry).environment(|name| Some(format!("{name} of the environment")));
    for (name, text) in files {
        let path = folder.path().join(&name);
        fs::write(&path, text).expect("writes");
        let loaded = loader.clone().every_model("small").load(&path).unwrap_or_else(|e| panic!("{name}: {e}"));
        loaded.into_builder().build().unwrap_or_else(|e| panic!("{name}: {e}"));
    }
}
