//! The index as a whole: it follows the files, survives damage, and nothing of a query is an operator.

use super::*;
use crate::scope::Scope;

struct Scene {
    home: tempfile::TempDir,
    folder: Folder,
    index: Index,
}

impl Scene {
    fn new(content: &str) -> Self {
        let home = tempfile::tempdir().unwrap();
        let folder = Folder::new(Scope::User, home.path().to_owned(), &["memory"]);
        fs::create_dir(home.path().join("memory")).unwrap();
        let index = Index::at(Some(home.path().join("cache/index.db")));
        let scene = Self {
            home,
            folder,
            index,
        };
        scene.write("MEMORY.md", content);
        scene
    }

    fn write(&self, name: &str, content: &str) {
        fs::write(self.home.path().join("memory").join(name), content).unwrap();
    }

    fn find(&mut self, query: &str) -> Vec<String> {
        let terms = Terms::of(query);
        self.index.refresh(&[&self.folder]).unwrap();
        let query = Query {
            terms,
            vector: None,
            limit: 5,
        };
        let found = self.index.search(&[&self.folder], &query).unwrap();
        found.into_iter().map(|it| it.memory.text).collect()
    }
}

#[test]
fn words_parts_of_words_and_chinese_are_found() {
    let mut scene = Scene::new(
        "- the limit is max_tokens_total\n- 迁移前先备份数据库，端口是五四三二\n- retries wait two seconds\n- Grüße an Zoë\n",
    );
    let expected = [
        ("tokens", "the limit is max_tokens_total"),
        ("max_tokens_total", "the limit is max_tokens_total"),
        ("maxTokensTotal", "the limit is max_tokens_total"),
        ("数据库", "迁移前先备份数据库，端口是五四三二"),
        ("端口", "迁移前先备份数据库，端口是五四三二"),
        ("数据库的端口", "迁移前先备份数据库，端口是五四三二"),
        ("retrying", "retries wait two seconds"),
        ("zoe", "Grüße an Zoë"),
        ("ax_to", "the limit is max_tokens_total"),
    ];
    for (query, text) in expected {
        assert_eq!(
            scene.find(query).first().map(String::as_str),
            Some(text),
            "{query}"
        );
    }
    assert_eq!(scene.find("kubernetes"), Vec::<String>::new());
}

#[test]
fn nothing_of_a_query_is_an_operator() {
    let mut scene = Scene::new("- plain text with NEAR and 100% of it\n");
    for query in [
        "\"",
        "text\"",
        "text AND NOT",
        "NEAR(text, 2)",
        "text*",
        "-text",
        "heading:text",
        "^text",
        "{text}",
        "(",
        "' OR 1=1 --",
        "%",
        "_",
        "te%t",
        "\\",
        "text\0text",
    ] {
        scene.find(query);
    }
    assert_eq!(scene.find("heading:plain").len(), 1);
    assert_eq!(scene.find("%%"), Vec::<String>::new());
}

#[test]
fn an_edit_is_seen_and_what_is_gone_is_not_found() {
    let mut scene = Scene::new("- tabs\n");
    scene.write("2026-03-01.md", "- lunch with Ada\n");
    assert_eq!(
        (scene.find("tabs").len(), scene.find("lunch").len()),
        (1, 1)
    );
    // The same length, within the same moment.
    scene.write("MEMORY.md", "- cats\n");
    assert_eq!((scene.find("tabs").len(), scene.find("cats").len()), (0, 1));
    fs::remove_file(scene.home.path().join("memory/2026-03-01.md")).unwrap();
    assert_eq!(scene.find("lunch").len(), 0);
    fs::remove_dir_all(scene.home.path().join("memory")).unwrap();
    assert_eq!(scene.find("cats").len(), 0);
}

#[test]
fn a_damaged_index_is_made_anew() {
    let mut scene = Scene::new("- tabs\n");
    let path = scene.home.path().join("cache/index.db");
    assert_eq!(scene.find("tabs").len(), 1);
    for damage in ["no database at all".repeat(1000), String::new()] {
        scene.index = Index::at(Some(path.clone()));
        fs::write(&path, damage).unwrap();
        let _ = fs::remove_file(path.with_extension("db-wal"));
        assert_eq!(scene.find("tabs").len(), 1);
    }
    scene.index = Index::at(Some(path.clone()));
    let other = Connection::open(&path).unwrap();
    other.pragma_update(None, "user_version", 99).unwrap();
    drop(other);
    assert_eq!(scene.find("tabs").len(), 1, "tables of another version");
}

#[test]
fn an_index_that_cannot_be_written_is_kept_in_memory() {
    let mut scene = Scene::new("- tabs\n");
    fs::write(scene.home.path().join("file"), "").unwrap();
    scene.index = Index::at(Some(scene.home.path().join("file/index.db")));
    assert_eq!(scene.find("tabs").len(), 1);
    assert_eq!(scene.index.path, None);
}

#[test]
fn an_index_that_is_busy_or_on_a_full_disk_is_left_alone() {
    use rusqlite::ffi;
    let failed = |code| rusqlite::Error::SqliteFailure(ffi::Error::new(code), None);
    for code in [ffi::SQLITE_CORRUPT, ffi::SQLITE_NOTADB, ffi::SQLITE_ERROR] {
        assert!(is_damaged(&failed(code)), "{code}");
    }
    for code in [
        ffi::SQLITE_BUSY,
        ffi::SQLITE_FULL,
        ffi::SQLITE_READONLY,
        ffi::SQLITE_CANTOPEN,
        ffi::SQLITE_IOERR,
    ] {
        assert!(!is_damaged(&failed(code)), "{code}");
    }
    let mut scene = Scene::new("- tabs\n");
    assert_eq!(scene.find("tabs").len(), 1);
    let path = scene.home.path().join("cache/index.db");
    scene.index.start_over(false);
    assert!(path.exists() && scene.find("tabs").len() == 1);
}
