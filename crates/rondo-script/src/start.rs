//! Files for a new script: a first text, and type definitions for editors.

/// A script to start from.
pub const START: &str = include_str!("../lua/start.lua");
/// The functions and their types, for the Lua language server.
pub const ANNOTATIONS: &str = include_str!("../lua/annotations.lua");

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check;
    use crate::names::{AGENT, CONVERSATION, MEMBERS, OPTIONS, RONDO};

    #[test]
    fn the_annotations_name_everything_that_scripts_may_use() {
        let has = |name: &str| ANNOTATIONS.contains(name);
        let missing = |names: Vec<String>| -> Vec<String> {
            names.into_iter().filter(|it| !has(it)).collect()
        };
        let mut names: Vec<String> = RONDO.iter().map(|it| format!("rondo.{it}")).collect();
        for members in MEMBERS {
            names.extend(
                members
                    .names
                    .iter()
                    .map(|it| format!("{}.{it}", members.of)),
            );
        }
        for options in OPTIONS {
            let inline = ["rondo.exec", "rondo.ask", "rondo.parallel"].contains(&options.of);
            let field = |it: &&str| match inline {
                true => format!("{it}?: "),
                false => format!("---@field {it}"),
            };
            names.extend(options.names.iter().map(field));
        }
        let methods = ["ask"];
        let fields = CONVERSATION.iter().chain(AGENT);
        let fields = fields.filter(|it| !methods.contains(*it));
        names.extend(fields.map(|it| format!("---@field {it}")));
        assert_eq!(missing(names), Vec::<String>::new());
    }

    #[test]
    fn the_first_script_has_no_mistake() {
        assert_eq!(check("start.lua", START), []);
    }
}
