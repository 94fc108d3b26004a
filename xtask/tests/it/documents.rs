//! The documents: links and licences.

use crate::tree;

#[test]
fn relative_links_lead_somewhere() {
    let mut broken = Vec::new();
    for path in tree::files_ending("md") {
        let folder = tree::root().join(&path);
        let folder = folder.parent().expect("a file has a folder");
        for target in link_targets(&tree::read(&path)) {
            let file = target.split('#').next().unwrap_or_default();
            if !file.is_empty() && !folder.join(file).exists() {
                broken.push(format!("{path}: `{target}`"));
            }
        }
    }
    tree::assert_none("links that lead nowhere", &broken);
}

#[test]
fn link_targets_are_found_outside_code() {
    let text = "[a](b.md) and [c](https://d.e)\n```\n[x](y.md)\n```\n[f](g/h.md#i)\n";
    assert_eq!(link_targets(text), ["b.md", "g/h.md#i"]);
}

#[test]
fn both_licences_are_there_in_full() {
    assert!(tree::read("LICENSE-MIT").contains("THE SOFTWARE IS PROVIDED \"AS IS\""));
    assert!(tree::read("LICENSE-APACHE").contains("END OF TERMS AND CONDITIONS"));
}

#[test]
fn the_code_map_names_every_crate() {
    let map = tree::read("ARCHITECTURE.md");
    let missing: Vec<String> = tree::files_ending("toml")
        .into_iter()
        .filter_map(|path| {
            let name = path.strip_prefix("crates/")?.strip_suffix("/Cargo.toml")?;
            (!map.contains(&format!("`{name}`"))).then(|| name.to_owned())
        })
        .collect();
    tree::assert_none("crates that ARCHITECTURE.md does not name", &missing);
}

fn link_targets(text: &str) -> Vec<&str> {
    let mut is_code = false;
    let mut targets = Vec::new();
    for line in text.lines() {
        if line.trim_start().starts_with("```") {
            is_code = !is_code;
        }
        if !is_code {
            let links = line.split("](").skip(1);
            targets.extend(
                links
                    .filter_map(|rest| rest.split_once(')'))
                    .map(|(to, _)| to),
            );
        }
    }
    targets.retain(|target| !target.contains("://"));
    targets
}
