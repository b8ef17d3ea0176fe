//! External effects: counts the executions of side effects.

use std::{
    collections::BTreeMap,
    fs, io,
    path::{Path, PathBuf},
};

/// Directory with one file per execution, named by its idempotency key. Creating a file is atomic,
/// so a process killed meanwhile leaves no partial one.
#[derive(Clone, Debug)]
pub(crate) struct Counter(PathBuf);

impl Counter {
    pub(crate) fn open(dir: &Path) -> io::Result<Self> {
        let dir = dir.join("effects");
        fs::create_dir_all(&dir)?;
        Ok(Self(dir))
    }

    /// Executes the effect with this key.
    pub(crate) fn add(&self, key: &str) -> io::Result<()> {
        let name = key.replace('/', "+");
        for n in 1_u32.. {
            match fs::File::create_new(self.0.join(format!("{name}.{n}"))) {
                Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {}
                made => return made.map(drop),
            }
        }
        Ok(())
    }

    /// Returns true if the effect with this key was executed.
    pub(crate) fn has(&self, key: &str) -> bool {
        self.0.join(format!("{}.1", key.replace('/', "+"))).exists()
    }

    /// Returns the number of executions, by key.
    pub(crate) fn all(&self) -> io::Result<BTreeMap<String, u64>> {
        let mut all = BTreeMap::new();
        for file in fs::read_dir(&self.0)? {
            let name = file?.file_name().to_string_lossy().replace('+', "/");
            if let Some((key, _)) = name.rsplit_once('.') {
                *all.entry(key.to_owned()).or_default() += 1;
            }
        }
        Ok(all)
    }
}
