//! File API of a sandbox's daemon.

use std::{
    collections::BTreeMap,
    fs::{self, Metadata},
    io,
    os::unix::fs::PermissionsExt,
    path::Path,
};

use hyper::Method;
use serde_json::{Map, Value, json};

use super::{Answer, bytes_answer, json_answer, refused};

pub(super) fn files(method: &Method, query: &str, kind: &str, body: &[u8]) -> Answer {
    let query: BTreeMap<_, _> = url::form_urlencoded::parse(query.as_bytes()).into_owned().collect();
    let path = query.get("path").map(Path::new);
    if *method == Method::GET {
        return download(path.expect("is said"));
    }
    for (name, content) in parts(kind, body) {
        let path = path.unwrap_or(Path::new(&name));
        let folder = path.parent().expect("is a file");
        if let Err(e) = fs::create_dir_all(folder).and_then(|()| fs::write(path, content)) {
            return refused(500, &e.to_string());
        }
    }
    json_answer(200, &json!([]))
}

fn download(path: &Path) -> Answer {
    match fs::metadata(path) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => refused(404, "does not exist"),
        Err(e) => refused(500, &e.to_string()),
        Ok(found) if !found.is_file() => refused(400, "is no file"),
        Ok(_) => match fs::read(path) {
            Ok(content) => bytes_answer(200, "application/octet-stream", content),
            Err(e) => refused(500, &e.to_string()),
        },
    }
}

/// Returns the parts of a form: file names and contents.
fn parts(kind: &str, body: &[u8]) -> Vec<(String, Vec<u8>)> {
    let boundary = kind.strip_prefix("multipart/form-data; boundary=").expect("is a form");
    let (mark, mut rest) = (format!("--{boundary}"), body);
    let find = |text: &[u8], wanted: &str| text.windows(wanted.len()).position(|found| found == wanted.as_bytes());
    let mut parts = Vec::new();
    while let Some(begin) = rest.strip_prefix(format!("{mark}\r\n").as_bytes()) {
        let head_end = find(begin, "\r\n\r\n").expect("has a head");
        let head = String::from_utf8(begin[..head_end].into()).expect("is text");
        let name = head.split_once("filename=\"").expect("has a name").1.split("\"\r\n").next().expect("ends");
        let content = &begin[head_end + 4..];
        let end = find(content, &format!("\r\n{mark}")).expect("ends");
        parts.push((name.replace("\\\"", "\"").replace("\\\\", "\\"), content[..end].into()));
        rest = &content[end + 2..];
    }
    assert_eq!(rest, format!("{mark}--\r\n").as_bytes());
    parts
}

pub(super) fn filesystem(method: &str, body: &[u8]) -> Answer {
    let asked: Value = serde_json::from_slice(body).expect("is JSON");
    let path = Path::new(asked["path"].as_str().expect("is said"));
    let answer = match method.rsplit('/').next().expect("has a name") {
        "Stat" => entry(path).map(|entry| json!({"entry": entry})),
        "ListDir" => fs::read_dir(path).map(|found| {
            let entries: Vec<_> = found.flatten().filter_map(|found| entry(&found.path()).ok()).collect();
            if entries.is_empty() { json!({}) } else { json!({"entries": entries}) }
        }),
        other => unreachable!("nobody asks for {other}"),
    };
    match answer {
        Ok(answer) => json_answer(200, &answer),
        // Like the daemon, treats a path below a file as missing.
        Err(e) if matches!(e.kind(), io::ErrorKind::NotFound) => {
            json_answer(404, &json!({"code": "not_found", "message": "path not found"}))
        }
        Err(e) => json_answer(400, &json!({"code": "invalid_argument", "message": e.to_string()})),
    }
}

fn entry(path: &Path) -> io::Result<Value> {
    let found = fs::symlink_metadata(path)?;
    let mut entry = Map::new();
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    entry.insert("name".into(), (*name).into());
    entry.insert("path".into(), path.to_string_lossy().into());
    let told = if found.is_symlink() {
        entry.insert("symlinkTarget".into(), fs::read_link(path)?.to_string_lossy().into());
        fs::metadata(path).unwrap_or(found)
    } else {
        found
    };
    entry.insert("type".into(), kind(&told).into());
    entry.insert("mode".into(), (told.permissions().mode() & 0o777).into());
    // Zero is omitted, and a 64-bit number is encoded as a string.
    if told.len() > 0 {
        entry.insert("size".into(), told.len().to_string().into());
    }
    entry.retain(|_, value| *value != 0 && *value != "");
    Ok(entry.into())
}

fn kind(of: &Metadata) -> &'static str {
    if of.is_file() {
        "FILE_TYPE_FILE"
    } else if of.is_dir() {
        "FILE_TYPE_DIRECTORY"
    } else {
        ""
    }
}
