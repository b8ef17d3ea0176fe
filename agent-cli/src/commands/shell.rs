//! `agent completions`, `agent man` and `agent schema`.

use agent::{Result, config::Loader};
use clap::CommandFactory;
use clap_complete::Shell;

use crate::{
    cli::Cli,
    output::{End, cannot, print},
};

/// Writes completions for a shell.
pub(crate) fn completions(shell: Shell) -> Result<End> {
    let mut text = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "agent", &mut text);
    print(&String::from_utf8_lossy(&text))?;
    Ok(End::Finished)
}

/// Writes the JSON Schema of agent files.
pub(crate) fn schema() -> Result<End> {
    let schema = serde_json::to_string_pretty(Loader::new().schema()).unwrap_or_default();
    print(&format!("{schema}\n"))?;
    Ok(End::Finished)
}

/// Writes the manual page: the program, and each of its commands.
pub(crate) fn man() -> Result<End> {
    let mut page = Vec::new();
    let failed = |e| cannot("the manual", e);
    let mut command = Cli::command();
    command.build();
    clap_mangen::Man::new(command.clone()).render(&mut page).map_err(failed)?;
    for sub in command.get_subcommands().filter(|sub| !sub.is_hide_set()) {
        let man = clap_mangen::Man::new(sub.clone());
        man.render_synopsis_section(&mut page).map_err(failed)?;
        man.render_description_section(&mut page).map_err(failed)?;
        man.render_options_section(&mut page).map_err(failed)?;
        man.render_extra_section(&mut page).map_err(failed)?;
    }
    print(&String::from_utf8_lossy(&page))?;
    Ok(End::Finished)
}
