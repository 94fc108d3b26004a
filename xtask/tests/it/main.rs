//! Rules about the shape of the workspace.

mod copies;
mod dependencies;
mod documents;
mod files;
mod imports;
mod library_cost;
mod manifests;
mod rules;
mod rust_text;
mod tree;
mod units;
