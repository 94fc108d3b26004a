use crate::bench::Bench;
use rondo_core::toolbox::Toolbox;
use rondo_schema::{PreparedArguments, Validator, prepare};
use rondo_tools::{TOOL_NAMES, file_tools};
use rondo_types::{Concurrency, Effects, Recovery, ToolHints, ToolKind};

#[test]
fn each_tool_says_what_it_does_to_the_world() {
    let bench = Bench::new();
    let specs = Toolbox::new(file_tools(&bench.workspace)).unwrap().specs();
    let found: Vec<_> = specs
        .iter()
        .map(|spec| {
            (
                spec.name.as_str(),
                spec.effects,
                spec.concurrency,
                spec.recovery,
            )
        })
        .collect();
    let reads = (Effects::ReadOnly, Concurrency::Shared, Recovery::ReadOnly);
    let writes = (Effects::Writes, Concurrency::Exclusive, Recovery::Checkable);
    let expected = [
        ("read_file", reads),
        ("write_file", writes),
        ("edit_file", writes),
        ("list_files", reads),
        ("search_files", reads),
    ]
    .map(|(name, (effects, concurrency, recovery))| (name, effects, concurrency, recovery));
    assert_eq!(found, expected);
    assert_eq!(expected.map(|it| it.0), TOOL_NAMES);
    let kinds: Vec<_> = specs.iter().map(|it| (it.kind, it.hints)).collect();
    let looks = ToolHints::looks_only();
    let expected = [
        (ToolKind::Read, looks),
        (ToolKind::Edit, ToolHints::new(true, true, false)),
        (ToolKind::Edit, ToolHints::new(true, false, false)),
        (ToolKind::Search, looks),
        (ToolKind::Search, looks),
    ];
    assert_eq!(kinds, expected);
}

#[test]
fn each_schema_compiles_and_guides_repair() {
    let bench = Bench::new();
    for (tool, raw) in file_tools(&bench.workspace).iter().zip([
        r#"{"path": "a", "offset": "5", "limit": 2.0}"#,
        r#"{"path": "a", "content": "x", "create_parents": "true"}"#,
        r#"{"path": "a", "old_string": "x", "new_string": "", "replace_all": null}"#,
        r#"{"path": null, "depth": "1"}"#,
        r#"{"pattern": 42, "context": "0", "max_results": 10}"#,
    ]) {
        let schema = tool.spec().parameters;
        let validator = Validator::new(&schema).unwrap();
        let prepared = prepare(raw, &schema, &validator);
        let is_ready = matches!(
            prepared,
            PreparedArguments::Ready {
                meaning_changed: false,
                ..
            }
        );
        assert!(is_ready, "{raw}: {prepared:?}");
    }
}
